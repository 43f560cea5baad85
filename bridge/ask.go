package bridge

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/exchange"
	"github.com/drawbridge-mcp/drawbridge/bridge/hop"
	"github.com/drawbridge-mcp/drawbridge/bridge/talk"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

var _ exchange.Server = (*session)(nil)

// AskFor answers a request of the server that came in the course of call: by the caller, if it declared that it may be
// asked that, or by ourselves.
func (s *session) AskFor(ctx context.Context, call drawbridge.Call, method string, params json.RawMessage) (result, errorObject json.RawMessage) {
	capability := wire.Capability(method)
	if capability != "" {
		s.e.noteAsks()
	}
	switch {
	case s.era == drawbridge.Legacy && s.frank() && call.Peer != nil && wire.MayAskBy(call.Caller.Capabilities, s.capabilities, method, params):
	case capability == "":
		return nil, wire.ErrorObject(wire.CodeMethodNotFound, "method not found", nil)
	case method == wire.MethodRootsList && (!s.frank() || !s.own() && call.Peer == nil || hop.Rootless(call.Caller.Capabilities, s.e.pool.o.Roots)):
		return hop.Roots(s.e.pool.o.Roots), nil
	default:
		if method == wire.MethodElicitation {
			s.e.decline(s.e.pool.o.Elicitation.Bars(s.e.row, call.Caller))
		}
		return nil, wire.ErrorObject(wire.CodeMethodNotFound, fmt.Sprintf("%s: the client did not declare %s", method, capability), nil)
	}
	answer, err := s.e.forms.Ask(ctx, s.e.pool.o.Elicitation, call.Caller.Principal, call.Peer, method, s.e.pool.o.Elicitation.Named(s.e.row.ID, method, params))
	if err == nil {
		return answer, nil
	}
	return nil, talk.Unanswered(err)
}

// noteAsks notes that the server asks its clients: from now on those who can be asked have sessions of their own with it.
func (e *endpoint) noteAsks() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asks = true
	for _, s := range e.sessions {
		e.part(s)
	}
}

// part ends a session of a kind of caller whose callers have their own now, once nobody is in it. It needs mu.
func (e *endpoint) part(s *session) {
	if s.key.lasting && e.asks && s.busy == 0 {
		delete(e.sessions, s.key)
		s.lose(errIdle)
	}
}
