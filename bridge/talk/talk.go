package talk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Line is the way to a server and back for one call.
type Line struct {
	// Server is whose line it is, Step names the call for faults: "call echo on github".
	Server drawbridge.ServerID
	Step   string
	// Capabilities are what the server declares; they may be nil.
	Capabilities json.RawMessage
	// Carry carries the call to the server and its answer back. What the server asks meanwhile it asks the call's Peer.
	Carry func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error)
	// Limit is how long a call with all its questions may last, for InRounds; Carry keeps it for the others.
	Limit time.Duration
	// Life ends with the server; Start runs work in a goroutine that somebody waits for. Both are for Begin.
	Life  context.Context
	Start func(work func()) error
	// Logger must not be nil.
	Logger *slog.Logger
	// Forms passes the server's elicitations on, by Rules; nil passes all of them on.
	Forms *Desk
	Rules Rules
}

// unfinished is why a call that was on its way has no result.
func (l Line) unfinished(err error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: l.Step, Err: err, Ambiguous: true}
}

// A talk is the call of a stateless caller on a server that may ask in the midst of it. The caller's requests come and go:
// the first begins the call, each later one brings answers, and the last takes the result. The call itself goes on in a
// goroutine of its own. Between two requests the talk is parked.
type talk struct {
	line      Line
	principal string
	ctx       context.Context // the call's own
	cancel    context.CancelCauseFunc
	// wake holds one token: a question, something to tell or the end has come.
	wake chan struct{}

	mu sync.Mutex
	// peer and token are those of the request that waits; peer is nil while nobody listens.
	peer  drawbridge.Peer
	token json.RawMessage
	// capabilities are what the last request declared that its caller can be asked.
	capabilities json.RawMessage
	// begunLogs says that the request that began the call wants log lines, logs that it or the last one does.
	begunLogs, logs bool
	// said is what no request has heard yet.
	said backlog
	// open are the questions without an answer, in the order they came; asked counts all.
	open  []*question
	asked int
	// over says that the call has ended, with result or err.
	over   bool
	result drawbridge.Result
	err    error
}

// A question is a request of the server that waits for its answer.
type question struct {
	name   string
	method string
	params json.RawMessage
	answer chan answer // has room for the one answer
}

// An answer is a result object, or why there is none.
type answer struct {
	result json.RawMessage
	err    error
}

var _ drawbridge.Peer = (*talk)(nil)

// Begin begins a talk and gives its first result: the server's, or one that asks the caller for input. The error is the
// line's own, or a *drawbridge.Fault for a caller that went away.
func (p *Parking) Begin(ctx context.Context, line Line, call drawbridge.Call) (drawbridge.Result, error) {
	t := &talk{
		line: line, principal: call.Caller.Principal, wake: make(chan struct{}, 1),
		begunLogs: wantsLogs(call), said: backlog{moved: make(chan struct{})},
	}
	t.ctx, t.cancel = context.WithCancelCause(line.Life)
	own := call
	own.Peer = t
	// Progress is always told: a later request may want it. The token is replaced by that request's own.
	own.Params = wire.Apply(call.Params, wire.Put(json.RawMessage("0"), "_meta", wire.MetaProgressToken))
	t.mu.Lock()
	t.attend(call)
	t.mu.Unlock()
	err := line.Start(func() {
		defer t.cancel(nil)
		t.finish(t.run(own))
	})
	if err != nil {
		t.cancel(nil)
		return drawbridge.Result{}, err
	}
	return t.wait(ctx, p, call)
}

// attend has the talk speak to the request of this call, and takes back what that one did not declare to answer: each
// request declares anew. It needs mu.
func (t *talk) attend(call drawbridge.Call) {
	t.peer, t.token = call.Peer, wire.Get(call.Params, "_meta", wire.MetaProgressToken)
	t.capabilities, t.logs = call.Caller.Capabilities, t.begunLogs || wantsLogs(call)
	t.open = slices.DeleteFunc(t.open, func(q *question) bool {
		covered := t.covers(q.method, q.params)
		if !covered {
			q.answer <- answer{err: undeclared(q.method)}
		}
		return !covered
	})
}

func wantsLogs(call drawbridge.Call) bool {
	return wire.GetText(call.Params, "_meta", wire.MetaLogLevel) != ""
}

// covers says whether the last request declared that its caller can be asked that. It needs mu.
func (t *talk) covers(method string, params json.RawMessage) bool {
	return wire.MayAskBy(t.capabilities, t.line.Capabilities, method, params)
}

var errUndeclared = errors.New("the client did not declare it")

