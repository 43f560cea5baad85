package transport

import (
	"encoding/json"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// WakeServer has a server on pipes read one more line, for which the request is the cheapest that its generation has.
// Modern are the params that each request of the stateless generation has; nil is the other one. It does not block.
func WakeServer(c Conn, modern json.RawMessage) {
	s, ok := c.(*StreamConn)
	switch {
	case !ok, s.o.ParallelSend: // no pipe
	case modern != nil:
		s.SendWakeup(mcp.MethodDiscover, modern)
	default:
		s.SendWakeup(mcp.MethodPing, nil)
	}
}

// SendWakeup sends a request whose answer nobody waits for, so that a server which has a line and does not get round
// to it reads another one. It does not block. Before the last nudge was answered there is no other, since a server
// that is busy would find all of them afterwards.
func (s *StreamConn) SendWakeup(method string, params json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.lastWakeup != nil && s.pending.find(s.lastWakeup.id) != nil {
		return
	}
	// as a subscription: what the server says is not because of it
	s.lastWakeup = &pendingRequest{isSubscription: true, ready: make(chan struct{})}
	s.pending.add(s.lastWakeup)
	// else it does not read at all
	_ = s.enqueueUnawaited(encodeLine(mcp.Message{ID: strconv.AppendUint(nil, s.lastWakeup.id, 10), Method: method,
		Params: params}))
}
