package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// This file selects the session on which a call runs. A stateless caller declares its client capabilities with each
// request. A stateful server accepts such a declaration only once, when a session is opened. A call of a stateless
// caller that declares capabilities therefore does not run on the server's primary session, which callers with
// different capabilities share. It runs on an extra session that was opened with the caller's capabilities. Callers of
// one principal and one client kind, that is, with the same client info and capabilities, use the same extra sessions.
//
// A server request (such as sampling) or a log line does not name the call that caused it. The stream on which it
// arrives does not identify the call either. A pipe is one stream for all calls, and over HTTP the reference servers
// use a stream that all calls share. If a stateless caller accepts server requests or wants log lines, its session
// therefore runs only one call at a time. Concurrent calls use several such sessions, whose keys differ only in the
// slot number.

const (
	// maxExtraSessions is the maximum number of extra sessions that one principal may have at a stdio server, without
	// private sessions. Each of these sessions is a process. maxExtraSessionsHTTP is that maximum at a server over
	// HTTP. A private session belongs to one stateful caller; maxPrivateSessions and maxPrivateSessionsHTTP are the
	// maximum numbers of private sessions. At a maximum, a session that no call uses is closed before another session
	// is opened: the session that was idle longest.
	maxExtraSessions       = 16
	maxExtraSessionsHTTP   = 128
	maxPrivateSessions     = 64
	maxPrivateSessionsHTTP = 4096
	// extraIdleTimeout is how long a session for stateless callers may be idle before it is closed.
	extraIdleTimeout = time.Minute
)

// sessionKeyFor returns the key of the session on which a call runs. kind is the result of clientKindFor for the call.
// While the server's protocol era is unknown, sessionKeyFor returns the key of the primary session. In the result, slot
// 1 only means that the session runs one call at a time; claimSlotLocked selects the slot number. sessions.mu must be
// held.
func (e *managedServer) sessionKeyFor(call drawbridge.Call, kind string) sessionKey {
	if e.sessions.era == 0 {
		return e.primaryKey()
	}
	c := call.Caller
	k := sessionKey{era: e.sessions.primaryEraLocked(), principal: e.callerAuth().PrincipalFor(c)}
	if e.sessions.era.Has(drawbridge.Legacy) && e.needsStatefulSession(call) {
		k.era = drawbridge.Legacy
	}
	if e.sessions.sessionlessLegacy && e.pool.clients.canBeAsked(c) {
		k.era = drawbridge.Modern
	}
	if e.config.Share == "all" && e.config.Credentials != config.PerCallerCredentials {
		k.principal = e.pool.o.Principal
	}
	switch {
	case e.config.Isolate == "session" && c.Session == "":
		k.clientKind, k.slot, k.singleUse = kind, 1, true // without a session, each call counts as a caller
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

// needsPrivateSession reports whether a stateful caller that declares capabilities needs a session that no other caller
// uses. It returns true in each of these cases:
//
//   - The server is reached over HTTP, where a session is not a process.
//   - The server has sent a request to a client before.
//   - The caller has set a log level.
//   - The caller already has a private session.
//
// In all other cases, the callers of one client kind share a session that was opened with their capabilities, since
// most servers never send requests. If the server sends its first request on a shared session, Drawbridge passes it on
// only if it can be attributed to a caller. Otherwise the request is refused. sessions.mu must be held.
func (e *managedServer) needsPrivateSession(c drawbridge.Caller) bool {
	return e.config.URL != "" || e.sessions.asksClients || e.pool.callerSessions.logLevel(c.Session) != "" ||
		e.sessions.live[sessionKey{era: drawbridge.Legacy, principal: c.Principal, session: c.Session}] != nil
}

// clientKindFor returns the client kind of a call: a key for clients with the same client info and capabilities. It
// returns "" if the choice of the session does not depend on the client kind.
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

// wantsLog reports whether the caller of the call requested log lines. A log line does not name the call that caused
// it. At a stateful server, such a call therefore must not use a session at the same time as another caller's call.
func (e *managedServer) wantsLog(call drawbridge.Call) bool {
	if call.Caller.Era == drawbridge.Modern {
		return requestedLogLevel(call.Params) != ""
	}
	return call.Caller.Session != "" && e.pool.callerSessions.logLevel(call.Caller.Session) != ""
}

var errAllBusy = errors.New("every session is busy with a call or waits for its caller; try again later")

// maxBorrowTries is how many times borrowSession tries to get a session. A further try is necessary if a session was
// lost after it was opened and before the call was sent.
const maxBorrowTries = 4

// borrowSession returns a session for a call, and opens the session if necessary. step describes the call in errors.
// returnSession must be called when the call has ended.
func (e *managedServer) borrowSession(ctx context.Context, call drawbridge.Call, step string) (s *session, err error) {
	var mine sessionKey // the key with the claimed slot, if any
	defer func() {
		if err != nil && mine.slot > 0 {
			e.sessions.releaseSlot(mine)
		}
	}()
	var patience time.Time // when the wait for a slot ends; zero before the wait begins
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
		end := e.pool.starts.delayForCall()
		select {
		case <-ready.wait:
			end()
		case <-ctx.Done():
			end()
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

// waitForSlot waits until freed is closed. Then a slot may be free, or one more session may be permitted, so the caller
// must try again. waitForSlot returns an error if ctx or the server ends first, or at the time until.
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

// An openingWait contains the opening o of a session, and one of the two channels of o. A call must wait until that
// channel is closed, and then try again to get the session.
type openingWait struct {
	o    *sessionOpening
	wait <-chan struct{}
}

// recentFailure returns the error of a recent failed attempt to open the session with the key k or the primary session;
// otherwise nil. It ignores an error about a missing sign-in if the principal of that session has signed in since the
// attempt. sessions.mu must be held.
func (e *managedServer) recentFailure(k sessionKey) error {
	for _, k := range []sessionKey{k, e.primaryKey()} {
		if err := e.sessions.failures.lastError(k); err != nil && !e.signedInSince(k.principal, err) {
			return err
		}
	}
	return nil
}

// acquireOrOpen returns the session with the key k and increments the session's count of calls. If there is no usable
// session with that key, acquireOrOpen returns an openingWait, for which the caller must wait. It starts to open the
// session unless an opening is already in progress. sessions.mu must be held; acquireOrOpen unlocks it.
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
	opener := call // a copy, so that only the copy is moved to the heap
	o := e.requestSession(k, &opener)
	o.markUrgentLocked()
	if s != nil && isClosed(o.ready) {
		return nil, openingWait{o, o.listed}, nil // session lost during the listing: wait for its end
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

// returnSession ends the use of a session that borrowSession returned. callMayRun must be set if the server may still
// process the call. A session over HTTP that runs one call at a time is then closed, since the cancellation can arrive
// before the call's request. The server would then process the old call and the next call of that session at the same
// time.
func (e *managedServer) returnSession(s *session, callMayRun bool) {
	e.sessions.giveBack(s, callMayRun)
}

var errSingleUse = errors.New("the session was for one call, which is over")
