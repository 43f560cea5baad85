package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// A stateless caller says with each request what it can be asked; a server of the stateful generation hears that once a
// session. So such callers have sessions beside the home, one for each kind of client, which are opened with what that
// client declares. Nothing tells which call a question or a log line belongs to: a pipe has one stream for everything,
// and over HTTP the reference servers ask on the stream outside requests. So a session for callers who can be asked,
// or want to hear log lines, has one call at a time, and is called a lane.

const (
	// maxExtraSessions is how many sessions for one principal's stateless callers an endpoint has where each takes a
	// process, maxExtraSessionsHTTP where it does not; maxPrivateSessions and maxPrivateSessionsHTTP are how many for
	// its stateful ones. The one that was idle longest makes room.
	maxExtraSessions       = 16
	maxExtraSessionsHTTP   = 128
	maxPrivateSessions     = 64
	maxPrivateSessionsHTTP = 4096
	// extraIdleTimeout is how long one for stateless callers may go unused.
	extraIdleTimeout = time.Minute
)

// sessionKeyFor says which session a call belongs on, for a client of that kind. It is the home where the server's era
// is not known yet. It needs mu.
func (e *managedServer) sessionKeyFor(call drawbridge.Call, kind string) sessionKey {
	if e.era == 0 {
		return e.primaryKey()
	}
	c := call.Caller
	k := sessionKey{era: e.primaryEra(), principal: e.callerAuth().PrincipalFor(c)}
	if c.Era != 0 && e.era.Has(c.Era) {
		k.era = c.Era
	}
	if e.sessionlessLegacy && canBeAsked(c) {
		k.era = drawbridge.Modern
	}
	if e.config.Share == "all" && e.config.Credentials != config.PerCallerCredentials {
		k.principal = e.pool.o.Principal
	}
	switch {
	case e.config.Isolate == "session" && c.Session == "":
		k.clientKind, k.slot, k.singleUse = kind, 1, true // its caller is one call
	case e.config.Isolate == "session":
		k.session = c.Session
	case k.era == drawbridge.Modern:
	case kind != "" && c.Era == drawbridge.Modern:
		k.clientKind, k.principal = kind, e.callerAuth().PrincipalFor(c)
		if canBeAsked(c) || e.wantsLog(call) {
			k.slot = 1
		}
	case kind != "" && !e.needsPrivateSession(c):
		k.clientKind, k.principal, k.sharedByKind = kind, e.callerAuth().PrincipalFor(c), true
	case c.Era == drawbridge.Legacy && c.Session != "" && (kind != "" || e.wantsLog(call)):
		k.session = c.Session
	}
	if !k.isExtra() && k.principal == e.pool.o.Principal && k.era == e.primaryEra() {
		return e.primaryKey()
	}
	return k
}

// needsPrivateSession says whether a stateful caller has a session of its own: where that takes no process, where the
// server is known to ask, and where the caller has one. Most servers never ask: with them the callers of one kind
// share a session that was opened with what they declare. The first question there is passed on where it is known
// whose it is. It needs mu.
func (e *managedServer) needsPrivateSession(c drawbridge.Caller) bool {
	return e.config.URL != "" || e.asksClients || e.pool.callerSessions.logLevel(c.Session) != "" ||
		e.sessions[sessionKey{era: drawbridge.Legacy, principal: c.Principal, session: c.Session}] != nil
}

// clientKindFor tells kinds of client apart, for those who may need a session of their kind: by what they say of
// themselves, however they write it. It is empty for others.
func (e *managedServer) clientKindFor(call drawbridge.Call) string {
	c := call.Caller
	isolated := e.config.Isolate == "session" && c.Session == ""
	declares := canBeAsked(c) || declaresExtensions(c)
	switch {
	case c.Era == drawbridge.Modern:
		declares = declares || e.wantsLog(call)
	case c.Era == drawbridge.Legacy && c.Session != "":
		if !declares || e.config.Isolate == "session" {
			return ""
		}
		return clientKind(c)
	default:
		declares = false
	}
	if !isolated && (!declares || e.speaksEra(drawbridge.Modern)) {
		return ""
	}
	return clientKind(c)
}

// speaksEra says whether the server is known to speak a generation.
func (e *managedServer) speaksEra(era drawbridge.ProtocolEra) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.era.Has(era)
}