// undeclared refuses a question as a client would that does not know it.
func undeclared(method string) error {
	said := "method not found"
	if capability := wire.Capability(method); capability != "" {
		said = fmt.Sprintf("%s: the client did not declare %s", method, capability)
	}
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: "ask the caller: " + method, Err: errUndeclared,
		Raw: wire.ErrorObject(wire.CodeMethodNotFound, said, nil),
	}
}

// wait gives what comes of the talk next: the end, or questions. If the caller goes away the call ends.
func (t *talk) wait(ctx context.Context, p *Parking, call drawbridge.Call) (drawbridge.Result, error) {
	defer t.leave()
	for {
		// What was said before a question, or the end, is told before it.
		over, asked := t.state()
		t.deliver(ctx)
		_, asks := t.state()
		switch {
		case over:
			return t.result, t.err
		case asked && asks && ctx.Err() == nil:
			if result, ok := p.park(t); ok {
				return result, nil
			}
			t.refuse()
		}
		select {
		case <-t.wake:
		case <-ctx.Done():
			t.cancel(context.Cause(ctx))
			return drawbridge.Result{}, t.line.unfinished(ctx.Err())
		}
	}
}

// state says whether the call has ended, and whether there are open questions.
func (t *talk) state() (over, asks bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over, len(t.open) > 0
}

var errParked = &drawbridge.Fault{
	Kind: drawbridge.BridgeFault, Code: drawbridge.RateLimited,
	Step: "ask the caller", Err: errors.New("too many of its calls wait for answers already"),
}

// Ask takes a question of the server, and gives the answer that a later request of the caller brings. It refuses what the
// last request did not declare, and more than 32 questions at once.
func (t *talk) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	q, err := t.admit(method, params)
	if err != nil {
		return nil, err
	}
	t.ring()
	defer t.forget(q)
	select {
	case a := <-q.answer:
		return a.result, a.err
	case <-ctx.Done():
		return nil, t.unanswered(method, ctx.Err())
	case <-t.ctx.Done():
		return nil, t.unanswered(method, context.Cause(t.ctx))
	}
}

// admit takes a question in, if it can be asked.
func (t *talk) admit(method string, params json.RawMessage) (*question, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
		return nil, t.unanswered(method, errors.New("its call has ended"))
	case !t.covers(method, params):
		return nil, undeclared(method)
	case len(t.open) >= mostQuestions:
		return nil, &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.RateLimited, Step: "ask the caller: " + method, Err: tooMany(len(t.open) + 1),
		}
	}
	t.asked++
	q := &question{strconv.Itoa(t.asked), method, params, make(chan answer, 1)}
	t.open = append(t.open, q)
	return q, nil
}

func (t *talk) unanswered(method string, err error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: "ask the caller: " + method, Err: err}
}

// ring wakes whoever waits, now or next.
func (t *talk) ring() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// forget takes a question back.
func (t *talk) forget(q *question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = slices.DeleteFunc(t.open, func(other *question) bool { return other == q })
}

// refuse answers every open question with a refusal.
func (t *talk) refuse() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range t.open {
		q.answer <- answer{err: errParked}
	}
	t.open = nil
}

// take has the talk attend to the request of a call, and gives the open questions the answers that it brings. What was not
// asked, or is not asked any more, is passed over. It changes nothing where an answer is no object, and says so.
func (t *talk) take(call drawbridge.Call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	responses := wire.Get(call.Params, "inputResponses")
	results := map[*question]json.RawMessage{}
	for _, q := range t.open {
		result := wire.Get(responses, q.name)
		if result != nil && result[0] != '{' {
			return fmt.Errorf("inputResponses: the answer to %q is no object", q.name)
		}
		results[q] = result
	}
	t.open = slices.DeleteFunc(t.open, func(q *question) bool {
		if results[q] != nil {
			q.answer <- answer{result: results[q]}
		}
		return results[q] != nil
	})
	t.attend(call)
	return nil
}

// finish ends the talk. Whoever waits, or comes back, takes the result.
func (t *talk) finish(result drawbridge.Result, err error) {
	t.mu.Lock()
	t.over, t.result, t.err = true, result, err
	t.mu.Unlock()
	t.ring()
}

// asks gives the result that asks the caller what is open, for a retry with this handle.
func (t *talk) asks(handle string) drawbridge.Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range t.open {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(wire.AppendQuoted(out, q.name), `:{"method":`...)
		out = wire.AppendQuoted(out, q.method)
		if q.params != nil {
			out = append(append(out, `,"params":`...), q.params...)
		}
		out = append(out, '}')
	}
	out = append(out, `},"requestState":`...)
	return drawbridge.Result{Raw: append(wire.AppendQuoted(out, handle), '}')}
}
