package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/oauth"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// Do makes a call to the server with that ID and returns the result object of the call. Do waits until Run has begun,
// and mounts the server if it is not mounted. The result is as the server sent it, without the server info in _meta.
//
// An error is a *drawbridge.Fault. Its Raw is the server's error object if the server answered with an error. If the
// server is unavailable, the Fault's Code is Transient, or AuthFailure or PolicyBlocked if that is the reason.
// Ambiguous is set if the call may have taken effect.
//
// If a call did not reach the server, it is sent once more. If it is unknown whether the server executed a call, the
// call is repeated at most twice, after a pause. It is repeated only if that is harmless: the method only reads, or the
// tool declares itself read-only or idempotent. A call also runs twice if its server can ask its caller only in a
// stateful session, and the first attempt, in the stateless era, failed for that reason.
//
// If caller and server use different protocol eras, Do translates the server's requests for input during the call:
// sampling, elicitation and roots. A stateless server requests input with a special result. For a stateful caller, Do
// sends each request in that result to the caller's Peer, and calls the server again with the answers.
//
// A stateful server sends a request while it processes the call. For a stateless caller, Do then returns a result that
// requires input, with a requestState that identifies the call. The server continues to process the call. The caller
// must make the call again with the answers and that requestState; Do passes the answers to the server. A requestState
// can be used only once, and only by the same principal. It expires at the call's time limit or after
// [Options.ParkTime], whichever is first.
//
// These functions make the call, from the outermost to the innermost:
//
//   - callAcrossGenerations translates between protocol eras.
//   - callWithSignIn asks the user to sign in if the server requires that.
//   - callWithRetry selects a session and repeats the call if necessary.
//   - callTask creates a task if the tool can only be called as a task.
//   - roundTrip sends one request on the session.
//
// If the answers of a caller require another request to the server, package interop calls callWithSignIn again, through
// interop.CallEnv.
func (f *Fleet) Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
	result, err := f.callServer(ctx, id, call)
	if ctx.Err() == nil { // otherwise the caller ended the call, not the server
		for _, o := range f.options.CallObservers {
			o.CallEnded(id, call, result, err)
		}
	}
	return result, err
}

// callServer does the work of Do, except that it does not call the CallObservers.
func (f *Fleet) callServer(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (
	drawbridge.Result, error) {
	e, err := f.awaitServer(ctx, id)
	if err != nil {
		return drawbridge.Result{}, err
	}
	e.callerAuth().CacheCallerToken(call.Caller)
	result, err := f.callAcrossGenerations(ctx, e, call)
	return result, e.callerAuth().RedactSignInURL(call.Caller, err)
}

// callAcrossGenerations makes a call and translates between the protocol eras of caller and server.
func (f *Fleet) callAcrossGenerations(ctx context.Context, e *managedServer, call drawbridge.Call) (
	drawbridge.Result, error) {
	call.Caller.Capabilities = e.allowedCapabilities(call.Caller)
	if call.Caller.Era != drawbridge.Modern {
		result, err := e.callWithSignIn(ctx, f, call)
		if err == nil && interop.NeedsInput(result.Raw) {
			return interop.CallInRounds(ctx, e.callEnv(f, call), call, result)
		}
		return result, err
	}
	if handle, ok := interop.ParkedCallHandle(call.Params); ok {
		return f.pool.parkedCalls.ResumeCall(ctx, e.config.ID, e.describeCall(call), handle, call)
	}
	if e.mayAskLegacyWay(call.Caller) {
		return f.pool.parkedCalls.BeginCall(ctx, e.callEnv(f, call), call)
	}
	result, err := e.callWithRetry(ctx, f, call)
	if e.needsUserSignIn(call, err) {
		return f.pool.parkedCalls.BeginCall(ctx, e.callEnv(f, call), call) // refused by the server: may be sent again
	}
	return interop.TranslateElicitationError(result, err)
}

// allowedCapabilities returns the client capabilities that are declared to the server for this caller. These are the
// capabilities of the caller, without elicitation if Options.Elicitation forbids the server to use elicitation.
func (e *managedServer) allowedCapabilities(c drawbridge.Caller) json.RawMessage {
	traits := e.pool.clients.traits(c)
	if !traits.declaresElicitation || e.pool.o.Elicitation.BlockReason(e.config, c) == "" {
		return c.Capabilities
	}
	return traits.withoutElicitation
}

// mayAskLegacyWay reports whether the server may send requests to a stateless caller while it processes a call, as
// stateful servers do. That is the case if the caller accepts server requests, and the server is stateful only or its
// protocol era is unknown.
func (e *managedServer) mayAskLegacyWay(c drawbridge.Caller) bool {
	return e.pool.clients.canBeAsked(c) && !e.sessions.knownEra().Has(drawbridge.Modern)
}

// callEnv returns the functions and limits that package interop needs to make further requests to the server for one
// call.
func (e *managedServer) callEnv(f *Fleet, call drawbridge.Call) interop.CallEnv {
	step := e.describeCall(call)
	carry := func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		return e.callWithSignIn(ctx, f, call)
	}
	return interop.CallEnv{
		Server: e.config.ID, Step: step, Capabilities: e.listing.capabilities(), Call: carry,
		Limit: maxCallDuration(e.callTimeout()), Lifetime: e.ctx, Logger: e.log, Elicitations: &e.elicitations,
		Rules: e.pool.o.Elicitation,
		Start: func(work func()) error {
			if !e.workers.start(work) {
				return e.unavailableFault(step, e.notRunningFault())
			}
			return nil
		},
	}
}

