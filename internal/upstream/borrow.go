package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// A stateless caller declares with each request what it can be asked; a stateful server learns that once a session.
// Such callers therefore use sessions beside the primary one, one for each kind of client. They are opened with the
// capabilities that client declared.
//
// Nothing tells which call a server request or a log line belongs to. A pipe has one stream, and over HTTP the
// reference servers ask on the stream outside requests. A session for callers that can be asked, or that want log
// lines, has one call at a time; its key has a slot.

const (
	// maxExtraSessions bounds the sessions of a server for one principal's stateless callers, each of them a process;
	// maxExtraSessionsHTTP bounds those over HTTP. maxPrivateSessions and maxPrivateSessionsHTTP bound the sessions for
	// stateful callers. When a bound is reached, the session that was idle longest is ended.
	maxExtraSessions       = 16
	maxExtraSessionsHTTP   = 128
	maxPrivateSessions     = 64
	maxPrivateSessionsHTTP = 4096
	// extraIdleTimeout is how long a session for stateless callers may go unused.
	extraIdleTimeout = time.Minute
)

// sessionKeyFor returns the key of the session for a call from a client of that kind. While the server's era is unknown
// it returns the primary key. It needs sessions.mu.
func (e *managedServer) sessionKeyFor(call drawbridge.Call, kind string) sessionKey {
	if e.sessions.era == 0 {
		return e.primaryKey()
	}
	c := call.Caller
	k := sessionKey{era: e.sessions.primaryEraLocked(), principal: e.callerAuth().PrincipalFor(c)}
	if c.Era != 0 && e.sessions.era.Has(c.Era) {
		k.era = c.Era
	}
	if e.sessions.sessionlessLegacy && e.pool.clients.canBeAsked(c) {
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
		if e.pool.clients.canBeAsked(c) || e.wantsLog(call) {
			k.slot = 1
		}
	case kind != "" && !e.needsPrivateSession(c):
		k.clientKind, k.principal, k.sharedByKind = kind, e.callerAuth().PrincipalFor(c), true
	case c.Era == drawbridge.Legacy && c.Session != "" && (kind != "" || e.wantsLog(call)):
		k.session = c.Session
	}
	if !k.isExtra() && k.principal == e.pool.o.Principal && k.era == e.sessions.primaryEraLocked() {
		return e.primaryKey()
	}
	return k
}

// needsPrivateSession reports whether a stateful caller gets a session of its own. It does over HTTP, where a session
// takes no process; with a server known to send requests; and if it already has one. Most servers never send requests,
// so callers of one kind share a session opened with their capabilities. The first request there is passed on if its
// caller is known. It needs sessions.mu.
func (e *managedServer) needsPrivateSession(c drawbridge.Caller) bool {
	return e.config.URL != "" || e.sessions.asksClients || e.pool.callerSessions.logLevel(c.Session) != "" ||
		e.sessions.live[sessionKey{era: drawbridge.Legacy, principal: c.Principal, session: c.Session}] != nil
}

// clientKindFor returns a key for clients that declared the same and may need a session of their kind; "" for other
// callers.
func (e *managedServer) clientKindFor(call drawbridge.Call) string {
	c := call.Caller
	isolated := e.config.Isolate == "session" && c.Session == ""
	traits := e.pool.clients.traits(c)
	declares := e.pool.clients.canBeAsked(c) || traits.declaresExtensions
	switch {
	case c.Era == drawbridge.Modern:
		declares = declares || e.wantsLog(call)
	case c.Era == drawbridge.Legacy && c.Session != "":
		if !declares || e.config.Isolate == "session" {
			return ""
		}
		return traits.kind
	default:
		declares = false
	}
	if !isolated && (!declares || e.sessions.knownEra().Has(drawbridge.Modern)) {
		return ""
	}
	return traits.kind
}

// wantsLog reports whether the caller asked for log lines. On a shared session such lines cannot be attributed.
func (e *managedServer) wantsLog(call drawbridge.Call) bool {
	if call.Caller.Era == drawbridge.Modern {
		return requestedLogLevel(call.Params) != ""
	}
	return call.Caller.Session != "" && e.pool.callerSessions.logLevel(call.Caller.Session) != ""
}

var errAllBusy = errors.New("every session is busy with a call or waits for its caller; try again later")

// maxBorrowTries bounds how often a call waits for a session that is gone again before the call could be sent.
const maxBorrowTries = 4

// borrowSession returns a session for a call, and opens it if necessary. The caller ends the use with returnSession.
func (e *managedServer) borrowSession(ctx context.Context, call drawbridge.Call, step string) (s *session, err error) {
	var mine sessionKey // the claimed slot, if any
	defer func() {
		if err != nil && mine.slot > 0 {
			e.sessions.releaseSlot(mine)
		}
	}()
	var patience time.Time // when the wait for a slot ends, once it has begun
	kind := e.clientKindFor(call)
	for tries := 0; tries < maxBorrowTries; {
		if err := ctx.Err(); err != nil {
			return nil, e.unsentFault(step, err)
		}
		e.sessions.mu.Lock()
		k, free := e.sessionKeyFor(call, kind), true
		if k.slot > 0 && mine.slot == 0 {
			mine, free = e.sessions.claimSlotLocked(k)
		}
		if k.slot > 0 {
			k = mine
		}
		if !free || !e.sessions.canUseLocked(k) {
			freed := e.sessions.slotFreed
			e.sessions.mu.Unlock()
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
	return nil, e.unavailableFault(step, errors.New("the session ends as soon as it starts"))
}

// unsentFault returns the fault for a call that was not sent.
func (e *managedServer) unsentFault(step string, err error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: step, Err: err}
}

// waitForSlot waits until a slot is free or a session has ended.
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

// An openingWait is an opening and the channel to wait for.
type openingWait struct {
	o    *sessionOpening
	wait <-chan struct{}
}

// recentFailure returns the error of the last opening of this session, or of the primary one, if it is recent. It needs
// sessions.mu.
func (e *managedServer) recentFailure(k sessionKey) error {
	for _, k := range []sessionKey{k, e.primaryKey()} {
		if err := e.sessions.failures.lastError(k); err != nil && !e.signedInSince(k.principal, err) {
			return err
		}
	}
	return nil
}

// acquireOrOpen returns the session of a key for one more call, or the opening to wait for. It is called with
// sessions.mu held and returns without.
func (e *managedServer) acquireOrOpen(k sessionKey, call drawbridge.Call, step string) (*session, openingWait, error) {
	defer e.sessions.mu.Unlock()
	s := e.sessions.live[k]
	if s != nil && s.acquire() {
		return s, openingWait{}, nil
	}
	if e.sessions.openings[k] == nil {
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

// returnSession ends the use of a borrowed session. Set callMayRun if the server may still work on the call: over HTTP
// a cancellation can overtake its request. A session with a slot then ends, so that no other call shares it.
func (e *managedServer) returnSession(s *session, callMayRun bool) {
	e.sessions.giveBack(s, callMayRun)
}

var errSingleUse = errors.New("the session was for one call, which is over")
