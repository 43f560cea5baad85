package interop

import (
	"bytes"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// MayNeedInput reports whether any parser may read a result or a task of a stateless server as asking for input. It
// parses the result only if it contains the text "input_required", because parsing a large result is slow.
func MayNeedInput(result json.RawMessage) bool {
	if !rawjson.MayContain(result, inputRequired) {
		return false
	}
	for m := range rawjson.Members(result) {
		for _, name := range []string{"resultType", "status"} {
			if m.HasName(name) || m.ResemblesName(name) {
				if text, _ := rawjson.DecodeString(m.Value); text == inputRequired {
					return true
				}
			}
		}
	}
	return false
}

const inputRequired = "input_required"

// PrepareInputRequests prepares each question in a result with [ElicitationRules.PrepareRequest] and returns the
// changed result. A result that does not ask for input is returned unchanged.
func (r ElicitationRules) PrepareInputRequests(id drawbridge.ServerID, result json.RawMessage) json.RawMessage {
	if !MayNeedInput(result) {
		return result
	}
	questions := rawjson.Get(result, "inputRequests")
	named := rawjson.MapValues(questions, func(m rawjson.Member) json.RawMessage {
		params := rawjson.Get(m.Value, "params")
		named := r.PrepareRequest(id, rawjson.GetString(m.Value, "method"), params)
		if bytes.Equal(named, params) {
			return m.Value
		}
		return rawjson.Apply(m.Value, rawjson.Put(named, "params"))
	})
	if bytes.Equal(named, questions) {
		return result
	}
	return rawjson.Apply(result, rawjson.Put(named, "inputRequests"))
}

// UndeclaredRequest searches a result that asks for input for a question that must not be passed on to the caller. That
// is a question that the client's capabilities do not cover, that two parsers may read differently, or that has an
// unsafe URL. It returns the question's method for use in a message; found is false if there is no such question.
// client and server are the declared capabilities.
func UndeclaredRequest(client, server, result json.RawMessage) (method string, found bool) {
	if isAmbiguous(result, "resultType", "status", "inputRequests") {
		return "a question that can be read in two ways", true
	}
	for m := range rawjson.Members(rawjson.Get(result, "inputRequests")) {
		method := rawjson.GetString(m.Value, "method")
		if isAmbiguous(m.Value, "method", "params") {
			return method + " that can be read in two ways", true
		}
		if method == mcp.MethodElicitation && hasUnsafeURL(rawjson.Get(m.Value, "params")) {
			return method + " with no web address", true
		}
		if !mcp.ServerMayRequest(client, server, method, rawjson.Get(m.Value, "params")) {
			return method, true
		}
	}
	return "", false
}
