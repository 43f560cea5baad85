package callers

import (
	"slices"
	"sync"
	"time"
)

// graveTime is how long it is remembered that a session has ended: a call of it may still be on its way.
const graveTime = time.Minute

// levels gives the levels of log lines, the most talkative first.
func levels() [8]string {
	return [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// rank counts levels from the most talkative on; it is below zero for what is no level.
func rank(level string) int {
	all := levels()
	return slices.Index(all[:], level)
}

// IsLevel says whether there is a level of that name: debug to emergency.
func IsLevel(level string) bool { return rank(level) >= 0 }

// Talkier says whether a level has more log lines than another; what is no level has none.
func Talkier(level, than string) bool {
	l, t := rank(level), rank(than)
	return l >= 0 && (t < 0 || l < t)
}

// A Register is what is remembered of callers' sessions, by their names; the empty one stands for every caller without a
// session. The zero value remembers nothing yet. Its methods may be called from several goroutines.
type Register struct {
	mu     sync.Mutex
	levels map[string]string
	// ended and endedBefore are the sessions that ended in the time that began at since, and in the one before it.
	ended, endedBefore map[string]time.Time
	since              time.Time
}

// SetLevel notes which log lines the session wants, until its End: those of a level of the eight and above. A session that
// has ended wants none.
func (r *Register) SetLevel(session, level string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasEnded(session) {
		return
	}
	if r.levels == nil {
		r.levels = map[string]string{}
	}
	r.levels[session] = level
}

// Level is what the session asked for; empty where it did not.
func (r *Register) Level(session string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.levels[session]
}

// Most is the most talkative level that any session asked for; empty where none did.
func (r *Register) Most() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := ""
	for _, level := range r.levels {
		if Talkier(level, most) {
			most = level
		}
	}
	return most
}

// End notes that a session, which is not the empty one, has ended.
func (r *Register) End(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	delete(r.levels, session)
	if r.ended == nil || now.Sub(r.since) > graveTime {
		r.ended, r.endedBefore, r.since = map[string]time.Time{}, r.ended, now
	}
	r.ended[session] = now
}

// hasEnded says whether a session ended a moment ago. The lock is held.
func (r *Register) hasEnded(session string) bool {
	at, ended := r.ended[session]
	if !ended {
		at, ended = r.endedBefore[session]
	}
	return ended && time.Since(at) <= graveTime
}

// Ended says whether a session ended a moment ago.
func (r *Register) Ended(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasEnded(session)
}

// LevelFor is the level of a connection for the session, or, for the empty session, of one that everybody shares: the most that
// anybody wants. Empty means that nobody said.
func (r *Register) LevelFor(session string) string {
	if session != "" {
		return r.Level(session)
	}
	return r.Most()
}