// callWithRetry makes a call on a session and repeats it as described at Do.
func (e *managedServer) callWithRetry(ctx context.Context, f *Fleet, call drawbridge.Call) (drawbridge.Result, error) {
	step, resent, asked, repeats := e.describeCall(call), false, false, 0
	for {
		s, err := e.borrowSession(ctx, call, step)
		if err != nil {
			return drawbridge.Result{}, err
		}
		if err := e.checkAdmission(ctx, f, s, call, step); err != nil {
			e.returnSession(s, false)
			return drawbridge.Result{}, err
		}
		result, err := s.callTask(ctx, call)
		if !asked && e.mustRepeatStatefully(s, call, result, err) {
			e.returnSession(s, false)
			asked = true
			continue
		}
		if err == nil {
			e.returnSession(s, false)
			return drawbridge.Result{Raw: result}, nil
		}
		fault := s.callFault(ctx, step, err)
		e.returnSession(s, fault.Ambiguous)
		switch {
		case ctx.Err() != nil:
		case oauth.SignInRequired(err).Blocks():
			s.markLost(err)
		case isUndelivered(err) && !resent:
			s.markLost(err)
			resent = true
			continue
		case errors.Is(err, transport.ErrLost) && waitBeforeRetry(ctx, repeats, fault, e.isRepeatable(call)):
			repeats++
			continue
		}
		return drawbridge.Result{}, fault
	}
}

// checkAdmission returns the error of FleetOptions.AdmitCall for a call, or nil if AdmitCall is not set. A tool may
// have changed after the caller read the tool list. Therefore checkAdmission first waits until the listing that
// listingOf selects was published. If the tools could not be listed, it returns that error.
func (e *managedServer) checkAdmission(ctx context.Context, f *Fleet, s *session, call drawbridge.Call,
	step string) error {
	if f.options.AdmitCall == nil {
		return nil
	}
	o := e.listingOf(s)
	end := func() {}
	if o != nil && !isClosed(o.listed) {
		end = e.pool.starts.delayForCall()
	}
	err := e.waitListed(ctx, o, e.callTimeout())
	end()
	if err == nil {
		if err = s.listError(); err != nil {
			wakeOne(e.signals.relist)
		}
	}
	// The server is listed for Options.Principal. The error of the listing is ignored on a session of another
	// principal: it may only mean that Options.Principal has not signed in.
	if err != nil && (s.isPrimary() || s.key.principal == e.pool.o.Principal) {
		return e.unavailableFault(step, fmt.Errorf("list its tools: %w", err))
	}
	return f.options.AdmitCall(ctx, e.config.ID, call)
}

// listingOf returns the opening of the primary session that a call on the session s must wait for. When that opening
// has ended, the server's tools were listed, or the opening has failed. listingOf returns nil if there is nothing to
// wait for.
func (e *managedServer) listingOf(s *session) *sessionOpening {
	e.sessions.mu.Lock()
	defer e.sessions.mu.Unlock()
	if s.opening != nil {
		return s.opening
	}
	// An extra session does not list the server; the primary session does. While the lock is held, either the listing
	// or an opening in progress is found: an opening ends only after its listing was stored.
	if _, listed := e.listing.get(); !listed {
		o := e.requestSession(e.primaryKey(), nil)
		o.markUrgentLocked()
		return o
	}
	return nil
}

