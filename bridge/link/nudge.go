package link

import (
	"encoding/json"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Wake has a server on pipes read one more line, for which the request is the cheapest that its generation has. Modern are the
// params that each request of the stateless generation has; nil is the other one. It does not block.
func Wake(c Conn, modern json.RawMessage) {
	s, ok := c.(*Stream)
	switch {
	case !ok, s.o.Parallel: // no pipe
	case modern != nil:
		s.Nudge(wire.MethodDiscover, modern)
	default:
		s.Nudge(wire.MethodPing, nil)
	}
}

// Nudge sends a request whose answer nobody waits for, so that a server which has a line and does not get round to it reads
// another one. It does not block. Before the last nudge was answered there is no other, since a server that is busy would
// find all of them afterwards.
func (s *Stream) Nudge(method string, params json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.nudge != nil && s.calls.find(s.nudge.ID) != nil {
		return
	}
	s.nudge = &Call{Listen: true, ready: make(chan struct{})} // as a subscription: what the server says is not because of it
	s.calls.Add(s.nudge)
	_ = s.leave(encode(wire.Message{ID: strconv.AppendUint(nil, s.nudge.ID, 10), Method: method, Params: params})) // else it does not read at all
}
