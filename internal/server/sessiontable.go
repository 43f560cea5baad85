package server

import (
	"context"
	"sync"
	"time"
)

// sessionTable holds the stateful HTTP sessions by id. A session ends by a DELETE request, by a timeout, when a new
// session needs its place, or with the server.
type sessionTable struct {
	mu     sync.Mutex
	byID   map[string]*session
	closed bool
	// clientBytes is the total size of the data that the clients of all sessions declared about themselves.
	clientBytes int
	// sweptAt is the time of the last sweep.
	sweptAt time.Time
}

// maxClientBytes is the maximum of sessionTable.clientBytes. A limit is needed, because one client may declare
// megabytes.
const maxClientBytes = 64 << 20

// clientBytes returns the size of the data that the session's client declared about itself. The data is stored with the
// session.
func (c *session) clientBytes() int { return len(c.caller.Client) + len(c.caller.Capabilities) }

// full reports whether adding the session c would exceed most, the maximum number of sessions, or maxClientBytes. The
// caller must hold the lock.
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

// get returns the session with the id and marks it as busy until done is called. It returns false if there is no such
// session, or if the session belongs to another principal.
func (s *sessionTable) get(id, principal string) (c *session, done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.byID[id]
	if c == nil || c.caller.Principal != principal {
		return nil, nil, false
	}
	return c, c.markBusy(), true
}

// add adds a session. It returns false if the table is full or closed.
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

// removeIdle removes and returns the sessions that became idle before the given time and have been idle since.
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

// principalShares returns, for each principal, how much of the table its sessions use. The use is the number of the
// sessions plus their clientBytes, each relative to its maximum. another, the session to add, is included. The caller
// must hold the lock.
func (s *sessionTable) principalShares(another *session, most int) map[string]int {
	shares := map[string]int{}
	count := func(c *session) { shares[c.caller.Principal] += 1 + maxClientBytes/most + c.clientBytes() }
	count(another)
	for _, c := range s.byID {
		count(c)
	}
	return shares
}

// removeOldest makes room for the session another: it removes and returns one idle session. It selects the principal
// that uses most of the table, and of its idle sessions the one that was idle longest. So one principal cannot end the
// sessions of others. removeOldest returns nil if there is room, or if all sessions are busy.
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

// isSweepDue reports whether at least the time every has passed since the last sweep. If so, it sets the time of the
// last sweep to now.
func (s *sessionTable) isSweepDue(now time.Time, every time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.sweptAt) < every {
		return false
	}
	s.sweptAt = now
	return true
}

// addSession adds a new session, and ends idle sessions if there is no room. It returns false if all sessions are busy.
// It also sweeps if a sweep is due, because Serve, which sweeps periodically, may not be running.
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

// sweep ends the sessions that have been idle for longer than SessionTimeout. For the other sessions, it drops the
// expired events.
func (s *Server) sweep(now time.Time) {
	s.sessions.sweepEvents(now)
	for _, c := range s.sessions.removeIdle(now.Add(-s.o.SessionTimeout)) {
		s.endSession(c)
	}
}

// runSweeper calls sweep and RecheckCallers periodically until ctx ends.
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
