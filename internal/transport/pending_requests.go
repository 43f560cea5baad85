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
	// id is the request's id, and its progress token. Add sets it.
	id uint64
	// handler hears what belongs to the request; nil leaves it to the connection's Handler.
	handler Handler
	// isSubscription says that the request is a subscription, which stays open on purpose.
	isSubscription bool
	// onStrayResponse takes an answer that came on a stream which is not the request's own; nil drops it. It must not
	// block.
	onStrayResponse func(answer mcp.Message)

	// The rest is the Stream's.
	sendState atomic.Int32
	ready     chan struct{} // closed when reply and err are set
	reply     mcp.Message
	err       error
}

// requestTable are the requests of one connection that wait. They know whom the server speaks to when it says
// something on its own. The zero value is empty; its methods may be called from several goroutines.
type requestTable struct {
	// handler hears what belongs to no request; nil is nobody.
	handler Handler

	mu               sync.Mutex
	lastID           uint64 // the id of the last request
	waiting          map[uint64]*pendingRequest
	nonSubscriptions int // those that are no subscriptions
}

// add takes a call in and gives it an id.
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

// remove gives the call with this id and forgets it; nil where there is none.
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

// find gives the call with this id; nil where there is none.
func (c *requestTable) find(id uint64) *pendingRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[id]
}

// deliverStrayResponse passes on a response that came on a stream which is not its request's own. It says false where
// nobody takes it.
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

// onlyWaiting gives the one call that waits; nil where there are none or several. Subscriptions do not count.
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

// removeOnlyWaiting takes that one call.
func (c *requestTable) removeOnlyWaiting() *pendingRequest {
	if call := c.onlyWaiting(); call != nil {
		return c.remove(call.id)
	}
	return nil
}

// sharedRequestHandler says who answers a request that came on a stream which all requests share: the only one that
// waits has caused it, nearly surely. Nil is nobody.
func (c *requestTable) sharedRequestHandler() Handler { return c.handlerOrDefault(c.onlyWaiting()) }

// sharedNotificationHandler says who hears a notification that came on such a stream; nil is nobody.
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
		return nil // late: the request has ended, and the token means nothing to anybody else
	case IsServerWideNotification(method):
		return c.handler
	}
	return c.handlerOrDefault(c.onlyWaiting())
}

// notificationHandler says who hears a notification that came on a stream of the call's own; nil is nobody.
func (c *requestTable) notificationHandler(call *pendingRequest, method string) Handler {
	if IsServerWideNotification(method) && !call.isSubscription {
		return c.handler
	}
	return c.handlerOrDefault(call)
}

// requestHandler says who answers a request that came on a stream of the call's own; nil is nobody.
func (c *requestTable) requestHandler(call *pendingRequest) Handler { return c.handlerOrDefault(call) }

// handlerOrDefault is who hears what belongs to a call, which may be nil.
func (c *requestTable) handlerOrDefault(call *pendingRequest) Handler {
	if call == nil || call.handler == nil {
		return c.handler
	}
	return call.handler
}

// IsServerWideNotification says whether a notification speaks of the server and not of a request, even where it comes
// in the midst of one: its lists, a resource or a task have changed.
func IsServerWideNotification(method string) bool {
	switch method {
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged, mcp.NoteResourceUpdated,
		mcp.NoteTask, mcp.NoteTaskStatus:
		return true
	}
	return false
}

// answersRequest says whether a response answers the request with this id, however the server echoes it: 7, "7", 7.0.
func answersRequest(response mcp.Message, id uint64) bool {
	got, ok := parseRequestID(response.ID)
	return ok && got == id
}

// isParseFailure says whether a response tells that the server did not get as far as the id of what it answers.
// JSON-RPC has these two codes for it. (With others it is, in the wild, an answer to a notification, which should have
// none.)
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
