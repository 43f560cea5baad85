package transport

import (
	"encoding/json"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// WakeServer sends a cheap request to a server on pipes, so that the server reads one more line. The request is
// server/discover with the params modern, or ping if modern is nil. modern must be nil for a stateful server.
// WakeServer does not block. It does nothing for a server over HTTP.
func WakeServer(c Conn, modern json.RawMessage) {
	s, ok := c.(*StreamConn)
	switch {
	case !ok, s.o.ParallelSend: // not on pipes
	case modern != nil:
		s.SendWakeup(mcp.MethodDiscover, modern)
	default:
		s.SendWakeup(mcp.MethodPing, nil)
	}
}

// SendWakeup sends a request and drops its response. A server that has stalled after it read a line continues when it
// reads this request. SendWakeup does not block. It sends nothing while the last wakeup has no response, since a busy
// server would later read all wakeups.
func (s *StreamConn) SendWakeup(method string, params json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.lastWakeup != nil && s.pending.find(s.lastWakeup.id) != nil {
		return
	}
	// isSubscription is set so that no server message is attributed to the wakeup.
	s.lastWakeup = &pendingRequest{isSubscription: true, ready: make(chan struct{})}
	s.pending.add(s.lastWakeup)
	// An error means that the queue is full: the server does not read at all.
	_ = s.enqueueUnawaited(encodeLine(mcp.Message{ID: strconv.AppendUint(nil, s.lastWakeup.id, 10), Method: method,
		Params: params}))
}
