package server

import (
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An incoming is a received message, with the refusal for one that cannot be processed.
type incoming struct {
	mcp.Message
	// refusal is the zero reply if there is nothing to refuse. It answers refusalID, which is nil if no id can be read.
	refusal   reply
	refusalID json.RawMessage
}

// readIncoming parses a message. It returns an error if the bytes are not a message.
func readIncoming(raw []byte) (incoming, error) {
	m, err := mcp.ParseMessage(raw)
	if err != nil {
		return incoming{}, err
	}
	l := incoming{Message: m}
	switch {
	case m.Ambiguous != "":
		// Another parser, for example of a proxy, may read another id, method or params.
		l.refusal = failureReply(mcp.CodeInvalidRequest, fmt.Sprintf(
			"Invalid request: member %q is repeated or has a look-alike", m.Ambiguous), nil)
	case m.IsResponse() || m.IsNotification():
	case m.ID == nil || !isRequestID(m.ID):
		l.refusal = failureReply(mcp.CodeInvalidRequest, "Invalid request", nil)
	case m.Method == "" && rawjson.Get(raw, "method") == nil:
		// It may be a malformed response, whose id would be one of our requests: so the refusal has no id.
		l.refusal = failureReply(mcp.CodeInvalidRequest, "Invalid request", nil)
	case m.Method == "":
		l.refusal, l.refusalID = failureReply(mcp.CodeInvalidRequest, "Invalid request: method must be a string", nil),
			m.ID
	default:
		l.refusal, l.refusalID = checkParams(m), m.ID
	}
	return l, nil
}

// checkParams refuses params that JSON-RPC does not allow. For MCP methods it also refuses an array, since all of them
// take an object. Null counts as absent, because some clients write every member.
func checkParams(m mcp.Message) reply {
	switch {
	case m.Params == nil || m.Params[0] == '{' || string(m.Params) == "null":
		return reply{}
	case m.Params[0] != '[':
		return failureReply(mcp.CodeInvalidRequest, "Invalid request: params must be an object", nil)
	case isKnownMethod(m.Method):
		return failureReply(mcp.CodeInvalidParams, "Invalid params: params must be an object", nil)
	}
	return reply{}
}

// isKnownMethod reports whether any protocol generation has the method here.
func isKnownMethod(method string) bool {
	switch method {
	case mcp.MethodInitialize, mcp.MethodDiscover, mcp.MethodPing, mcp.MethodListen,
		mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList,
		mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead, mcp.MethodComplete,
		mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe,
		mcp.MethodSkillsList, mcp.MethodSkillsGet, mcp.MethodDirectoryRead:
		return true
	}
	return false
}

// isRequestID reports whether a request's id is a string or a number.
func isRequestID(id json.RawMessage) bool {
	return id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9'
}
