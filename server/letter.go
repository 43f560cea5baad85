package server

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A letter is a message as it came, with the refusal of one that is neither a response nor a notification nor a request
// that can be answered.
type letter struct {
	wire.Message
	// refusal is the zero reply where there is nothing to refuse. It answers to, which is nil where no id can be read.
	refusal reply
	to      json.RawMessage
}

// readLetter reads a message. The error is for bytes that are none.
func readLetter(raw []byte) (letter, error) {
	m, err := wire.Parse(raw)
	if err != nil {
		return letter{}, err
	}
	l := letter{Message: m}
	switch {
	case m.IsResponse() || m.IsNotification():
	case m.ID == nil || !isID(m.ID):
		l.refusal = failure(wire.CodeInvalidRequest, "Invalid request", nil)
	case m.Method == "" && wire.Get(raw, "method") == nil:
		// It may as well be a broken response: its id would then be one of ours, and is nobody's to be answered.
		l.refusal = failure(wire.CodeInvalidRequest, "Invalid request", nil)
	case m.Method == "":
		l.refusal, l.to = failure(wire.CodeInvalidRequest, "Invalid request: the method is no name", nil), m.ID
	default:
		l.refusal, l.to = refuseParams(m), m.ID
	}
	return l, nil
}

// refuseParams refuses params that JSON-RPC does not have, and those by position for methods that MCP has, which all take
// an object. Null is seen from clients that write every member, and means none.
func refuseParams(m wire.Message) reply {
	switch {
	case m.Params == nil || m.Params[0] == '{' || string(m.Params) == "null":
		return reply{}
	case m.Params[0] != '[':
		return failure(wire.CodeInvalidRequest, "Invalid request: params are no object", nil)
	case isOurs(m.Method):
		return failure(wire.CodeInvalidParams, "Invalid params: want an object", nil)
	}
	return reply{}
}

// isOurs says whether a method is answered here in any generation.
func isOurs(method string) bool {
	switch method {
	case wire.MethodInitialize, wire.MethodDiscover, wire.MethodPing, wire.MethodListen,
		wire.MethodToolsList, wire.MethodPromptsList, wire.MethodResourcesList, wire.MethodTemplatesList,
		wire.MethodToolsCall, wire.MethodPromptsGet, wire.MethodResourcesRead, wire.MethodComplete,
		wire.MethodSetLevel, wire.MethodSubscribe, wire.MethodUnsubscribe,
		wire.MethodSkillsList, wire.MethodSkillsGet, wire.MethodDirectoryRead:
		return true
	}
	return false
}

// isID says whether a request's id is a string or a number.
func isID(id json.RawMessage) bool {
	return id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9'
}
