package transport

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A pendingRequest is a request that waits for its response.
type pendingRequest struct {
	// id is the request's ID and its progress token. requestTable.add sets it.
	id uint64
	// handler receives the messages that belong to the request. If it is nil, the connection's Handler receives them.
	handler Handler
	// isSubscription is set for a subscription, which stays open until it is cancelled.
	isSubscription bool
	// onStrayResponse receives a response that arrived on a stream other than the request's own. If it is nil, such a
	// response is dropped. It must not block.
	onStrayResponse func(answer mcp.Message)
	// cancel ends the request when the connection is closed. Only HTTPConn sets it.
	cancel context.CancelFunc

	// Only StreamConn uses the fields below. parker is nil if the request waits with ready only.
	parker    Parker
	sendState atomic.Int32
	ready     chan struct{} // closed when reply and err are set
	reply     mcp.Message
	err       error
}

// A requestTable contains the waiting requests of one connection, and finds the handler of a server's message. The zero
// value is empty; its methods may be called from several goroutines.
type requestTable struct {
	// handler receives the messages that do not belong to a request; it may be nil.
	handler Handler

	mu               sync.Mutex
	lastID           uint64 // the id of the last request
	waiting          map[uint64]*pendingRequest
	nonSubscriptions int // the number of waiting requests except subscriptions
}

// add adds a request and sets its ID.
func (c *requestTable) add(call *pendingRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	call.id = c.lastID
	if c.waiting == nil {
		c.waiting = map[uint64]*pendingRequest{}
	}
	c.waiting[call.id] = call
	if !call.isSubscription {
		c.nonSubscriptions++
	}
}

// remove removes and returns the request with this ID, or returns nil if there is none.
func (c *requestTable) remove(id uint64) *pendingRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.waiting[id]
	if call == nil {
		return nil
	}
	delete(c.waiting, id)
	if !call.isSubscription {
		c.nonSubscriptions--
	}
	return call
}

// cancelAll cancels every waiting request.
func (c *requestTable) cancelAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.waiting {
		call.cancel()
	}
}

// find returns the request with this ID, or nil.
func (c *requestTable) find(id uint64) *pendingRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[id]
}

// hasOthers reports whether any request is waiting, except subscriptions.
func (c *requestTable) hasOthers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nonSubscriptions > 0
}

// wakeParked wakes the waiting requests that have a Parker.
func (c *requestTable) wakeParked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.waiting {
		if call.parker != nil {
			call.parker.Wake()
		}
	}
}

// deliverStrayResponse passes a response that arrived on a stream other than its request's own to onStrayResponse. It
// returns false if no request accepts the response.
func (c *requestTable) deliverStrayResponse(response mcp.Message) bool {
	id, ok := parseRequestID(response.ID)
	if !ok {
		return false
	}
	call := c.find(id)
	if call == nil || call.onStrayResponse == nil {
		return false
	}
	call.onStrayResponse(response)
	return true
}

// onlyWaiting returns the waiting request if there is exactly one, otherwise nil. Subscriptions are not counted.
func (c *requestTable) onlyWaiting() *pendingRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nonSubscriptions == 1 {
		for _, call := range c.waiting {
			if !call.isSubscription {
				return call
			}
		}
	}
	return nil
}

// removeOnlyWaiting removes and returns the request of onlyWaiting, or returns nil.
func (c *requestTable) removeOnlyWaiting() *pendingRequest {
	if call := c.onlyWaiting(); call != nil {
		return c.remove(call.id)
	}
	return nil
}

// sharedRequestHandler returns the handler for a server request on a stream that all requests share. If exactly one
// request is waiting, the server request almost certainly belongs to it, and its handler is returned. Otherwise the
// connection's handler is returned. The result may be nil.
func (c *requestTable) sharedRequestHandler() Handler { return c.handlerOrDefault(c.onlyWaiting()) }

// sharedNotificationHandler returns the handler for a notification on a stream that all requests share. It is the
// handler of the request that the notification names or, if exactly one request is waiting, of that request. Otherwise
// it is the connection's handler. The result may be nil.
func (c *requestTable) sharedNotificationHandler(method string, params json.RawMessage) Handler {
	named := rawjson.Get(params, "_meta", mcp.MetaSubscriptionID)
	if method == mcp.NoteProgress {
		named = rawjson.Get(params, mcp.MetaProgressToken)
	}
	if id, ok := parseRequestID(named); ok {
		if call := c.find(id); call != nil {
			return c.handlerOrDefault(call)
		}
	}
	switch {
	case method == mcp.NoteProgress:
		return nil // late: the request with this token has ended
	case IsServerWideNotification(method):
		return c.handler
	}
	return c.handlerOrDefault(c.onlyWaiting())
}

// notificationHandler returns the handler for a notification on a request's own stream. It is the request's handler, or
// the connection's handler if the notification concerns the whole server. The result may be nil.
func (c *requestTable) notificationHandler(call *pendingRequest, method string) Handler {
	if IsServerWideNotification(method) && !call.isSubscription {
		return c.handler
	}
	return c.handlerOrDefault(call)
}

// requestHandler returns the handler for a server request on a request's own stream. The result may be nil.
func (c *requestTable) requestHandler(call *pendingRequest) Handler { return c.handlerOrDefault(call) }

// handlerOrDefault returns the handler of a request, or the connection's handler if call or its handler is nil.
func (c *requestTable) handlerOrDefault(call *pendingRequest) Handler {
	if call == nil || call.handler == nil {
		return c.handler
	}
	return call.handler
}

// IsServerWideNotification reports whether a notification concerns the server and not a request, even if it arrives
// during a request. Such a notification reports a change of a list, a resource or a task.
func IsServerWideNotification(method string) bool {
	switch method {
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged, mcp.NoteResourceUpdated,
		mcp.NoteTask, mcp.NoteTaskStatus:
		return true
	}
	return false
}

// answersRequest reports whether a response answers the request with this ID. Servers return the ID 7 also as "7" or
// 7.0.
func answersRequest(response mcp.Message, id uint64) bool {
	got, ok := parseRequestID(response.ID)
	return ok && got == id
}

// isParseFailure reports whether a response means that the server could not read the ID of the request. JSON-RPC
// defines two error codes for that. Responses with other codes and without an ID occur after notifications, which must
// not have a response.
func isParseFailure(response mcp.Message) bool {
	if response.Error == nil || response.ID != nil && string(response.ID) != "null" {
		return false
	}
	code := mcp.ErrorCode(response.Error)
	return code == mcp.CodeParse || code == mcp.CodeInvalidRequest
}

// parseRequestID parses an ID or a progress token of Drawbridge's own requests.
func parseRequestID(raw json.RawMessage) (uint64, bool) {
	if n := len(raw); n > 2 && raw[0] == '"' && raw[n-1] == '"' {
		raw = raw[1 : n-1]
	}
	if id, err := strconv.ParseUint(string(raw), 10, 64); err == nil {
		return id, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < 0 || f > 1<<53 || f != math.Trunc(f) {
		return 0, false
	}
	return uint64(f), true
}
