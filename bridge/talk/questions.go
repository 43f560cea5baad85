package talk

import (
	"bytes"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// AsksInput says whether a result, or a task, of the modern generation asks for input, to any who read it. The search for the
// word is much cheaper than reading a large result.
func AsksInput(result json.RawMessage) bool {
	if !wire.MayHave(result, asksInput) {
		return false
	}
	for m := range wire.Members(result) {
		for _, name := range []string{"resultType", "status"} {
			if m.Is(name) || m.Resembles(name) {
				if text, _ := wire.Text(m.Value); text == asksInput {
					return true
				}
			}
		}
	}
	return false
}

const asksInput = "input_required"

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
// false where there is none. What can be read in two ways nobody declared.
func Undeclared(client, server, result json.RawMessage) (method string, found bool) {
	if twofold(result, "resultType", "status", "inputRequests") {
		return "a question that can be read in two ways", true
	}
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
