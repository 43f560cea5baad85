package transport

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// defaultMaxServerRequests is how many requests of a server are answered at once by default.
const defaultMaxServerRequests = 64

// A requestResponder answers the requests of one server, each in a goroutine of its own: the reader must go on, and an
// answer may need a person. Its methods may be called from several goroutines.
type requestResponder struct {
	send       func(ctx context.Context, reply mcp.Message)
	maxRunning int
	log        *slog.Logger

	mu      sync.Mutex
	closed  bool
	running int
	work    sync.WaitGroup
	cancels map[string]context.CancelFunc // by the server's id
	// dropped counts the requests that were dropped since the last warning, which was at that time.
	dropped    int
	lastWarned time.Time
}

// dropWarningInterval is the minimum time between warnings about dropped requests, whose number the server controls.
const dropWarningInterval = time.Minute

// newRequestResponder returns a responder that answers through send, at most max requests at once (0 means
// defaultMaxServerRequests). As many again are refused with an error, and all others are dropped. log may be nil.
func newRequestResponder(send func(ctx context.Context, reply mcp.Message), max int,
	log *slog.Logger) *requestResponder {
	if max <= 0 {
		max = defaultMaxServerRequests
	}
	return &requestResponder{send: send, maxRunning: max, log: loggerOrDiscard(log),
		cancels: map[string]context.CancelFunc{}}
}

// respond answers a request with the handler to, or refuses it if to is nil. It answers ping itself. ctx ends with the
// connection.
func (a *requestResponder) respond(ctx context.Context, to Handler, request mcp.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return
	case a.running >= 2*a.maxRunning:
		a.countDropped()
		return
	case a.running >= a.maxRunning:
		to = refusingHandler{mcp.NewErrorObject(mcp.CodeInternal, "too many requests at once", nil)}
	case to == nil:
		to = refusingHandler{mcp.NewErrorObject(mcp.CodeMethodNotFound, "method not found", nil)}
	}
	asked, cancel := context.WithCancel(ctx)
	key := string(request.ID)
	a.cancels[key] = cancel
	a.running++
	a.work.Go(func() {
		defer cancel()
		reply := answerRequest(asked, to, request)
		a.mu.Lock()
		delete(a.cancels, key)
		a.mu.Unlock()
		if asked.Err() == nil { // else the server does not wait any more
			a.send(ctx, reply)
		}
		a.mu.Lock()
		a.running--
		a.mu.Unlock()
	})
}

// countDropped counts a request that gets no answer. The caller holds the lock.
func (a *requestResponder) countDropped() {
	a.dropped++
	if now := time.Now(); now.Sub(a.lastWarned) >= dropWarningInterval {
		a.log.Warn("requests of the server are dropped, there are too many", "dropped", a.dropped)
		a.dropped, a.lastWarned = 0, now
	}
}

// cancelRequest ends the request that the params of a notifications/cancelled name.
func (a *requestResponder) cancelRequest(params json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.cancels[string(rawjson.Get(params, "requestId"))]; cancel != nil {
		cancel()
	}
}

// closeAndWait accepts no more requests, and waits for those in progress.
func (a *requestResponder) closeAndWait() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.work.Wait()
}

// answerRequest returns the response to a request.
func answerRequest(ctx context.Context, to Handler, request mcp.Message) mcp.Message {
	reply := mcp.Message{ID: request.ID}
	if request.Method == mcp.MethodPing {
		reply.Result = json.RawMessage("{}")
		return reply
	}
	reply.Result, reply.Error = to.HandleRequest(ctx, request.Method, request.Params)
	switch {
	case reply.Error != nil:
		reply.Result = nil
	case reply.Result == nil:
		reply.Error = mcp.NewErrorObject(mcp.CodeInternal, "no answer", nil)
	}
	return reply
}

// A refusingHandler answers every request with the same error.
type refusingHandler struct{ object json.RawMessage }

func (r refusingHandler) HandleNotification(string, json.RawMessage) {}

func (r refusingHandler) HandleRequest(context.Context, string, json.RawMessage) (result, errorObject json.RawMessage) {
	return nil, r.object
}

// loggerOrDiscard returns log, or a logger that discards if log is nil.
func loggerOrDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
