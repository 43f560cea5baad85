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
	changed := false
	out := json.RawMessage{'{'}
	for m := range wire.Members(wire.Get(result, "inputRequests")) {
		question := m.Value
		if wire.GetText(question, "method") == wire.MethodElicitation {
			question = wire.Apply(question, wire.Put(Named(id, wire.MethodElicitation, wire.Get(question, "params")), "params"))
			changed = true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, m.Name...), ':'), question...)
	}
	if !changed {
		return result
	}
	return wire.Apply(result, wire.Put(append(out, '}'), "inputRequests"))
}

// Undeclared gives the method of a question, in a result that asks for input, which the caller did not declare to answer;
// false where there is none.
func Undeclared(client, server, result json.RawMessage) (method string, found bool) {
	for m := range wire.Members(wire.Get(result, "inputRequests")) {
		method := wire.GetText(m.Value, "method")
		if !wire.MayAskBy(client, server, method, wire.Get(m.Value, "params")) {
			return method, true
		}
	}
	return "", false
}
