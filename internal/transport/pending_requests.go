package transport

import (
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A pendingRequest is a request that waits for its answer.
type pendingRequest struct {
	// id is the request's ID and progress token. add sets it.
	id uint64
	// handler receives the messages that belong to the request; nil leaves them to the connection's Handler.
	handler Handler
	// isSubscription is true for a subscription, which stays open on purpose.
	isSubscription bool
	// onStrayResponse receives an answer that arrived on another stream than the request's own; nil drops it. It must
	// not block.
	onStrayResponse func(answer mcp.Message)

	// The other fields belong to StreamConn.
	sendState atomic.Int32
	ready     chan struct{} // closed when reply and err are set
	reply     mcp.Message
	err       error
}

// A requestTable holds the waiting requests of one connection. It finds the recipient of a server's messages. The zero
// value is empty; its methods may be called from several goroutines.
type requestTable struct {
	// handler receives the messages outside requests; it may be nil.
	handler Handler

	mu               sync.Mutex
	lastID           uint64 // the id of the last request
	waiting          map[uint64]*pendingRequest
	nonSubscriptions int // requests that are not subscriptions
}

// add adds a call and sets its ID.
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

// remove removes and returns the call with this ID, or nil.
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

// find returns the call with this ID, or nil.
func (c *requestTable) find(id uint64) *pendingRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[id]
}

// deliverStrayResponse passes on a response that arrived on another stream than its request's own. It returns false if
// no request accepts it.
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

// onlyWaiting returns the call that waits if there is exactly one, else nil. Subscriptions do not count.
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

// removeOnlyWaiting removes and returns that call.
func (c *requestTable) removeOnlyWaiting() *pendingRequest {
	if call := c.onlyWaiting(); call != nil {
		return c.remove(call.id)
	}
	return nil
}

// sharedRequestHandler returns the handler for a request on a stream that all calls share: the only waiting call almost
// certainly caused it. It may be nil.
func (c *requestTable) sharedRequestHandler() Handler { return c.handlerOrDefault(c.onlyWaiting()) }

// sharedNotificationHandler returns the handler for a notification on such a stream; it may be nil.
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
		return nil // late: the request has ended, and its token belongs to no other
	case IsServerWideNotification(method):
		return c.handler
	}
	return c.handlerOrDefault(c.onlyWaiting())
}

// notificationHandler returns the handler for a notification on a call's own stream; it may be nil.
func (c *requestTable) notificationHandler(call *pendingRequest, method string) Handler {
	if IsServerWideNotification(method) && !call.isSubscription {
		return c.handler
	}
	return c.handlerOrDefault(call)
}

// requestHandler returns the handler for a request on a call's own stream; it may be nil.
func (c *requestTable) requestHandler(call *pendingRequest) Handler { return c.handlerOrDefault(call) }

// handlerOrDefault returns the handler of a call, which may be nil, or else the connection's.
func (c *requestTable) handlerOrDefault(call *pendingRequest) Handler {
	if call == nil || call.handler == nil {
		return c.handler
	}
	return call.handler
}

// IsServerWideNotification reports whether a notification is about the server and not about a request, even if it
// arrives during one: its lists, a resource or a task have changed.
func IsServerWideNotification(method string) bool {
	switch method {
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged, mcp.NoteResourceUpdated,
		mcp.NoteTask, mcp.NoteTaskStatus:
		return true
	}
	return false
}

// answersRequest reports whether a response answers the request with this ID, however the server echoes it: 7, "7",
// 7.0.
func answersRequest(response mcp.Message, id uint64) bool {
	got, ok := parseRequestID(response.ID)
	return ok && got == id
}

// isParseFailure reports whether a response means that the server could not read the ID of the request. JSON-RPC has
// these two codes for it. (Others occur in answers to notifications, which should have none.)
func isParseFailure(response mcp.Message) bool {
	if response.Error == nil || response.ID != nil && string(response.ID) != "null" {
		return false
	}
	code := mcp.ErrorCode(response.Error)
	return code == mcp.CodeParse || code == mcp.CodeInvalidRequest
}

// parseRequestID reads an id or token of ours.
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
