package link

import (
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Call is a request that waits for its answer.
type Call struct {
	// ID is the request's id, and its progress token. Add sets it.
	ID uint64
	// In hears what belongs to the request; nil leaves it to the connection's Handler.
	In Handler
	// Listen says that the request is a subscription, which stays open on purpose.
	Listen bool
	// Elsewhere takes an answer that came on a stream which is not the request's own; nil drops it. It must not block.
	Elsewhere func(answer wire.Message)

	// The rest is the Stream's.
	sent  atomic.Int32
	ready chan struct{} // closed when reply and err are set
	reply wire.Message
	err   error
}

// Calls are the requests of one connection that wait. They know whom the server speaks to when it says something on its
// own. The zero value is empty; its methods may be called from several goroutines.
type Calls struct {
	// Handler hears what belongs to no request; nil is nobody.
	Handler Handler

	mu      sync.Mutex
	last    uint64 // the id of the last request
	waiting map[uint64]*Call
	counted int // those that are no subscriptions
}

// Add takes a call in and gives it an id.
func (c *Calls) Add(call *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	call.ID = c.last
	if c.waiting == nil {
		c.waiting = map[uint64]*Call{}
	}
	c.waiting[call.ID] = call
	if !call.Listen {
		c.counted++
	}
}

// Take gives the call with this id and forgets it; nil where there is none.
func (c *Calls) Take(id uint64) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.waiting[id]
	if call == nil {
		return nil
	}
	delete(c.waiting, id)
	if !call.Listen {
		c.counted--
	}
	return call
}

// find gives the call with this id; nil where there is none.
func (c *Calls) find(id uint64) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[id]
}

// Answered passes on a response that came on a stream which is not its request's own. It says false where nobody takes it.
func (c *Calls) Answered(response wire.Message) bool {
	id, ok := idOf(response.ID)
	if !ok {
		return false
	}
	call := c.find(id)
	if call == nil || call.Elsewhere == nil {
		return false
	}
	call.Elsewhere(response)
	return true
}

// only gives the one call that waits; nil where there are none or several. Subscriptions do not count.
func (c *Calls) only() *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counted == 1 {
		for _, call := range c.waiting {
			if !call.Listen {
				return call
			}
		}
	}
	return nil
}

// takeOnly takes that one call.
func (c *Calls) takeOnly() *Call {
	if call := c.only(); call != nil {
		return c.Take(call.ID)
	}
	return nil
}

// Asked says who answers a request that came on a stream which all requests share: the only one that waits has caused
// it, nearly surely. Nil is nobody.
func (c *Calls) Asked() Handler { return c.listener(c.only()) }

// Noted says who hears a notification that came on such a stream; nil is nobody.
func (c *Calls) Noted(method string, params json.RawMessage) Handler {
	named := wire.Get(params, "_meta", wire.MetaSubscriptionID)
	if method == wire.NoteProgress {
		named = wire.Get(params, wire.MetaProgressToken)
	}
	if id, ok := idOf(named); ok {
		if call := c.find(id); call != nil {
			return c.listener(call)
		}
	}
	switch {
	case method == wire.NoteProgress:
		return nil // late: the request has ended, and the token means nothing to anybody else
	case AboutServer(method):
		return c.Handler
	}
	return c.listener(c.only())
}

// NotedIn says who hears a notification that came on a stream of the call's own; nil is nobody.
func (c *Calls) NotedIn(call *Call, method string) Handler {
	if AboutServer(method) && !call.Listen {
		return c.Handler
	}
	return c.listener(call)
}

// AskedIn says who answers a request that came on a stream of the call's own; nil is nobody.
func (c *Calls) AskedIn(call *Call) Handler { return c.listener(call) }

// listener is who hears what belongs to a call, which may be nil.
func (c *Calls) listener(call *Call) Handler {
	if call == nil || call.In == nil {
		return c.Handler
	}
	return call.In
}

// AboutServer says whether a notification speaks of the server and not of a request, even where it comes in the midst of
// one: its lists, a resource or a task have changed.
func AboutServer(method string) bool {
	switch method {
	case wire.NoteToolsChanged, wire.NotePromptsChanged, wire.NoteResourcesChanged, wire.NoteResourceUpdated,
		wire.NoteTask, wire.NoteTaskStatus:
		return true
	}
	return false
}

// Answers says whether a response answers the request with this id, however the server echoes it: 7, "7", 7.0.
func Answers(response wire.Message, id uint64) bool {
	got, ok := idOf(response.ID)
	return ok && got == id
}

// NotUnderstood says whether a response tells that the server did not get as far as the id of what it answers. JSON-RPC
// has these two codes for it. (With others it is, in the wild, an answer to a notification, which should have none.)
func NotUnderstood(response wire.Message) bool {
	if response.Error == nil || response.ID != nil && string(response.ID) != "null" {
		return false
	}
	code := wire.ErrorCode(response.Error)
	return code == wire.CodeParse || code == wire.CodeInvalidRequest
}

// idOf reads an id or token of ours.
func idOf(raw json.RawMessage) (uint64, bool) {
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