// maxGroupSessions is how many sessions of a crowd there may be.
func (e *managedServer) maxGroupSessions(k sessionKey) int {
	switch {
	case e.config.URL != "" && k.session != "":
		return maxPrivateSessionsHTTP
	case e.config.URL != "":
		return maxExtraSessionsHTTP
	case k.session != "":
		return maxPrivateSessions
	}
	return maxExtraSessions
}

// wantsLog says whether the caller wants log lines, which on a shared session could be anybody's.
func (e *managedServer) wantsLog(call drawbridge.Call) bool {
	if call.Caller.Era == drawbridge.Modern {
		return requestedLogLevel(call.Params) != ""
	}
	return call.Caller.Session != "" && e.pool.callerSessions.logLevel(call.Caller.Session) != ""
}

// claimSlot gives the session that a call is to use; of lanes the first that is free, which is the call's until
// release. It says false where all lanes are in use. It needs mu.
func (e *managedServer) claimSlot(k sessionKey) (sessionKey, bool) {
	if k.slot == 0 {
		return k, true
	}
	fresh := sessionKey{}
	for k.slot = 1; k.slot <= e.maxGroupSessions(k); k.slot++ {
		switch {
		case e.claimedSlots[k]:
		case e.sessions[k] != nil:
			e.claimedSlots[k] = true
			return k, true
		case fresh.slot == 0:
			fresh = k
		}
	}
	if fresh.slot > 0 {
		e.claimedSlots[fresh] = true
	}
	return fresh, fresh.slot > 0
}

// releaseSlot gives a claimed session back. It needs mu.
func (e *managedServer) releaseSlot(k sessionKey) {
	if e.claimedSlots[k] {
		delete(e.claimedSlots, k)
		e.wakeWaiters()
	}
}

// wakeWaiters wakes those that wait for a lane, or for room. It needs mu.
func (e *managedServer) wakeWaiters() {
	close(e.slotFreed)
	e.slotFreed = make(chan struct{})
}

// A sessionGroup are the sessions that count together against what there may be: one principal's, for its stateless
// callers or for its stateful ones.
type sessionGroup struct {
	principal string
	private   bool
}

func (k sessionKey) group() sessionGroup { return sessionGroup{k.principal, k.session != ""} }

// isExtra says whether the session is one of those that are counted: there may be any number of kinds of caller.
func (k sessionKey) isExtra() bool { return k.session != "" || k.clientKind != "" }

// makeRoom says whether one more session may be opened. Where there are as many as there may be it ends the one that
// was idle longest, and there is room when that has ended. It needs mu.
func (e *managedServer) makeRoom(k sessionKey) bool {
	if !k.isExtra() || e.groupSizes[k.group()] < e.maxGroupSessions(k) {
		return true
	}
	var oldest *session
	for other, s := range e.sessions {
		idle := s.borrowed == 0 && s.called && !e.claimedSlots[other] // one that has not begun is about to
		if idle && other.isExtra() && other.group() == k.group() &&
			(oldest == nil || s.lastUsed.Before(oldest.lastUsed)) {
			oldest = s
		}
	}
	if oldest != nil {
		delete(e.sessions, oldest.key)
		oldest.markLost(errIdle)
	}
	return false
}

// adjustGroupSize counts a session that is opened, or has ended. It needs mu.
func (e *managedServer) adjustGroupSize(k sessionKey, n int) {
	if !k.isExtra() {
		return
	}
	c := k.group()
	if e.groupSizes[c] += n; e.groupSizes[c] == 0 {
		delete(e.groupSizes, c)
	}
	if n < 0 {
		e.wakeWaiters()
	}
}

var errAllBusy = errors.New("every session with it has a call in progress, or one that waits for its caller")

// maxBorrowTries bounds how often a call waits for a session that is gone again before the call could be sent.
const maxBorrowTries = 4

