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

// Do makes a call to a server and returns its result object. It waits until Run has begun, and mounts the server first
// if necessary. The result is as the server sent it, less the server's name for itself. An error is a
// *drawbridge.Fault: with Raw for an error response, Transient for a server that is away, Ambiguous if the call may
// have taken effect.
//
// A call that was not sent is sent once more. A call of unknown outcome is repeated at most twice, after a pause, and
// only if the server declared that repeating is harmless.
//
// If caller and server speak different eras, a server request during the call reaches the caller in the caller's own
// form. A stateful caller is asked by its Peer as often as the server answers that it needs input. A stateless caller
// gets a result that asks for input, with a requestState that names the call, which goes on meanwhile. Repeating the
// call with the answers and that state resumes it. The state is good once, for the caller's principal, until the call's
// time limit or [Options.ParkTime].
//
// The layers below, from the outside in: callAcrossGenerations (protocol eras), callWithSignIn (sign-in during the
// call), callWithRetry (session and retries), callTask (tools that exist only as tasks), roundTrip (one request on the
// session). interop.CallEnv leads back into callWithSignIn for every repeated round.
func (f *Fleet) Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
	result, err := f.callServer(ctx, id, call)
	if ctx.Err() == nil { // otherwise the caller ended the call, not the server
		for _, o := range f.options.CallObservers {
			o.CallEnded(id, call, result, err)
		}
	}
	return result, err
}

// callServer makes a call for Do.
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
		return f.pool.parkedCalls.BeginCall(ctx, e.callEnv(f, call), call) // refused, so it may be sent again
	}
	return interop.TranslateElicitationError(result, err)
}

// allowedCapabilities returns the capabilities that the server may learn: elicitation is left out if the rules block
// it.
func (e *managedServer) allowedCapabilities(c drawbridge.Caller) json.RawMessage {
	traits := e.pool.clients.traits(c)
	if !traits.declaresElicitation || e.pool.o.Elicitation.BlockReason(e.config, c) == "" {
		return c.Capabilities
	}
	return traits.withoutElicitation
}

// mayAskLegacyWay reports whether the server may send requests that a stateless caller's era does not have. That is so
// for a server that is, or may turn out to be, stateful, and a caller that accepts requests.
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

// callWithRetry makes a call on a session and repeats it as far as Do allows.
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

// checkAdmission waits until the listing of the session's connection was published, then asks AdmitCall. The tool may
// have changed since its caller saw it.
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
	// otherwise only the caller's own sign-in is missing
	if err != nil && (s.isPrimary() || s.key.principal == e.pool.o.Principal) {
		return e.unavailableFault(step, fmt.Errorf("list its tools: %w", err))
	}
	return f.options.AdmitCall(ctx, e.config.ID, call)
}

// listingOf returns the opening of the primary session that ends with the listing of the session's connection, or nil
// if that is listed.
func (e *managedServer) listingOf(s *session) *sessionOpening {
	e.sessions.mu.Lock()
	defer e.sessions.mu.Unlock()
	if s.opening != nil {
		return s.opening
	}
	// An extra session: the primary one is listed. The lock is held meanwhile, since the opening ends after its
	// listing.
	if _, listed := e.listing.get(); !listed {
		return e.requestSession(e.primaryKey(), nil)
	}
	return nil
}

// callFault returns the fault for a call without a result on this session.
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

// isUndelivered reports whether a request surely did not reach the server's tools: it was not sent, or its session was
// unknown.
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

// isRepeatable reports whether a call may be sent twice: reads always, tools if the server says so.
func (e *managedServer) isRepeatable(call drawbridge.Call) bool {
	if call.Method != mcp.MethodToolsCall {
		return true
	}
	name, _ := mcp.TargetName(call.Method, call.Params)
	return e.listing.isRepeatable(name)
}

// The settings that limit connecting and calls, as messages name them.
const (
	connectTimeoutSetting = "[mcp] connect_timeout"
	callTimeoutSetting    = "[mcp] call_timeout"
)

// callTimeout returns how long a call may go without an answer or progress.
func (e *managedServer) callTimeout() time.Duration {
	if e.config.Timeout > 0 {
		return e.config.Timeout
	}
	return e.pool.o.CallTimeout
}

// callTimeoutName returns the setting that callTimeout is from, as messages name it.
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
	if call.Caller.Era == drawbridge.Modern { // a stateful server may use these members too
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

// paramsForServer returns the params of a call for this session's server. A stateless server learns the caller's
// capabilities, never ours.
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
		// tasks in this form exist only in the stateful era
		h.Capabilities = s.server.pool.clients.traits(call.Caller).withoutTasks
		fallthrough
	default:
		h.LogLevel = s.server.pool.callerSessions.logLevel(call.Caller.Session)
	}
	return interop.ToModernParams(call.Params, h)
}
