package server

import (
	"context"
	"sync"
	"time"
)

// sessionTable are the stateful HTTP sessions, by their id. They end by DELETE, by being idle for too long, to make
// room, or with the server.
type sessionTable struct {
	mu     sync.Mutex
	byID   map[string]*session
	closed bool
	// clientBytes is how many bytes the clients of all said of themselves.
	clientBytes int
	// sweptAt is when sessions were last looked through.
	sweptAt time.Time
}

// maxClientBytes is how many bytes the clients of all sessions may have said of themselves: one may say megabytes.
const maxClientBytes = 64 << 20

// clientBytes returns the size of what the client declared about itself, which is stored with the session.
func (c *session) clientBytes() int { return len(c.caller.Client) + len(c.caller.Capabilities) }

// full reports whether one more session would exceed the bounds on sessions or bytes. The caller holds the lock.
func (s *sessionTable) full(c *session, most int) bool {
	return len(s.byID) >= most || len(s.byID) > 0 && s.clientBytes+c.clientBytes() > maxClientBytes
}

// removeLocked removes a session and reports whether it was there. The caller holds the lock.
func (s *sessionTable) removeLocked(c *session) (was bool) {
	if was = s.byID[c.caller.Session] == c; was {
		delete(s.byID, c.caller.Session)
		s.clientBytes -= c.clientBytes()
	}
	return was
}

// get returns the session of that id if it is the principal's, in use until done is called.
func (s *sessionTable) get(id, principal string) (c *session, done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.byID[id]
	if c == nil || c.caller.Principal != principal {
		return nil, nil, false
	}
	return c, c.markBusy(), true
}

// add keeps a session, unless there are as many as there may be already.
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

// remove removes a session and reports whether it was there.
func (s *sessionTable) remove(c *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeLocked(c)
}

// removeAll removes all sessions and admits no more.
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

// removeIdle takes out the sessions that have been idle since before.
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

// principalShares returns each principal's share of the bounds, in sessions and in bytes, including a session to come.
// The caller holds the lock.
func (s *sessionTable) principalShares(another *session, most int) map[string]int {
	shares := map[string]int{}
	count := func(c *session) { shares[c.caller.Principal] += 1 + maxClientBytes/most + c.clientBytes() }
	count(another)
	for _, c := range s.byID {
		count(c)
	}
	return shares
}

// removeOldest makes room for another session. It removes the session that was idle longest, of the principal with the
// most idle sessions, so that one principal cannot end the sessions of others. It returns nil if there is room, or if
// all sessions are in use.
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

// isSweepDue reports whether a sweep is due.
func (s *sessionTable) isSweepDue(now time.Time, every time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.sweptAt) < every {
		return false
	}
	s.sweptAt = now
	return true
}

// addSession keeps a new session; false where all that there may be are in use. On the way it ends those that are idle
// for too long, for the sake of servers that are not run by Serve.
func (s *Server) addSession(c *session) bool {
	if now := time.Now(); s.sessions.isSweepDue(now, s.o.SessionTimeout/4) {
		s.sweep(now)
	}
	for !s.sessions.add(c, s.o.MaxSessions) {
		oldest := s.sessions.removeOldest(c, s.o.MaxSessions)
		if oldest == nil {
			return s.sessions.add(c, s.o.MaxSessions) // there may be room by now
		}
		s.endSession(oldest)
	}
	return true
}

// sweepEvents drops expired events of all sessions.
func (s *sessionTable) sweepEvents(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.byID {
		c.events.sweep(now)
	}
}

// sweep ends the sessions that are idle for too long, and tidies the others.
func (s *Server) sweep(now time.Time) {
	s.sessions.sweepEvents(now)
	for _, c := range s.sessions.removeIdle(now.Add(-s.o.SessionTimeout)) {
		s.endSession(c)
	}
}

// runSweeper sweeps from time to time until ctx ends.
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
