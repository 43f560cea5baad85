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

// NamedIn gives a result that asks for input with its questions as the rules let them be shown, see [Rules.Named].
func (r Rules) NamedIn(id drawbridge.ServerID, result json.RawMessage) json.RawMessage {
	if !AsksInput(result) {
		return result
	}
	questions := wire.Get(result, "inputRequests")
	named := wire.EachValue(questions, func(m wire.Member) json.RawMessage {
		params := wire.Get(m.Value, "params")
		named := r.Named(id, wire.GetText(m.Value, "method"), params)
		if bytes.Equal(named, params) {
			return m.Value
		}
		return wire.Apply(m.Value, wire.Put(named, "params"))
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
		if method == wire.MethodElicitation && strayPage(wire.Get(m.Value, "params")) {
			return method + " with no web address", true
		}
		if !wire.MayAskBy(client, server, method, wire.Get(m.Value, "params")) {
			return method, true
		}
	}
	return "", false
}
