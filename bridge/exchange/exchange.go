// Package exchange is one call in flight: it keeps the call's time, and gives what the server says meanwhile to the call's
// caller.
//
// It promises that a call ends when nothing is heard of it for its limit, and at the latest after ten times that, but that
// its time stands still while its caller is asked something; that a caller who is slow to take what is said keeps the
// connection from nobody else; and that what was said before the answer is with the caller before the answer is.
package exchange

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// maxNotes is how many notifications wait for a caller who does not take them; later ones are dropped.
const maxNotes = 4096

// stretch is how many times its limit a call may last, whatever its progress.
const stretch = 10

// quiet is how long nothing is heard of a call before its server is woken. In that time nearly every call is over.
const quiet = 5 * time.Second

// Longest is how long a call with that limit may last, whatever its progress.
func Longest(limit time.Duration) time.Duration { return stretch * limit }

// A LimitError is a call that took too long. It is a context.DeadlineExceeded.
type LimitError struct {
	// After is how long nothing was heard of the call, or, where it is Hard, how long it lasted with all its progress.
	After time.Duration
	Hard  bool
}

// Error says how long that was.
func (l *LimitError) Error() string {
	if l.Hard {
		return fmt.Sprintf("timeout: not finished after %v, with all its progress", l.After)
	}
	return fmt.Sprintf("timeout: no answer and no progress within %v", l.After)
}

// Is says that a LimitError is the end of a deadline.
func (l *LimitError) Is(target error) bool { return target == context.DeadlineExceeded }

// A Server is whom the call goes to.
type Server interface {
	// Notify takes a notification that came in the course of the call and concerns the server: its lists have changed.
	Notify(method string, params json.RawMessage)

	// AskFor answers a request of the server that came in the course of call, as a [link.Handler] does. It may ask the
	// call's Peer.
	AskFor(ctx context.Context, call drawbridge.Call, method string, params json.RawMessage) (result, errorObject json.RawMessage)
}

// A Waker is a Server that can be woken: one that has read a call, and stands still because of its runtime, goes on when it
// reads anything more. Wake must not block.
type Waker interface {
	Wake()
}

// An Exchange is one call in flight. Notifications go out by a goroutine that is there only while there are some, so that
// a slow caller does not keep the connection from others. Its methods may be called from several goroutines.
type Exchange struct {
	server Server
	call   drawbridge.Call
	log    *slog.Logger
	token  json.RawMessage // the caller's progress token; nil for none
	ctx    context.Context // ends with the call: when it is over, or out of time
	stop   context.CancelCauseFunc

	limit    time.Duration
	deadline time.Time
	timer    *time.Timer

	mu    sync.Mutex
	over  bool
	until time.Time // when silence ends the call
	asks  int       // how many questions the caller has not answered: the server waits for them, so its time stands still
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
	_ link.Handler = (*Exchange)(nil)
	_ link.Poller  = (*Exchange)(nil)
)

// New begins an exchange, which must be ended by End. The limit is how long nothing may be heard of it. The logger is told
// what the caller did not take.
func New(ctx context.Context, server Server, call drawbridge.Call, limit time.Duration, logger *slog.Logger) *Exchange {
	x := &Exchange{
		server: server, call: call, log: logger, token: wire.Get(call.Params, "_meta", wire.MetaProgressToken),
		limit: limit, ended: make(chan struct{}),
	}
	now := time.Now()
	x.until, x.deadline = now.Add(limit), now.Add(Longest(limit))
	x.ctx, x.stop = context.WithCancelCause(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timer = time.AfterFunc(min(limit, quiet), x.expire)
	return x
}

// Context ends with the call: when it is over, or out of time.
func (x *Exchange) Context() context.Context { return x.ctx }

// Call is what is carried.
func (x *Exchange) Call() drawbridge.Call { return x.call }

// End ends the exchange, when everything said before is with the caller: that a question was taken back too. It gives the
// reason where time ran out.
func (x *Exchange) End() error {
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	x.timer.Stop()
	x.pump.Wait()
	cause := context.Cause(x.ctx)
	x.stop(nil)
	close(x.ended)
	x.asking.Wait()
	if limit, ok := cause.(*LimitError); ok {
		return limit
	}
	return nil
}

// expire is called when the time for an answer is over, and before that when nothing was heard for a while.
func (x *Exchange) expire() {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	switch {
	case x.over:
	case !now.Before(x.deadline):
		x.stop(&LimitError{Longest(x.limit), true})
	case x.asks > 0:
		x.timer.Reset(x.deadline.Sub(now))
	case now.Before(x.until):
		x.timer.Reset(min(x.until.Sub(now), x.deadline.Sub(now)))
		if w, ok := x.server.(Waker); ok {
			w.Wake()
		}
	default:
		x.stop(&LimitError{x.limit, false})
	}
}

// touch begins the time for an answer anew. It needs mu.
func (x *Exchange) touch() {
	if !x.over {
		now := time.Now()
		x.until = now.Add(x.limit)
		x.timer.Reset(min(x.limit, quiet, x.deadline.Sub(now)))
	}
}

// Notify takes a notification that belongs to the call.
func (x *Exchange) Notify(method string, params json.RawMessage) {
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
		x.server.Notify(method, params)
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
func (x *Exchange) deliver() {
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
				x.log.Debug("a caller did not take a notification", "error", err)
			}
		}
	}
}

// Polled has the caller do what the server has us do.
func (x *Exchange) Polled(after time.Duration) {
	if p, ok := x.call.Peer.(drawbridge.Poller); ok {
		p.Poll(after)
	}
}

// Hold has the call's time stand still until release is called.
func (x *Exchange) Hold() (release func()) {
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

// Ask has a request of the server answered: by the caller, if it may be asked that.
func (x *Exchange) Ask(ctx context.Context, method string, params json.RawMessage) (result, errorObject json.RawMessage) {
	x.mu.Lock()
	if x.over { // nobody waits for it any more; what is answered without the caller still is
		x.mu.Unlock()
		return x.server.AskFor(x.ctx, x.call, method, params)
	}
	x.asking.Add(1)
	x.mu.Unlock()
	defer x.asking.Done()
	defer x.Hold()()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.ctx, cancel)()
	result, errorObject = x.server.AskFor(ctx, x.call, method, params)
	if x.ctx.Err() != nil {
		<-x.ended // a server that is answered before it hears that nobody waits for the call would go on with it
	}
	return result, errorObject
}
