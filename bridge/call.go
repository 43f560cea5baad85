package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/bridge/remote"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// hardLimit is how many times its idle limit a call may last, whatever its progress.
const hardLimit = 10

// Do carries a call to a server, which is mounted first if it must be, and gives its result object as the server sent
// it, but for its name for itself. An error is a *drawbridge.Fault: one with Raw for what the server answered, a
// Transient one for a server that is away, an Ambiguous one where the server may have done what was asked. A call that
// was not sent is sent once more; so is one of unknown outcome whose repetition the server has said to be harmless.
func (f *Fleet) Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
	e, err := f.endpoint(id)
	if err != nil {
		return drawbridge.Result{}, err
	}
	step := e.stepOf(call)
	var resent, repeated bool
	for {
		s, err := e.borrow(ctx, call, step)
		if err != nil {
			return drawbridge.Result{}, err
		}
		result, err := s.do(ctx, call)
		e.giveBack(s)
		switch {
		case err == nil:
			return drawbridge.Result{Raw: result}, nil
		case ctx.Err() != nil:
		case neverArrived(err) && !resent:
			s.lose(err)
			resent = true
			continue
		case errors.Is(err, link.ErrLost) && !repeated && e.repeatable(call):
			repeated = true
			continue
		}
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case neverArrived(err):
			return drawbridge.Result{}, e.unavailable(step, err)
		case errors.Is(err, link.ErrLost) && s.over():
			err = fmt.Errorf("%w: %w", link.ErrLost, s.ending())
		}
		return drawbridge.Result{}, e.callFault(step, err)
	}
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

// mostTries bounds how often a call waits for a session that is gone again before the call could be sent.
const mostTries = 4

// borrow gives a session for a call, opened if it must be; giveBack ends that.
func (e *endpoint) borrow(ctx context.Context, call drawbridge.Call, step string) (*session, error) {
	for range mostTries {
		e.mu.Lock()
		k := e.keyFor(call.Caller)
		s := e.sessions[k]
		if s != nil && s.enter() {
			e.mu.Unlock()
			return s, nil
		}
		if e.openings[k] == nil && !e.failed.IsZero() && time.Since(e.failed) < justNow {
			failure := e.failure
			e.mu.Unlock()
			return nil, e.unavailable(step, failure)
		}
		opener := call // a copy, so that the call itself need not outlive its caller
		o := e.want(k, &opener)
		ready := o.ready
		if s != nil && isClosed(ready) {
			ready = o.listed // it was lost while it was listed: that has to end first
		}
		e.mu.Unlock()
		select {
		case <-ready:
		case <-ctx.Done():
			return nil, &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: step, Err: ctx.Err()}
		}
		if o.err != nil {
			return nil, e.unavailable(step, o.err)
		}
	}
	return nil, e.unavailable(step, errors.New("it ends as soon as it starts"))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (e *endpoint) giveBack(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.leave()
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
	if listing == nil {
		return false
	}
	for _, tool := range listing.Tools {
		if wire.GetText(tool, "name") == name {
			hints := wire.Get(tool, "annotations")
			return string(wire.Get(hints, "readOnlyHint")) == "true" || string(wire.Get(hints, "idempotentHint")) == "true"
		}
	}
	return false
}

// do carries a call over a session.
func (s *session) do(ctx context.Context, call drawbridge.Call) (json.RawMessage, error) {
	limit := s.e.fleet.o.CallTimeout
	if s.e.row.Timeout > 0 {
		limit = s.e.row.Timeout
	}
	x := newExchange(ctx, s, call, limit)
	s.begin(x)
	m, err := s.conn.Do(x.ctx, call.Method, s.paramsOf(call), x)
	s.finish(x)
	if cause := x.end(); err != nil && cause != nil && ctx.Err() == nil {
		err = cause
	}
	switch {
	case err != nil:
		return nil, err
	case m.Error != nil:
		return nil, &replyError{m.Error}
	}
	if s.era == drawbridge.Modern && call.Caller.Era == drawbridge.Legacy {
		if err := needsInput(m.Result); err != nil {
			return nil, err
		}
	}
	return questionsNamed(s.e.row.ID, fromServer(m.Result)), nil
}

// paramsOf gives the params of a call as the session's server is to see them.
func (s *session) paramsOf(call drawbridge.Call) json.RawMessage {
	if s.era == drawbridge.Legacy {
		return toLegacy(call.Params)
	}
	h := s.e.hop(s.version)
	if call.Caller.Era == drawbridge.Modern {
		h.capabilities = call.Caller.Capabilities
	} else {
		h.level = s.e.fleet.levelOf(call.Caller.Session)
	}
	return toModern(call.Params, h)
}

// needsInput is the error for a result that asks a caller of the legacy generation something in the way of the modern one.
func needsInput(result json.RawMessage) error {
	if !bytes.Contains(result, []byte("input_required")) || wire.GetText(result, "resultType") != "input_required" {
		return nil
	}
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput,
		Step: "the server wants input from the caller",
		Err:  errors.New("it asks in the way of protocol 2026-07-28, which this caller's protocol has no words for"),
	}
}
