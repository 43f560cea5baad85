package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/again"
	"github.com/drawbridge-mcp/drawbridge/bridge/callers"
	"github.com/drawbridge-mcp/drawbridge/bridge/exchange"
	"github.com/drawbridge-mcp/drawbridge/bridge/hop"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/bridge/remote"
	"github.com/drawbridge-mcp/drawbridge/bridge/signin"
	"github.com/drawbridge-mcp/drawbridge/bridge/survey"
	"github.com/drawbridge-mcp/drawbridge/bridge/talk"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Do carries a call to a server, which is mounted first if it must be, and gives its result object as the server sent
// it, but for its name for itself. An error is a *drawbridge.Fault: one with Raw for what the server answered, a
// Transient one for a server that is away, an Ambiguous one where the server may have done what was asked. A call that
// was not sent is sent once more; one of unknown outcome whose repetition the server has said to be harmless is so at most
// twice, after a pause.
//
// Where caller and server are of different generations, what the server asks in the midst of the call reaches the caller
// in the caller's own way. A stateful caller is asked by its Peer, as often as the server answers that it needs input. A
// stateless one gets a result that asks for input, with a requestState that names the call, which goes on meanwhile: the
// same call with the answers and that state goes on with it. Such a state is good once, for the caller's principal, and
// until the call's time limit or [Options.ParkTime] ends the call.
func (f *Fleet) Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
	e, err := f.endpoint(id)
	if err != nil {
		return drawbridge.Result{}, err
	}
	e.entrance().Vouch(call.Caller)
	result, err := f.converse(ctx, e, call)
	return result, e.entrance().Discreet(call.Caller, err)
}

// converse carries a call in the way that caller and server can be brought together.
func (f *Fleet) converse(ctx context.Context, e *endpoint, call drawbridge.Call) (drawbridge.Result, error) {
	call.Caller.Capabilities = e.admitted(call.Caller)
	if call.Caller.Era != drawbridge.Modern {
		result, err := e.persuade(ctx, f, call)
		if err == nil && talk.NeedsInput(result.Raw) {
			return talk.InRounds(ctx, e.line(f, call), call, result)
		}
		return result, err
	}
	if handle, ok := talk.Handle(call.Params); ok {
		return f.pool.parking.Resume(ctx, e.row.ID, e.stepOf(call), handle, call)
	}
	if e.mayAsk(call.Caller) {
		return f.pool.parking.Begin(ctx, e.line(f, call), call)
	}
	result, err := e.carry(ctx, f, call)
	if e.visitable(call, err) {
		return f.pool.parking.Begin(ctx, e.line(f, call), call) // it was refused, and can be carried again
	}
	return talk.InWords(result, err)
}

// admitted gives what the server may hear of what its caller can be asked: not every server puts forms before everybody.
func (e *endpoint) admitted(c drawbridge.Caller) json.RawMessage {
	if !wire.Declares(c.Capabilities, "elicitation") || e.pool.o.Elicitation.Bars(e.row, c) == "" {
		return c.Capabilities
	}
	return wire.Apply(c.Capabilities, wire.Drop("elicitation"))
}

// mayAsk says whether the server may ask a stateless caller in a way that the caller's generation has no words for: it
// is, or may turn out to be, of the stateful one, and the caller has something that may be asked.
func (e *endpoint) mayAsk(c drawbridge.Caller) bool {
	return callers.CanBeAsked(c) && !e.speaks(drawbridge.Modern)
}

// declared gives what the server was last known to declare.
func (e *endpoint) declared() json.RawMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listing == nil {
		return nil
	}
	return e.listing.Capabilities
}

// line is the way of one call to the server and back.
func (e *endpoint) line(f *Fleet, call drawbridge.Call) talk.Line {
	step := e.stepOf(call)
	carry := func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		return e.persuade(ctx, f, call)
	}
	return talk.Line{
		Server: e.row.ID, Step: step, Capabilities: e.declared(), Carry: carry, Limit: exchange.Longest(e.limit()), Life: e.ctx, Logger: e.log, Forms: &e.forms, Rules: e.pool.o.Elicitation,
		Start: func(work func()) error {
			e.mu.Lock()
			defer e.mu.Unlock()
			if !e.start(work) {
				return e.unavailable(step, e.notRunning())
			}
			return nil
		},
	}
}

// carry carries a call to the server and its answer back.
func (e *endpoint) carry(ctx context.Context, f *Fleet, call drawbridge.Call) (drawbridge.Result, error) {
	step, resent, repeats := e.stepOf(call), false, 0
	for {
		s, err := e.borrow(ctx, call, step)
		if err != nil {
			return drawbridge.Result{}, err
		}
		if err := e.admit(ctx, f, s, call, step); err != nil {
			e.giveBack(s, false)
			return drawbridge.Result{}, err
		}
		result, err := s.answer(ctx, call)
		if err == nil {
			e.giveBack(s, false)
			return drawbridge.Result{Raw: result}, nil
		}
		fault := s.failed(ctx, step, err)
		e.giveBack(s, fault.Ambiguous)
		switch {
		case ctx.Err() != nil:
		case signin.Needed(err).Bars():
			s.lose(err)
		case neverArrived(err) && !resent:
			s.lose(err)
			resent = true
			continue
		case errors.Is(err, link.ErrLost) && again.May(ctx, repeats, fault, e.repeatable(call)):
			repeats++
			continue
		}
		return drawbridge.Result{}, fault
	}
}

