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
	// wake holds one token: a question or the end has come.
	wake chan struct{}

	mu sync.Mutex
	// peer and token are those of the request that waits; peer is nil while the talk is parked.
	peer  drawbridge.Peer
	token json.RawMessage
	// notes are what was said while nobody listened.
	notes []note
	// open are the questions without an answer, in the order they came; asked counts all.
	open  []*question
	asked int
	// over says that the call has ended, with result or err.
	over   bool
	result drawbridge.Result
	err    error
}

// A note is something that the server said.
type note struct {
	method string
	params json.RawMessage
}

// A question is a request of the server that waits for its answer.
type question struct {
	name   string
	method string
	params json.RawMessage
	answer chan json.RawMessage // has room for the one answer
}

var _ drawbridge.Peer = (*talk)(nil)

// Begin begins a talk and gives its first result: the server's, or one that asks the caller for input. The error is the
// line's own, or a *drawbridge.Fault for a caller that went away.
func (p *Parking) Begin(ctx context.Context, line Line, call drawbridge.Call) (drawbridge.Result, error) {
	t := &talk{line: line, principal: call.Caller.Principal, wake: make(chan struct{}, 1)}
	t.ctx, t.cancel = context.WithCancelCause(line.Life)
	own := call
	own.Peer = t
	// Progress is always told: a later request may want it. The token is replaced by that request's own.
	own.Params = wire.Apply(call.Params, wire.Put(json.RawMessage("0"), "_meta", wire.MetaProgressToken))
	t.attend(call)
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

// attend has the talk speak to the request of this call.
func (t *talk) attend(call drawbridge.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peer, t.token = call.Peer, wire.Get(call.Params, "_meta", wire.MetaProgressToken)
}

// leave has the talk speak to nobody.
func (t *talk) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peer, t.token = nil, nil
}

// wait gives what comes of the talk next: the end, or questions. If the caller goes away the call ends.
func (t *talk) wait(ctx context.Context, p *Parking, call drawbridge.Call) (drawbridge.Result, error) {
	defer t.leave()
	t.repeat(ctx, call.Peer)
	for {
		t.mu.Lock()
		over, asks := t.over, len(t.open) > 0
		t.mu.Unlock()
		switch {
		case over:
			return t.result, t.err
		case asks:
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

var errParked = &drawbridge.Fault{
	Kind: drawbridge.BridgeFault, Code: drawbridge.RateLimited,
	Step: "ask the caller", Err: errors.New("too many of its calls wait for answers already"),
}

// repeat tells a new request what was said while nobody listened.
func (t *talk) repeat(ctx context.Context, peer drawbridge.Peer) {
	t.mu.Lock()
	notes := t.notes
	t.notes = nil
	t.mu.Unlock()
	for _, n := range notes {
		t.tell(ctx, peer, n)
	}
}

// tell gives a notification to the request that listens.
func (t *talk) tell(ctx context.Context, peer drawbridge.Peer, n note) {
	t.mu.Lock()
	token := t.token
	t.mu.Unlock()
	if n.method == wire.NoteProgress {
		if token == nil {
			return
		}
		n.params = wire.Apply(n.params, wire.Put(token, wire.MetaProgressToken))
	}
	if peer == nil {
		return
	}
	if err := peer.Notify(ctx, n.method, n.params); err != nil {
		t.line.Logger.Debug("a caller did not take a notification", "error", err)
	}
}

// maxKept is how many notifications wait for the next request of a talk; later ones are dropped.
const maxKept = 256

// Notify takes what the server says in the course of the call.
func (t *talk) Notify(ctx context.Context, method string, params json.RawMessage) error {
	t.mu.Lock()
	peer := t.peer
	if peer == nil && len(t.notes) < maxKept {
		t.notes = append(t.notes, note{method, params})
	}
	t.mu.Unlock()
	if peer != nil {
		t.tell(ctx, peer, note{method, params})
	}
	return nil
}

// Ask takes a question of the server, and gives the answer that a later request of the caller brings.
func (t *talk) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return nil, t.unanswered(method, errors.New("its call has ended"))
	}
	t.asked++
	q := &question{strconv.Itoa(t.asked), method, params, make(chan json.RawMessage, 1)}
	t.open = append(t.open, q)
	t.mu.Unlock()
	t.ring()
	defer t.forget(q)
	select {
	case answer := <-q.answer:
		if answer == nil {
			return nil, errParked
		}
		return answer, nil
	case <-ctx.Done():
		return nil, t.unanswered(method, ctx.Err())
	case <-t.ctx.Done():
		return nil, t.unanswered(method, context.Cause(t.ctx))
	}
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
		q.answer <- nil
	}
	t.open = nil
}

// take gives the open questions the answers that params bring. What was not asked, or is not asked any more, is passed
// over. It changes nothing where an answer is no object, and says so.
func (t *talk) take(params json.RawMessage) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	answers := wire.Get(params, "inputResponses")
	for _, q := range t.open {
		if answer := wire.Get(answers, q.name); answer != nil && answer[0] != '{' {
			return fmt.Errorf("inputResponses: the answer to %q is no object", q.name)
		}
	}
	t.open = slices.DeleteFunc(t.open, func(q *question) bool {
		answer := wire.Get(answers, q.name)
		if answer != nil {
			q.answer <- answer
		}
		return answer != nil
	})
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
