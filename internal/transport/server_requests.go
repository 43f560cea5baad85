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

// defaultMaxServerRequests is the default of MaxServerRequests.
const defaultMaxServerRequests = 64

// A requestResponder answers the requests of one server, each in a separate goroutine. An answer may require input from
// a person, and the goroutine that reads the server's messages must not wait for it. The methods may be called from
// several goroutines.
type requestResponder struct {
	send       func(ctx context.Context, reply mcp.Message)
	maxRunning int
	log        *slog.Logger

	mu      sync.Mutex
	closed  bool
	running int
	work    sync.WaitGroup
	cancels map[string]context.CancelFunc // by the ID that the server assigned to its request
	// dropped counts the requests that were dropped since the last warning. lastWarned is the time of that warning.
	dropped    int
	lastWarned time.Time
}

// dropWarningInterval is the minimum time between two warnings about dropped requests. The server controls the number
// of these requests.
const dropWarningInterval = time.Minute

// newRequestResponder returns a responder that sends its responses with send. It answers at most max requests at the
// same time (0 means defaultMaxServerRequests). It refuses the same number of further requests with an error, and drops
// all others. log may be nil.
func newRequestResponder(send func(ctx context.Context, reply mcp.Message), max int,
	log *slog.Logger) *requestResponder {
	if max <= 0 {
		max = defaultMaxServerRequests
	}
	return &requestResponder{send: send, maxRunning: max, log: loggerOrDiscard(log),
		cancels: map[string]context.CancelFunc{}}
}

// respond answers a server request with the result of the handler to, or with an error if to is nil. It answers ping
// itself. ctx ends with the connection.
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
		if asked.Err() == nil { // otherwise the server does not wait any more
			a.send(ctx, reply)
		}
		a.mu.Lock()
		a.running--
		a.mu.Unlock()
	})
}

// countDropped counts a request that gets no response, and logs a warning at intervals. mu must be held.
func (a *requestResponder) countDropped() {
	a.dropped++
	if now := time.Now(); now.Sub(a.lastWarned) >= dropWarningInterval {
		a.log.Warn("requests of the server are dropped, there are too many", "dropped", a.dropped)
		a.dropped, a.lastWarned = 0, now
	}
}

// cancelRequest cancels the server request whose ID is in params, the params of a notification notifications/cancelled.
func (a *requestResponder) cancelRequest(params json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.cancels[string(rawjson.Get(params, "requestId"))]; cancel != nil {
		cancel()
	}
}

// closeAndWait makes respond ignore further requests, and waits until the requests in progress have ended.
func (a *requestResponder) closeAndWait() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.work.Wait()
}

// answerRequest returns the response of the handler to a server request.
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

// A refusingHandler refuses every request with the same error object.
type refusingHandler struct{ object json.RawMessage }

func (r refusingHandler) HandleNotification(string, json.RawMessage) {}

func (r refusingHandler) HandleRequest(context.Context, string, json.RawMessage) (result, errorObject json.RawMessage) {
	return nil, r.object
}

// loggerOrDiscard returns log, or a logger that discards its output if log is nil.
func loggerOrDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