// admit waits until what the server lists on the session's connection was told, and asks whether the call may still be made: what
// it is about may be something else by now than what its caller was shown.
func (e *endpoint) admit(ctx context.Context, f *Fleet, s *session, call drawbridge.Call, step string) error {
	if f.part.Admit == nil {
		return nil
	}
	e.mu.Lock()
	o := s.opening
	if o == nil && !e.fresh { // beside the home, which is what is listed
		o = e.want(e.homeKey(), nil)
	}
	e.mu.Unlock()
	err := e.awaitListed(ctx, o, e.limit())
	e.mu.Lock()
	if err == nil && s.unlisted != nil {
		signal(e.changed)
		err = s.unlisted
	}
	e.mu.Unlock()
	if err != nil && (s.home() || s.key.principal == e.pool.o.Principal) { // else it is not for want of the caller's own entrance
		return e.unavailable(step, fmt.Errorf("what it lists now is not known: %w", err))
	}
	return f.part.Admit(ctx, e.row.ID, call)
}

// failed is why a call on this session has no result.
func (s *session) failed(ctx context.Context, step string, err error) *drawbridge.Fault {
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case neverArrived(err):
		return s.e.unavailable(step, err)
	case errors.Is(err, link.ErrLost) && s.over():
		err = fmt.Errorf("%w: %w", link.ErrLost, s.ending())
	}
	return s.e.callFault(step, err)
}

// neverArrived says whether a request surely did not reach the server's tools: it was not sent, or its session was unknown.
func neverArrived(err error) bool {
	return errors.Is(err, link.ErrClosed) || errors.Is(err, remote.ErrSession)
}

// stepOf names a call for faults: "call echo on github".
func (e *endpoint) stepOf(call drawbridge.Call) string {
	name, _ := wire.NameOf(call.Method, call.Params)
	if call.Method == wire.MethodToolsCall && name != "" {
		return fmt.Sprintf("call %s on %s", name, e.row.ID)
	}
	return fmt.Sprintf("%s on %s", call.Method, e.row.ID)
}

// repeatable says whether a call may be sent twice: reading always may, a tool when the server says so.
func (e *endpoint) repeatable(call drawbridge.Call) bool {
	if call.Method != wire.MethodToolsCall {
		return true
	}
	name, _ := wire.NameOf(call.Method, call.Params)
	e.mu.Lock()
	listing := e.listing
	e.mu.Unlock()
	return listing != nil && survey.Repeatable(listing.Tools, name)
}

// limit is how long a call may go without an answer or progress.
func (e *endpoint) limit() time.Duration {
	if e.row.Timeout > 0 {
		return e.row.Timeout
	}
	return e.pool.o.CallTimeout
}

// do carries a call over a session.
func (s *session) do(ctx context.Context, call drawbridge.Call) (json.RawMessage, error) {
	s.hear(ctx, call)
	x := exchange.New(ctx, s, call, s.e.limit(), s.e.log)
	s.begin(x)
	m, err := s.conn.Do(x.Context(), call.Method, s.paramsOf(call), x)
	s.finish(x)
	if cause := x.End(); err != nil && cause != nil && ctx.Err() == nil {
		err = cause
	}
	result, err := link.Result(m, err)
	if err != nil {
		return nil, err
	}
	result = hop.FromServer(result)
	if !talk.AsksInput(result) {
		return result, nil
	}
	if call.Caller.Era == drawbridge.Modern { // whatever words a server of sessions may use
		if method, found := talk.Undeclared(call.Caller.Capabilities, s.e.declared(), result); found {
			return nil, &drawbridge.Fault{
				Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError,
				Err: fmt.Errorf("the server asks for %.40q, which the client did not declare that it answers", method),
			}
		}
	}
	return s.e.pool.o.Elicitation.NamedIn(s.e.row.ID, result), nil
}

// paramsOf gives the params of a call as the session's server is to see them. A server of the stateless generation hears
// what the caller declared, in whichever way it did: never what we could do.
func (s *session) paramsOf(call drawbridge.Call) json.RawMessage {
	if s.era == drawbridge.Legacy {
		return hop.ToLegacy(call.Params)
	}
	h := s.e.hop(s.version)
	h.Capabilities = nil
	switch {
	case call.Caller.Era == drawbridge.Modern:
		h.Capabilities = call.Caller.Capabilities
	case call.Peer != nil:
		h.Capabilities = wire.Apply(call.Caller.Capabilities, wire.Drop("tasks")) // of the stateful generation alone
		fallthrough
	default:
		h.Level = s.e.pool.callers.Level(call.Caller.Session)
	}
	return hop.ToModern(call.Params, h)
}
