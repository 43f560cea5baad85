package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/bridge/talk"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// maxNotes is how many notifications wait for a caller who does not take them; later ones are dropped.
const maxNotes = 4096

// An exchange is one call in flight: it keeps the call's time, and gives what the server says meanwhile to the caller.
// Notifications go out by a goroutine that is there only while there are some, so that a slow caller does not keep the
// connection from others.
type exchange struct {
	s     *session
	call  drawbridge.Call
	token json.RawMessage // the caller's progress token; nil for none
	ctx   context.Context // ends with the call: when it is over, or out of time
	stop  context.CancelCauseFunc

	limit    time.Duration
	deadline time.Time
	timer    *time.Timer

	mu    sync.Mutex
	over  bool
	asks  int // how many questions the caller has not answered: the server waits for them, so its time stands still
	notes []note
	pump  sync.WaitGroup
	busy  bool // the pump runs

	// asking are the questions in progress; ended is closed when the server knows that the call is over, if it has to.
	asking sync.WaitGroup
	ended  chan struct{}
}

type note struct {
	method string
	params json.RawMessage
}

var (
	_ link.Handler = (*exchange)(nil)
	_ link.Poller  = (*exchange)(nil)
)

func newExchange(ctx context.Context, s *session, call drawbridge.Call, limit time.Duration) *exchange {
	x := &exchange{s: s, call: call, token: wire.Get(call.Params, "_meta", wire.MetaProgressToken), limit: limit, ended: make(chan struct{})}
	x.ctx, x.stop = context.WithCancelCause(ctx)
	x.deadline = time.Now().Add(hardLimit * limit)
	x.timer = time.AfterFunc(limit, x.expire)
	return x
}

// end ends the exchange, when everything said before is with the caller: that a question was taken back too. It gives the
// reason where time ran out.
func (x *exchange) end() error {
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	x.timer.Stop()
	x.pump.Wait()
	cause := context.Cause(x.ctx)
	x.stop(nil)
	close(x.ended)
	x.asking.Wait()
	if limit, ok := cause.(*limitError); ok {
		return limit
	}
	return nil
}

// expire is called when the time for an answer is over.
func (x *exchange) expire() {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	switch {
	case x.over:
	case !now.Before(x.deadline):
		x.stop(&limitError{hardLimit * x.limit, true})
	case x.asks > 0:
		x.timer.Reset(x.deadline.Sub(now))
	default:
		x.stop(&limitError{x.limit, false})
	}
}

// touch begins the time for an answer anew. It needs mu.
func (x *exchange) touch() {
	if !x.over {
		x.timer.Reset(min(x.limit, time.Until(x.deadline)))
	}
}

// Notify takes a notification that belongs to the call.
func (x *exchange) Notify(method string, params json.RawMessage) {
	switch {
	case method == wire.NoteProgress:
		x.mu.Lock()
		x.touch()
		x.mu.Unlock()
		if x.token == nil {
			return
		}
		params = wire.Apply(params, wire.Put(x.token, wire.MetaProgressToken))
	case link.AboutServer(method):
		x.s.Notify(method, params)
		return
	case method == wire.NoteElicitComplete && x.call.Caller.Era == drawbridge.Modern:
		return // gone with the stateful generation
	}
	if x.call.Peer == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || len(x.notes) == maxNotes {
		return
	}
	x.notes = append(x.notes, note{method, params})
	if !x.busy {
		x.busy = true
		x.pump.Go(x.deliver)
	}
}

// deliver is the pump: it gives the caller what has come, and ends when that is all.
func (x *exchange) deliver() {
	for {
		x.mu.Lock()
		notes := x.notes
		x.notes = nil
		if len(notes) == 0 {
			x.busy = false
			x.mu.Unlock()
			return
		}
		x.mu.Unlock()
		for _, n := range notes {
			if x.ctx.Err() != nil {
				break
			}
			if err := x.call.Peer.Notify(x.ctx, n.method, n.params); err != nil {
				x.s.e.log.Debug("a caller did not take a notification", "error", err)
			}
		}
	}
}

// Polled has the caller do what the server has us do.
func (x *exchange) Polled(after time.Duration) {
	if p, ok := x.call.Peer.(drawbridge.Poller); ok {
		p.Poll(after)
	}
}

// hold has the call's time stand still until release is called.
func (x *exchange) hold() (release func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asks++
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.asks--
		x.touch()
	}
}

// Ask passes a request of the server on to the caller, if the caller declared that it may be asked that.
func (x *exchange) Ask(ctx context.Context, method string, params json.RawMessage) (result, errorObject json.RawMessage) {
	x.mu.Lock()
	if x.over { // nobody waits for it any more; what is answered without the caller still is
		x.mu.Unlock()
		return x.s.e.ask(x.ctx, x.call, x.s, method, params)
	}
	x.asking.Add(1)
	x.mu.Unlock()
	defer x.asking.Done()
	defer x.hold()()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.ctx, cancel)()
	result, errorObject = x.s.e.ask(ctx, x.call, x.s, method, params)
	if x.ctx.Err() != nil {
		<-x.ended // a server that is answered before it hears that nobody waits for the call would go on with it
	}
	return result, errorObject
}

// ask answers a request of the server that came in the course of call.
func (e *endpoint) ask(ctx context.Context, call drawbridge.Call, s *session, method string, params json.RawMessage) (result, errorObject json.RawMessage) {
	capability := wire.Capability(method)
	switch {
	case s.era == drawbridge.Legacy && s.frank() && call.Peer != nil && wire.MayAskBy(call.Caller.Capabilities, s.capabilities, method, params):
	case capability == "":
		return nil, wire.ErrorObject(wire.CodeMethodNotFound, "method not found", nil)
	case method == wire.MethodRootsList && (!s.frank() || !s.own() && call.Peer == nil):
		return rootsResult(e.pool.o.Roots), nil
	default:
		if e.row.Trust == sandboxed && method == wire.MethodElicitation {
			e.decline()
		}
		return nil, wire.ErrorObject(wire.CodeMethodNotFound, fmt.Sprintf("%s: the client did not declare %s", method, capability), nil)
	}
	answer, err := call.Peer.Ask(ctx, method, talk.Named(e.row.ID, method, params))
	if err == nil {
		return answer, nil
	}
	f := drawbridge.AsFault(err)
	if f.Raw != nil {
		return nil, f.Raw
	}
	code := wire.CodeInternal
	if f.Code == drawbridge.NotFound {
		code = wire.CodeMethodNotFound
	}
	return nil, wire.ErrorObject(code, f.Error(), nil)
}

// rootsResult is the answer to roots/list.
func rootsResult(uris []string) json.RawMessage {
	out := []byte(`{"roots":[`)
	for i, uri := range uris {
		if i > 0 {
			out = append(out, ',')
		}
		out = wire.AppendQuoted(append(out, `{"uri":`...), uri)
		out = append(out, '}')
	}
	return append(out, "]}"...)
}
