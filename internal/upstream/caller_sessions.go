package upstream

import (
	"slices"
	"sync"
	"time"
)

// endedSessionMemory is how long it is remembered that a session has ended: a call of it may still be on its way.
const endedSessionMemory = time.Minute

// logLevels gives the levels of log lines, the most talkative first.
func logLevels() [8]string {
	return [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// logLevelRank counts levels from the most talkative on; it is below zero for what is no level.
func logLevelRank(level string) int {
	all := logLevels()
	return slices.Index(all[:], level)
}

// isLogLevel says whether there is a level of that name: debug to emergency.
func isLogLevel(level string) bool { return logLevelRank(level) >= 0 }

// isMoreVerbose says whether a level has more log lines than another; what is no level has none.
func isMoreVerbose(level, than string) bool {
	l, t := logLevelRank(level), logLevelRank(than)
	return l >= 0 && (t < 0 || l < t)
}

// A callerSessionRegistry is what is remembered of callers' sessions, by their names; the empty one stands for every
// caller without a session. The zero value remembers nothing yet. Its methods may be called from several goroutines.
type callerSessionRegistry struct {
	mu     sync.Mutex
	levels map[string]string
	// ended and endedBefore are the sessions that ended in the time that began at since, and in the one before it.
	ended, endedBefore map[string]time.Time
	since              time.Time
}

// setLogLevel notes which log lines the session wants, until its End: those of a level of the eight and above. A
// session that has ended wants none.
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

// logLevel is what the session asked for; empty where it did not.
func (r *callerSessionRegistry) logLevel(session string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.levels[session]
}

// mostVerboseLevel is the most talkative level that any session asked for; empty where none did.
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

// endSession notes that a session, which is not the empty one, has ended.
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

// hasEndedLocked says whether a session ended a moment ago. The lock is held.
func (r *callerSessionRegistry) hasEndedLocked(session string) bool {
	at, ended := r.ended[session]
	if !ended {
		at, ended = r.endedBefore[session]
	}
	return ended && time.Since(at) <= endedSessionMemory
}

// hasEnded says whether a session ended a moment ago.
func (r *callerSessionRegistry) hasEnded(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasEndedLocked(session)
}

// connectionLogLevel is the level of a connection for the session, or, for the empty session, of one that everybody
// shares: the most that anybody wants. Empty means that nobody said.
func (r *callerSessionRegistry) connectionLogLevel(session string) string {
	if session != "" {
		return r.logLevel(session)
	}
	return r.mostVerboseLevel()
}
