package upstream

import (
	"slices"
	"sync"
	"time"
)

// endedSessionMemory is how long an ended session is remembered: one of its calls may still be on its way.
const endedSessionMemory = time.Minute

// logLevels returns the log levels, the most verbose first.
func logLevels() [8]string {
	return [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// logLevelRank returns the index of a level, 0 for the most verbose, or -1 for an unknown one.
func logLevelRank(level string) int {
	all := logLevels()
	return slices.Index(all[:], level)
}

// isLogLevel reports whether level is one of debug to emergency.
func isLogLevel(level string) bool { return logLevelRank(level) >= 0 }

// isMoreVerbose reports whether a level includes more log lines than another. An unknown level includes none.
func isMoreVerbose(level, than string) bool {
	l, t := logLevelRank(level), logLevelRank(than)
	return l >= 0 && (t < 0 || l < t)
}

// A callerSessionRegistry keeps the log levels of callers' sessions, and which sessions ended in the last minute or
// two. The empty session stands for every caller without one. The zero value is empty. Its methods may be called from
// several goroutines.
type callerSessionRegistry struct {
	mu     sync.Mutex
	levels map[string]string
	// ended holds the sessions that ended since the time since, endedBefore those of the period before it.
	ended, endedBefore map[string]time.Time
	since              time.Time
}

// setLogLevel sets the log level of a session until endSession. A session that has ended gets none.
func (r *callerSessionRegistry) setLogLevel(session, level string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasEndedLocked(session) {
		return
	}
	if r.levels == nil {
		r.levels = map[string]string{}
	}
	r.levels[session] = level
}

// logLevel returns the level that the session asked for, or "".
func (r *callerSessionRegistry) logLevel(session string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.levels[session]
}

// mostVerboseLevel returns the most verbose level that any session asked for, or "".
func (r *callerSessionRegistry) mostVerboseLevel() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := ""
	for _, level := range r.levels {
		if isMoreVerbose(level, most) {
			most = level
		}
	}
	return most
}

// endSession records the end of a session, which must not be the empty one.
func (r *callerSessionRegistry) endSession(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	delete(r.levels, session)
	if r.ended == nil || now.Sub(r.since) > endedSessionMemory {
		r.ended, r.endedBefore, r.since = map[string]time.Time{}, r.ended, now
	}
	r.ended[session] = now
}

// hasEndedLocked reports whether a session ended recently. It needs mu.
func (r *callerSessionRegistry) hasEndedLocked(session string) bool {
	at, ended := r.ended[session]
	if !ended {
		at, ended = r.endedBefore[session]
	}
	return ended && time.Since(at) <= endedSessionMemory
}

// hasEnded reports whether a session ended recently.
func (r *callerSessionRegistry) hasEnded(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasEndedLocked(session)
}

// connectionLogLevel returns the level for a session's own connection or, for the empty session, for a shared one: the
// most verbose level that any session asked for. It is "" if none did.
func (r *callerSessionRegistry) connectionLogLevel(session string) string {
	if session != "" {
		return r.logLevel(session)
	}
	return r.mostVerboseLevel()
}
