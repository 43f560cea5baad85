package server

import (
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An incoming is a received message. If the message cannot be processed, refusal is the error reply to it.
type incoming struct {
	mcp.Message
	// refusal is the error reply to the message; the zero reply if the message can be processed. refusalID is the
	// request id in the error reply; nil if the message has no valid id.
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
		// Another parser, for example in a proxy, may read a different id, method or params.
		l.refusal = failureReply(mcp.CodeInvalidRequest, fmt.Sprintf(
			"Invalid request: member %q is repeated or has a look-alike", m.Ambiguous), nil)
	case m.IsResponse() || m.IsNotification():
	case m.ID == nil || !isRequestID(m.ID):
		l.refusal = failureReply(mcp.CodeInvalidRequest, "Invalid request", nil)
	case m.Method == "" && rawjson.Get(raw, "method") == nil:
		// The message may be a malformed response to a request of this server. Its id would be the id of that request,
		// so the refusal has no id.
		l.refusal = failureReply(mcp.CodeInvalidRequest, "Invalid request", nil)
	case m.Method == "":
		l.refusal, l.refusalID = failureReply(mcp.CodeInvalidRequest, "Invalid request: method must be a string", nil),
			m.ID
	default:
		l.refusal, l.refusalID = checkParams(m), m.ID
	}
	return l, nil
}

// checkParams returns an error reply for params that JSON-RPC does not allow. For a method of MCP it also refuses an
// array, because all methods of MCP take an object. Null counts as absent, because some clients write every member.
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

// isKnownMethod reports whether this server supports the method in any protocol generation.
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

// isRequestID reports whether the id of a request is a string or a number.
func isRequestID(id json.RawMessage) bool {
	return id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9'
}
