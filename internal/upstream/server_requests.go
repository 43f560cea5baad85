package upstream

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

var _ callTarget = (*session)(nil)

// AnswerServerRequest answers a server request that arrived during call. It sends the request to the caller if the
// session was opened with the caller's capabilities and they permit the request. Otherwise Drawbridge refuses the
// request. Only roots/list is answered with Drawbridge's own roots, on a shared session or if Drawbridge declared roots
// for the caller.
func (s *session) AnswerServerRequest(ctx context.Context, call drawbridge.Call, method string,
	params json.RawMessage) (result, errorObject json.RawMessage) {
	capability := mcp.RequiredCapability(method)
	if capability != "" {
		s.server.sessions.markAsksClients()
	}
	switch {
	case s.era == drawbridge.Legacy && s.hasCallerCapabilities() && call.Peer != nil &&
		mcp.ServerMayRequest(call.Caller.Capabilities, s.capabilities, method, params):
	case capability == "":
		return nil, mcp.NewErrorObject(mcp.CodeMethodNotFound, "method not found", nil)
	case method == mcp.MethodRootsList && (!s.hasCallerCapabilities() || !s.isPrivate() && call.Peer == nil ||
		interop.AnswersRootsForClient(call.Caller.Capabilities, s.server.pool.o.Roots)):
		return interop.RootsResult(s.server.pool.o.Roots), nil
	default:
		if method == mcp.MethodElicitation {
			s.server.health.noteDecline(s.server.pool.o.Elicitation.BlockReason(s.server.config, call.Caller))
		}
		return nil, mcp.NewErrorObject(mcp.CodeMethodNotFound, fmt.Sprintf("%s: the client did not declare %s", method,
			capability), nil)
	}
	answer, err := s.server.elicitations.AskUser(ctx, s.server.pool.o.Elicitation, call.Caller.Principal, call.Peer,
		method, s.server.pool.o.Elicitation.PrepareRequest(s.server.config.ID, method, params))
	if err == nil {
		return answer, nil
	}
	return nil, interop.ErrorForServer(err)
}
