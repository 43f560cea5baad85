package server

import (
	"context"
	"sync"
	"time"
)

// sessionTable holds the stateful HTTP sessions by id. A session ends by DELETE, by a timeout, when a new session needs
// room, or with the server.
type sessionTable struct {
	mu     sync.Mutex
	byID   map[string]*session
	closed bool
	// clientBytes is the total size of the data that the clients of all sessions declared about themselves.
	clientBytes int
	// sweptAt is the time of the last sweep.
	sweptAt time.Time
}

// maxClientBytes is the maximum of sessionTable.clientBytes. It is needed because one client may declare megabytes.
const maxClientBytes = 64 << 20

// clientBytes returns the size of the data that the client declared about itself, which is stored with the session.
func (c *session) clientBytes() int { return len(c.caller.Client) + len(c.caller.Capabilities) }

// full reports whether adding c would exceed the maximum number of sessions, or maxClientBytes. The caller must hold
// the lock.
func (s *sessionTable) full(c *session, most int) bool {
	return len(s.byID) >= most || len(s.byID) > 0 && s.clientBytes+c.clientBytes() > maxClientBytes
}

// removeLocked removes a session and reports whether it was in the table. The caller must hold the lock.
func (s *sessionTable) removeLocked(c *session) (was bool) {
	if was = s.byID[c.caller.Session] == c; was {
		delete(s.byID, c.caller.Session)
		s.clientBytes -= c.clientBytes()
	}
	return was
}

// get returns the session with the id, if it belongs to the principal, and marks it as in use until done is called.
func (s *sessionTable) get(id, principal string) (c *session, done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.byID[id]
	if c == nil || c.caller.Principal != principal {
		return nil, nil, false
	}
	return c, c.markBusy(), true
}

// add adds a session. It reports false if the table is full or closed.
func (s *sessionTable) add(c *session, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.full(c, most) {
		return false
	}
	if s.byID == nil {
		s.byID = map[string]*session{}
	}
	s.byID[c.caller.Session] = c
	s.clientBytes += c.clientBytes()
	return true
}

// remove removes a session and reports whether it was in the table.
func (s *sessionTable) remove(c *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeLocked(c)
}

// removeAll removes and returns all sessions. After that, add adds no more sessions.
func (s *sessionTable) removeAll() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	all := make([]*session, 0, len(s.byID))
	for _, c := range s.byID {
		all = append(all, c)
	}
	clear(s.byID)
	s.clientBytes = 0
	return all
}

// removeIdle removes and returns the sessions that have been idle since before the given time.
func (s *sessionTable) removeIdle(before time.Time) []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var idle []*session
	for _, c := range s.byID {
		if since, ok := c.idleSince(); ok && since.Before(before) {
			idle = append(idle, c)
			s.removeLocked(c)
		}
	}
	return idle
}

// principalShares returns, for each principal, a measure of its use of the table. It counts the sessions and their
// clientBytes, each in relation to its maximum. another, the session to add, is included. The caller must hold the
// lock.
func (s *sessionTable) principalShares(another *session, most int) map[string]int {
	shares := map[string]int{}
	count := func(c *session) { shares[c.caller.Principal] += 1 + maxClientBytes/most + c.clientBytes() }
	count(another)
	for _, c := range s.byID {
		count(c)
	}
	return shares
}

// removeOldest makes room for another session: it removes and returns an idle session of the principal with the largest
// share, the session that was idle longest. So one principal cannot end the sessions of others. It returns nil if there
// is room, or if all sessions are in use.
func (s *sessionTable) removeOldest(another *session, most int) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.full(another, most) {
		return nil
	}
	shares := s.principalShares(another, most)
	var oldest *session
	var when time.Time
	for _, c := range s.byID {
		since, ok := c.idleSince()
		if !ok {
			continue
		}
		share, least := shares[c.caller.Principal], 0
		if oldest != nil {
			least = shares[oldest.caller.Principal]
		}
		if share > least || share == least && since.Before(when) {
			oldest, when = c, since
		}
	}
	if oldest != nil {
		s.removeLocked(oldest)
	}
	return oldest
}

// isSweepDue reports whether the last sweep is at least every ago. If so, it sets the time of the last sweep to now.
func (s *sessionTable) isSweepDue(now time.Time, every time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.sweptAt) < every {
		return false
	}
	s.sweptAt = now
	return true
}

// addSession adds a new session. If necessary it ends idle sessions to make room. It reports false if all sessions are
// in use. It also sweeps if a sweep is due, because servers that are not run by Serve have no other sweep.
func (s *Server) addSession(c *session) bool {
	if now := time.Now(); s.sessions.isSweepDue(now, s.o.SessionTimeout/4) {
		s.sweep(now)
	}
	for !s.sessions.add(c, s.o.MaxSessions) {
		oldest := s.sessions.removeOldest(c, s.o.MaxSessions)
		if oldest == nil {
			return s.sessions.add(c, s.o.MaxSessions) // there may be room now
		}
		s.endSession(oldest)
	}
	return true
}

// sweepEvents drops the expired events of all sessions.
func (s *sessionTable) sweepEvents(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.byID {
		c.events.sweep(now)
	}
}

// sweep ends the sessions that have been idle for too long, and drops the expired events of the others.
func (s *Server) sweep(now time.Time) {
	s.sessions.sweepEvents(now)
	for _, c := range s.sessions.removeIdle(now.Add(-s.o.SessionTimeout)) {
		s.endSession(c)
	}
}

// runSweeper sweeps and rechecks callers periodically until ctx ends.
func (s *Server) runSweeper(ctx context.Context) {
	ticker := time.NewTicker(max(s.o.SessionTimeout/4, time.Second))
	defer ticker.Stop()
	again := time.NewTicker(recheckInterval)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			s.RecheckCallers(ctx)
		case now := <-ticker.C:
			s.sweep(now)
		}
	}
}