// callFault returns the fault for a call on this session that ended with err.
func (s *session) callFault(ctx context.Context, step string, err error) *drawbridge.Fault {
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case isUndelivered(err):
		return s.server.unavailableFault(step, err)
	case errors.Is(err, transport.ErrLost) && s.isOver():
		err = fmt.Errorf("%w: %w", transport.ErrLost, s.endCause())
	}
	return s.server.callFault(step, err)
}

// isUndelivered reports whether a request certainly did not reach the server's tools: it was not sent, or the server
// did not know its session.
func isUndelivered(err error) bool {
	return errors.Is(err, transport.ErrClosed) || errors.Is(err, transport.ErrSessionExpired)
}

// describeCall returns the step name of a call for faults: "call echo on github".
func (e *managedServer) describeCall(call drawbridge.Call) string {
	name, _ := mcp.TargetName(call.Method, call.Params)
	if call.Method == mcp.MethodToolsCall && name != "" {
		return "call " + name + " on " + string(e.config.ID)
	}
	return call.Method + " on " + string(e.config.ID)
}

// isRepeatable reports whether a call may be sent twice without harm. A tool call may be sent twice if the tool
// declares itself read-only or idempotent. All other methods only read.
func (e *managedServer) isRepeatable(call drawbridge.Call) bool {
	if call.Method != mcp.MethodToolsCall {
		return true
	}
	name, _ := mcp.TargetName(call.Method, call.Params)
	return e.listing.isRepeatable(name)
}

// The names of the timeout settings for connecting and calls, as used in error messages.
const (
	connectTimeoutSetting = "[mcp] connect_timeout"
	callTimeoutSetting    = "[mcp] call_timeout"
)

// callTimeout returns how long a call may continue without a response or a progress notification.
func (e *managedServer) callTimeout() time.Duration {
	if e.config.Timeout > 0 {
		return e.config.Timeout
	}
	return e.pool.o.CallTimeout
}

// callTimeoutName returns the name of the setting that determines callTimeout, for error messages.
func (e *managedServer) callTimeoutName() string {
	if e.config.Timeout > 0 {
		return fmt.Sprintf("timeout of server %q", e.config.ID)
	}
	return callTimeoutSetting
}

// roundTrip sends one request of a call on the session and returns its result.
func (s *session) roundTrip(ctx context.Context, call drawbridge.Call) (json.RawMessage, error) {
	s.raiseLogLevel(ctx, call)
	x := newInFlightCall(ctx, s, call, s.server.callTimeout(), s.server.log)
	s.calls.add(x)
	m, err := s.conn.Call(x.Context(), call.Method, s.paramsForServer(call), x)
	s.calls.remove(x)
	timeout, ok := errors.AsType[*callTimeoutError](x.finish())
	if err != nil && ok && ctx.Err() == nil && !mcp.IsNoRoom(err) {
		timeout.Setting = s.server.callTimeoutName()
		err = timeout
	}
	result, err := transport.ResultOrError(m, err)
	if err == nil {
		err = interop.CheckResultShape(call.Method, result)
	}
	if err != nil {
		return nil, err
	}
	result = interop.CleanServerResult(result)
	if !interop.MayNeedInput(result) {
		return result, nil
	}
	if call.Caller.Era == drawbridge.Modern { // checked for stateful servers too: they may send such a result
		if method, found := interop.UndeclaredRequest(call.Caller.Capabilities, s.server.listing.capabilities(),
			result); found {
			return nil, &drawbridge.Fault{
				Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError,
				Err: fmt.Errorf("the server sent %.40q, which the client did not declare to support", method),
			}
		}
	}
	return s.server.pool.o.Elicitation.PrepareInputRequests(s.server.config.ID, result), nil
}

// paramsForServer returns the params of a call in the form of the session's protocol era. For a stateless server they
// contain the caller's capabilities, never Drawbridge's own.
func (s *session) paramsForServer(call drawbridge.Call) json.RawMessage {
	if s.era == drawbridge.Legacy {
		return interop.ToLegacyParams(call.Params)
	}
	h := s.server.ownRequestMeta(s.version)
	h.Capabilities = nil
	switch {
	case call.Caller.Era == drawbridge.Modern:
		h.Capabilities = call.Caller.Capabilities
	case call.Peer != nil:
		// this form of tasks exists only in the stateful era
		h.Capabilities = s.server.pool.clients.traits(call.Caller).withoutTasks
		fallthrough
	default:
		h.LogLevel = s.server.pool.callerSessions.logLevel(call.Caller.Session)
	}
	return interop.ToModernParams(call.Params, h)
}
