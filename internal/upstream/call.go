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

// Do makes a call to a server and returns its result object. Do waits until Run has begun, and mounts the server if it
// is not mounted. The result is as the server sent it, without the server info in _meta. An error is a
// *drawbridge.Fault. Raw is set for an error response of the server. The code is Transient if the server is
// unavailable. Ambiguous is set if the call may have taken effect.
//
// If a call did not reach the server, it is sent once more. If the outcome of a call is unknown, the call is repeated
// at most twice, after a pause, and only if repeating it is harmless.
//
// If caller and server use different protocol eras, Do translates the server's requests during the call into the
// caller's era. A stateful caller receives such a request through its Peer, each time the server's result requires
// input. A stateless caller receives a result that requires input, with a requestState that identifies the call. The
// call continues meanwhile. The caller resumes the call by repeating it with the answers and that requestState. A
// requestState is valid once and for the caller's principal only. It expires at the call's time limit or after
// [Options.ParkTime].
//
// These functions make the call, from the outermost to the innermost:
//
//   - callAcrossGenerations translates between protocol eras.
//   - callWithSignIn asks the user to sign in during the call.
//   - callWithRetry chooses a session and repeats the call.
//   - callTask calls a tool that must be called as a task.
//   - roundTrip sends one request on the session.
//
// For each further round of a call, interop.CallEnv calls callWithSignIn again.
func (f *Fleet) Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
	result, err := f.callServer(ctx, id, call)
	if ctx.Err() == nil { // otherwise the caller ended the call, not the server
		for _, o := range f.options.CallObservers {
			o.CallEnded(id, call, result, err)
		}
	}
	return result, err
}

// callServer makes the call of Do, without notifying the observers.
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

// allowedCapabilities returns the caller's capabilities that the server may learn. Elicitation is removed if the rules
// block it.
func (e *managedServer) allowedCapabilities(c drawbridge.Caller) json.RawMessage {
	traits := e.pool.clients.traits(c)
	if !traits.declaresElicitation || e.pool.o.Elicitation.BlockReason(e.config, c) == "" {
		return c.Capabilities
	}
	return traits.withoutElicitation
}

// mayAskLegacyWay reports whether the server may send requests in the stateful form to a stateless caller. The caller
// must accept server requests, and the server must be stateful or of unknown era.
func (e *managedServer) mayAskLegacyWay(c drawbridge.Caller) bool {
	return e.pool.clients.canBeAsked(c) && !e.sessions.knownEra().Has(drawbridge.Modern)
}

// callEnv returns the environment in which interop makes the requests of one call.
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
	step, resent, repeats := e.describeCall(call), false, 0
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

// checkAdmission waits until the listing of the session's connection was published, and then calls AdmitCall. The tool
// may have changed since its caller saw the list.
func (e *managedServer) checkAdmission(ctx context.Context, f *Fleet, s *session, call drawbridge.Call,
	step string) error {
	if f.options.AdmitCall == nil {
		return nil
	}
	o := e.listingOf(s)
	err := e.waitListed(ctx, o, e.callTimeout())
	if err == nil {
		if err = s.listError(); err != nil {
			wakeOne(e.signals.relist)
		}
	}
	// A session of another principal works without the listing. The listing may fail because only the gateway's
	// principal has not signed in.
	if err != nil && (s.isPrimary() || s.key.principal == e.pool.o.Principal) {
		return e.unavailableFault(step, fmt.Errorf("list its tools: %w", err))
	}
	return f.options.AdmitCall(ctx, e.config.ID, call)
}

// listingOf returns the opening of the primary session to wait for until the session's connection is listed. It returns
// nil if the connection is listed.
func (e *managedServer) listingOf(s *session) *sessionOpening {
	e.sessions.mu.Lock()
	defer e.sessions.mu.Unlock()
	if s.opening != nil {
		return s.opening
	}
	// For an extra session, the primary session lists the server. The lock is held during the check, since an opening
	// ends after its listing was stored.
	if _, listed := e.listing.get(); !listed {
		return e.requestSession(e.primaryKey(), nil)
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
		return fmt.Sprintf("call %s on %s", name, e.config.ID)
	}
	return fmt.Sprintf("%s on %s", call.Method, e.config.ID)
}

// isRepeatable reports whether a call may be sent twice. A tool call may if its tool declares that repeating is
// harmless. All other methods only read.
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
	if err != nil && ok && ctx.Err() == nil {
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
	if call.Caller.Era == drawbridge.Modern { // a stateful server may send these members too
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
