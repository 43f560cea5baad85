package upstream

import (
	"slices"
	"sync"
	"time"
)

// endedSessionMemory is how long the ID of an ended caller session is stored. A call of that session may arrive late;
// it must not open another connection.
const endedSessionMemory = time.Minute

// logLevels returns the log levels of MCP, the most verbose first.
func logLevels() [8]string {
	return [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// logLevelRank returns the index of a level in logLevels, or -1 for an unknown level.
func logLevelRank(level string) int {
	all := logLevels()
	return slices.Index(all[:], level)
}

// isLogLevel reports whether level is one of debug to emergency.
func isLogLevel(level string) bool { return logLevelRank(level) >= 0 }

// isMoreVerbose reports whether the first level includes more log lines than the second level. An unknown level
// includes none.
func isMoreVerbose(level, than string) bool {
	l, t := logLevelRank(level), logLevelRank(than)
	return l >= 0 && (t < 0 || l < t)
}

// A callerSessionRegistry stores the log levels that callers' sessions requested, and the IDs of the sessions that
// ended recently, see endedSessionMemory. The empty session ID stands for all callers without a session. The zero value
// is empty. Its methods may be called from several goroutines.
type callerSessionRegistry struct {
	mu     sync.Mutex
	levels map[string]string
	// ended contains the sessions that ended after the time in the field since, by session ID. endedBefore contains the
	// sessions that ended in the period before that time. The values are the times when the sessions ended.
	ended, endedBefore map[string]time.Time
	since              time.Time
}

// setLogLevel stores the log level of a session until endSession. It ignores a session that has ended.
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

// logLevel returns the log level that the session requested, or "".
func (r *callerSessionRegistry) logLevel(session string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.levels[session]
}

// mostVerboseLevel returns the most verbose log level that any session requested, or "".
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

// endSession marks a session as ended and deletes its log level. The session ID must not be empty.
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

// hasEndedLocked reports whether a session ended within endedSessionMemory. mu must be held.
func (r *callerSessionRegistry) hasEndedLocked(session string) bool {
	at, ended := r.ended[session]
	if !ended {
		at, ended = r.endedBefore[session]
	}
	return ended && time.Since(at) <= endedSessionMemory
}

// hasEnded reports whether a session ended within endedSessionMemory.
func (r *callerSessionRegistry) hasEnded(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasEndedLocked(session)
}

// connectionLogLevel returns the log level for a connection. session is the caller's session that owns the connection;
// it is empty for a shared connection. A shared connection gets the most verbose level that any session requested. The
// result is "" if no level was requested.
func (r *callerSessionRegistry) connectionLogLevel(session string) string {
	if session != "" {
		return r.logLevel(session)
	}
	return r.mostVerboseLevel()
}