// borrowSession gives a session for a call, opened if it must be; giveBack ends that.
func (e *managedServer) borrowSession(ctx context.Context, call drawbridge.Call, step string) (s *session, err error) {
	var mine sessionKey // the lane, once there is one
	defer func() {
		if err != nil && mine.slot > 0 {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.releaseSlot(mine)
		}
	}()
	var patience time.Time // the end of the wait for a lane, once there is one
	kind := e.clientKindFor(call)
	for tries := 0; tries < maxBorrowTries; {
		if err := ctx.Err(); err != nil {
			return nil, e.unsentFault(step, err)
		}
		e.mu.Lock()
		k, free := e.sessionKeyFor(call, kind), true
		if k.slot > 0 && mine.slot == 0 {
			mine, free = e.claimSlot(k)
		}
		if k.slot > 0 {
			k = mine
		}
		if !free || !e.canUseSession(k) {
			freed := e.slotFreed
			e.mu.Unlock()
			if patience.IsZero() {
				patience = time.Now().Add(e.callTimeout())
			}
			if err := e.waitForSlot(ctx, freed, patience, step); err != nil {
				return nil, err
			}
			continue
		}
		tries++
		s, ready, err := e.acquireOrOpen(k, call, step)
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-ready.wait:
		case <-ctx.Done():
			return nil, e.unsentFault(step, ctx.Err())
		}
		if err := ready.o.err; err != nil {
			return nil, e.unavailableFault(step, err)
		}
	}
	return nil, e.unavailableFault(step, errors.New("it ends as soon as it starts"))
}

// unsentFault is why a call did not leave us.
func (e *managedServer) unsentFault(step string, err error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: step, Err: err}
}

// canUseSession says whether a call has a session to enter, or one may be opened for it. It needs mu.
func (e *managedServer) canUseSession(k sessionKey) bool {
	if s := e.sessions[k]; s != nil && !s.isOver() || e.openings[k] != nil {
		return true
	}
	return e.makeRoom(k)
}

// waitForSlot waits until a lane is free, or a session has ended.
func (e *managedServer) waitForSlot(ctx context.Context, freed <-chan struct{}, until time.Time, step string) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-freed:
		return nil
	case <-e.ctx.Done():
		return e.unavailableFault(step, errRemoved)
	case <-ctx.Done():
		return e.unsentFault(step, ctx.Err())
	case <-timer.C:
		return e.unavailableFault(step, errAllBusy)
	}
}

// An openingWait opening is to be looked at when wait is closed.
type openingWait struct {
	o    *sessionOpening
	wait <-chan struct{}
}

// recentFailure gives what went wrong when the session, or the home, was opened last, where that is only a moment ago.
// It needs mu.
func (e *managedServer) recentFailure(k sessionKey) error {
	for _, k := range []sessionKey{k, e.primaryKey()} {
		if err := e.failures.lastError(k); err != nil && !e.signedInSince(k.principal, err) {
			return err
		}
	}
	return nil
}

// acquireOrOpen gives the session of a key for one more call, or the opening to wait for. It is called with mu held and
// returns without.
func (e *managedServer) acquireOrOpen(k sessionKey, call drawbridge.Call, step string) (*session, openingWait, error) {
	defer e.mu.Unlock()
	s := e.sessions[k]
	if s != nil && s.acquire() {
		return s, openingWait{}, nil
	}
	if e.openings[k] == nil {
		if err := e.recentFailure(k); err != nil {
			return nil, openingWait{}, e.unavailableFault(step, err)
		}
		if k.session != "" && e.pool.callerSessions.hasEnded(k.session) {
			return nil, openingWait{}, e.unsentFault(step, errCallerGone)
		}
	}
	opener := call // a copy, so that the call itself need not outlive its caller
	o := e.requestSession(k, &opener)
	if s != nil && isClosed(o.ready) {
		return nil, openingWait{o, o.listed}, nil // it was lost while it was listed: that has to end first
	}
	return nil, openingWait{o, o.ready}, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// returnSession ends what borrow began; open says that the server may still be at the call. Over HTTP a cancellation
// can overtake what it is for, and the server then waits for answers: so the session ends, and no other call has that
// lane with it.
func (e *managedServer) returnSession(s *session, open bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.release()
	e.retireSharedSession(s)
	if e.drained != nil && e.hasNoCalls() {
		close(e.drained)
		e.drained = nil
	}
	if s.key.singleUse || open && s.key.slot > 0 && s.server.config.URL != "" {
		delete(e.sessions, s.key)
		s.markLost(errSingleUse)
	}
	if e.groupSizes[s.key.group()] >= e.maxGroupSessions(s.key) {
		e.wakeWaiters() // it may make room now
	}
	e.releaseSlot(s.key)
}

var errSingleUse = errors.New("its last call is over")
