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
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// Do carries a call to a server, which is mounted first if it must be, and gives its result object as the server sent
// it, but for its name for itself. An error is a *drawbridge.Fault: one with Raw for what the server answered, a
// Transient one for a server that is away, an Ambiguous one where the server may have done what was asked. A call that
// was not sent is sent once more; one of unknown outcome whose repetition the server has said to be harmless is so at
// most twice, after a pause.
//
// Where caller and server are of different generations, what the server asks in the midst of the call reaches the
// caller in the caller's own way. A stateful caller is asked by its Peer, as often as the server answers that it needs
// input. A stateless one gets a result that asks for input, with a requestState that names the call, which goes on
// meanwhile: the same call with the answers and that state goes on with it. Such a state is good once, for the
// caller's principal, and until the call's time limit or [Options.ParkTime] ends the call.
func (f *Fleet) Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
	e, err := f.serverByID(id)
	if err != nil {
		return drawbridge.Result{}, err
	}
	e.callerAuth().CacheCallerToken(call.Caller)
	result, err := f.callAcrossGenerations(ctx, e, call)
	return result, e.callerAuth().RedactSignInURL(call.Caller, err)
}

// callAcrossGenerations carries a call in the way that caller and server can be brought together.
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
		return f.pool.parkedCalls.BeginCall(ctx, e.callEnv(f, call), call) // it was refused, and can be carried again
	}
	return interop.TranslateElicitationError(result, err)
}

// allowedCapabilities gives what the server may hear of what its caller can be asked: not every server puts forms
// before everybody.
func (e *managedServer) allowedCapabilities(c drawbridge.Caller) json.RawMessage {
	if !mcp.DeclaresAny(c.Capabilities, "elicitation") || e.pool.o.Elicitation.BlockReason(e.config, c) == "" {
		return c.Capabilities
	}
	return rawjson.Apply(c.Capabilities, rawjson.Drop("elicitation"))
}

// mayAskLegacyWay says whether the server may ask a stateless caller in a way that the caller's generation has no
// words for: it is, or may turn out to be, of the stateful one, and the caller has something that may be asked.
func (e *managedServer) mayAskLegacyWay(c drawbridge.Caller) bool {
	return canBeAsked(c) && !e.speaksEra(drawbridge.Modern)
}

// serverCapabilities gives what the server was last known to declare.
func (e *managedServer) serverCapabilities() json.RawMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listing == nil {
		return nil
	}
	return e.listing.Capabilities
}

// callEnv is the way of one call to the server and back.
func (e *managedServer) callEnv(f *Fleet, call drawbridge.Call) interop.CallEnv {
	step := e.describeCall(call)
	carry := func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		return e.callWithSignIn(ctx, f, call)
	}
	return interop.CallEnv{
		Server: e.config.ID, Step: step, Capabilities: e.serverCapabilities(), Call: carry,
		Limit: maxCallDuration(e.callTimeout()), Lifetime: e.ctx, Logger: e.log, Elicitations: &e.elicitations,
		Rules: e.pool.o.Elicitation,
		Start: func(work func()) error {
			e.mu.Lock()
			defer e.mu.Unlock()
			if !e.startWorker(work) {
				return e.unavailableFault(step, e.notRunningFault())
			}
			return nil
		},
	}
}

// callWithRetry carries a call to the server and its answer back.
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

// checkAdmission waits until what the server lists on the session's connection was told, and asks whether the call may
// still be made: what it is about may be something else by now than what its caller was shown.
func (e *managedServer) checkAdmission(ctx context.Context, f *Fleet, s *session, call drawbridge.Call,
	step string) error {
	if f.options.AdmitCall == nil {
		return nil
	}
	e.mu.Lock()
	o := s.opening
	if o == nil && !e.listedThisRun { // beside the home, which is what is listed
		o = e.requestSession(e.primaryKey(), nil)
	}
	e.mu.Unlock()
	err := e.waitListed(ctx, o, e.callTimeout())
	e.mu.Lock()
	if err == nil && s.listErr != nil {
		wakeOne(e.relistSignal)
		err = s.listErr
	}
	e.mu.Unlock()
	// else it is not for want of the caller's own entrance
	if err != nil && (s.isPrimary() || s.key.principal == e.pool.o.Principal) {
		return e.unavailableFault(step, fmt.Errorf("what it lists now is not known: %w", err))
	}
	return f.options.AdmitCall(ctx, e.config.ID, call)
}

// callFault is why a call on this session has no result.
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

// isUndelivered says whether a request surely did not reach the server's tools: it was not sent, or its session was
// unknown.
func isUndelivered(err error) bool {
	return errors.Is(err, transport.ErrClosed) || errors.Is(err, transport.ErrSessionExpired)
}

// describeCall names a call for faults: "call echo on github".
func (e *managedServer) describeCall(call drawbridge.Call) string {
	name, _ := mcp.TargetName(call.Method, call.Params)
	if call.Method == mcp.MethodToolsCall && name != "" {
		return fmt.Sprintf("call %s on %s", name, e.config.ID)
	}
	return fmt.Sprintf("%s on %s", call.Method, e.config.ID)
}

// isRepeatable says whether a call may be sent twice: reading always may, a tool when the server says so.
func (e *managedServer) isRepeatable(call drawbridge.Call) bool {
	if call.Method != mcp.MethodToolsCall {
		return true
	}
	name, _ := mcp.TargetName(call.Method, call.Params)
	e.mu.Lock()
	listing := e.listing
	e.mu.Unlock()
	return listing != nil && isToolRepeatable(listing.Tools, name)
}

// callTimeout is how long a call may go without an answer or progress.
func (e *managedServer) callTimeout() time.Duration {
	if e.config.Timeout > 0 {
		return e.config.Timeout
	}
	return e.pool.o.CallTimeout
}

// roundTrip carries a call over a session.
func (s *session) roundTrip(ctx context.Context, call drawbridge.Call) (json.RawMessage, error) {
	s.raiseLogLevel(ctx, call)
	x := newInFlightCall(ctx, s, call, s.server.callTimeout(), s.server.log)
	s.trackCall(x)
	m, err := s.conn.Call(x.Context(), call.Method, s.paramsForServer(call), x)
	s.untrackCall(x)
	if cause := x.finish(); err != nil && cause != nil && ctx.Err() == nil {
		err = cause
	}
	result, err := transport.ResultOrError(m, err)
	if err != nil {
		return nil, err
	}
	result = interop.CleanServerResult(result)
	if !interop.MayNeedInput(result) {
		return result, nil
	}
	if call.Caller.Era == drawbridge.Modern { // whatever words a server of sessions may use
		if method, found := interop.UndeclaredRequest(call.Caller.Capabilities, s.server.serverCapabilities(),
			result); found {
			return nil, &drawbridge.Fault{
				Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError,
				Err: fmt.Errorf("the server asks for %.40q, which the client did not declare that it answers", method),
			}
		}
	}
	return s.server.pool.o.Elicitation.PrepareInputRequests(s.server.config.ID, result), nil
}

// paramsForServer gives the params of a call as the session's server is to see them. A server of the stateless
// generation hears what the caller declared, in whichever way it did: never what we could do.
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
		// of the stateful generation alone
		h.Capabilities = rawjson.Apply(call.Caller.Capabilities, rawjson.Drop("tasks"))
		fallthrough
	default:
		h.LogLevel = s.server.pool.callerSessions.logLevel(call.Caller.Session)
	}
	return interop.ToModernParams(call.Params, h)
}
