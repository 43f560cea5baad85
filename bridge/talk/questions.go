package talk

import (
	"bytes"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// AsksInput says whether a result, or a task, of the modern generation asks for input. The search for the bare word is much
// cheaper than reading a large result.
func AsksInput(result json.RawMessage) bool {
	return bytes.Contains(result, []byte("input_required")) &&
		(wire.GetText(result, "resultType") == "input_required" || wire.GetText(result, "status") == "input_required")
}

// NamedIn says which server asks, in the elicitations of a result that asks for input.
func NamedIn(id drawbridge.ServerID, result json.RawMessage) json.RawMessage {
	if !AsksInput(result) {
		return result
	}
	questions := wire.Get(result, "inputRequests")
	named := wire.EachValue(questions, func(m wire.Member) json.RawMessage {
		if wire.GetText(m.Value, "method") != wire.MethodElicitation {
			return m.Value
		}
		return wire.Apply(m.Value, wire.Put(Named(id, wire.MethodElicitation, wire.Get(m.Value, "params")), "params"))
	})
	if bytes.Equal(named, questions) {
		return result
	}
	return wire.Apply(result, wire.Put(named, "inputRequests"))
}

// Undeclared gives the method of a question, in a result that asks for input, which the caller did not declare to answer;
// false where there is none.
func Undeclared(client, server, result json.RawMessage) (method string, found bool) {
	for m := range wire.Members(wire.Get(result, "inputRequests")) {
		method := wire.GetText(m.Value, "method")
		if twofold(m.Value, "method", "params") {
			return method + " that can be read in two ways", true
		}
		if method == wire.MethodElicitation && strayPage(wire.Get(m.Value, "params")) {
			return method + " with no web address", true
		}
		if !wire.MayAskBy(client, server, method, wire.Get(m.Value, "params")) {
			return method, true
		}
	}
	return "", false
}
