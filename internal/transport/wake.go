package transport

import (
	"encoding/json"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// WakeServer makes a server on pipes read one more line, by the cheapest request of its generation. modern are the
// params that each stateless request has; nil means a stateful server. It does not block.
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

// SendWakeup sends a request and drops its answer, so that a server that has not processed a line it read reads another
// one. It does not block. It sends nothing while the last wakeup is unanswered, since a busy server would find all of
// them afterwards.
func (s *StreamConn) SendWakeup(method string, params json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.lastWakeup != nil && s.pending.find(s.lastWakeup.id) != nil {
		return
	}
	// as a subscription: no message of the server is attributed to it
	s.lastWakeup = &pendingRequest{isSubscription: true, ready: make(chan struct{})}
	s.pending.add(s.lastWakeup)
	// else it does not read at all
	_ = s.enqueueUnawaited(encodeLine(mcp.Message{ID: strconv.AppendUint(nil, s.lastWakeup.id, 10), Method: method,
		Params: params}))
}
