package link

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// DefaultMaxAsks is how many requests of a server are answered at once where nobody says otherwise.
const DefaultMaxAsks = 64

// Asks answers the requests of one server, each in a goroutine of its own: the reader must go on, and an answer may take
// a person. Its methods may be called from several goroutines.
type Asks struct {
	send func(ctx context.Context, reply wire.Message)
	max  int
	log  *slog.Logger

	mu      sync.Mutex
	waited  bool
	running int
	work    sync.WaitGroup
	open    map[string]context.CancelFunc // by the server's id
	// dropped counts the requests that were since it was last told, at that time.
	dropped int
	told    time.Time
}

// tellAgain is how often it is logged that requests are dropped: their server says how many there are.
const tellAgain = time.Minute

// NewAsks makes Asks that answer through send, at most max requests at once (0 means DefaultMaxAsks). As many again are
// refused with an error, and what is over that is dropped. log may be nil.
func NewAsks(send func(ctx context.Context, reply wire.Message), max int, log *slog.Logger) *Asks {
	if max <= 0 {
		max = DefaultMaxAsks
	}
	return &Asks{send: send, max: max, log: orSilence(log), open: map[string]context.CancelFunc{}}
}

// Answer has to answer a request, or refuses it where to is nil. ping it answers by itself. ctx ends with the connection.
func (a *Asks) Answer(ctx context.Context, to Handler, request wire.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.waited:
		return
	case a.running >= 2*a.max:
		a.drop()
		return
	case a.running >= a.max:
		to = refuser{wire.ErrorObject(wire.CodeInternal, "too many requests at once", nil)}
	case to == nil:
		to = refuser{wire.ErrorObject(wire.CodeMethodNotFound, "method not found", nil)}
	}
	asked, cancel := context.WithCancel(ctx)
	key := string(request.ID)
	a.open[key] = cancel
	a.running++
	a.work.Go(func() {
		defer cancel()
		reply := answer(asked, to, request)
		a.mu.Lock()
		delete(a.open, key)
		a.mu.Unlock()
		if asked.Err() == nil { // else the server does not wait any more
			a.send(ctx, reply)
		}
		a.mu.Lock()
		a.running--
		a.mu.Unlock()
	})
}

// drop takes note of a request that has no answer. The lock is held.
func (a *Asks) drop() {
	a.dropped++
	if now := time.Now(); now.Sub(a.told) >= tellAgain {
		a.log.Warn("requests of the server are dropped, there are too many", "dropped", a.dropped)
		a.dropped, a.told = 0, now
	}
}

// Cancelled takes the params of the server's notifications/cancelled: the request that they name ends.
func (a *Asks) Cancelled(params json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.open[string(wire.Get(params, "requestId"))]; cancel != nil {
		cancel()
	}
}

// Wait takes no more requests, and waits for those that are being answered.
func (a *Asks) Wait() {
	a.mu.Lock()
	a.waited = true
	a.mu.Unlock()
	a.work.Wait()
}

// answer makes the response to a request.
func answer(ctx context.Context, to Handler, request wire.Message) wire.Message {
	reply := wire.Message{ID: request.ID}
	if request.Method == wire.MethodPing {
		reply.Result = json.RawMessage("{}")
		return reply
	}
	reply.Result, reply.Error = to.Ask(ctx, request.Method, request.Params)
	switch {
	case reply.Error != nil:
		reply.Result = nil
	case reply.Result == nil:
		reply.Error = wire.ErrorObject(wire.CodeInternal, "no answer", nil)
	}
	return reply
}

// A refuser answers every request with the same error.
type refuser struct{ object json.RawMessage }

func (r refuser) Notify(string, json.RawMessage) {}

func (r refuser) Ask(context.Context, string, json.RawMessage) (result, errorObject json.RawMessage) {
	return nil, r.object
}

// orSilence gives a logger where there is none.
func orSilence(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
