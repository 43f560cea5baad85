package bridge

import (
	"bytes"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/talk"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// hopKeys are the members of _meta that say how a caller and we talk. A server hears how we and it talk.
var hopKeys = []string{
	wire.MetaProtocolVersion, wire.MetaClientInfo, wire.MetaClientCapabilities, wire.MetaServerInfo, wire.MetaSubscriptionID,
}

// A hop is what a request of the modern generation says of us.
type hop struct {
	version, client string // the client as JSON
	// capabilities is a JSON object; empty counts as {}.
	capabilities json.RawMessage
	// level is the log level wanted, where the request itself names none; empty for none.
	level string
}

// toModern gives the params of a request as they go to a server of the modern generation: what _meta said of the caller's
// hop is replaced by ours, everything else stays.
func toModern(params json.RawMessage, h hop) json.RawMessage {
	meta := wire.MetaOf(params)
	out := make([]byte, 0, len(meta)+len(h.client)+len(h.capabilities)+256)
	out = append(out, '{')
	put := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(wire.AppendQuoted(out, name), ':'), value...)
	}
	put(wire.MetaProtocolVersion, wire.Quote(h.version))
	put(wire.MetaClientInfo, []byte(h.client))
	if len(h.capabilities) == 0 {
		h.capabilities = json.RawMessage("{}")
	}
	put(wire.MetaClientCapabilities, h.capabilities)
	levelled := false
	for m := range wire.Members(meta) {
		if isHop(m) {
			continue
		}
		levelled = levelled || m.Is(wire.MetaLogLevel)
		out = append(append(append(append(out, ','), m.Name...), ':'), m.Value...)
	}
	if h.level != "" && !levelled {
		put(wire.MetaLogLevel, wire.Quote(h.level))
	}
	return wire.Apply(params, wire.Put(append(out, '}'), "_meta"))
}

func isHop(m wire.Member) bool {
	for _, key := range hopKeys {
		if m.Is(key) {
			return true
		}
	}
	return false
}

// toLegacy gives the params of a request as they go to a server of the legacy generation: without what only the modern
// one says in _meta.
func toLegacy(params json.RawMessage) json.RawMessage {
	if !bytes.Contains(params, []byte("io.modelcontextprotocol")) {
		return params
	}
	edits := make([]wire.Edit, 0, len(hopKeys)+1)
	for _, key := range hopKeys {
		edits = append(edits, wire.Drop("_meta", key))
	}
	return wire.Apply(params, append(edits, wire.Drop("_meta", wire.MetaLogLevel))...)
}

// fromServer gives a result without the server's name for itself: towards the caller the server is we.
func fromServer(result json.RawMessage) json.RawMessage {
	// Searched without the key's slash, which some encoders escape.
	if !bytes.Contains(result, []byte("serverInfo")) {
		return result
	}
	return withoutMeta(result, wire.MetaServerInfo)
}

// withoutMeta gives an object without a member of its _meta, and without _meta where that was all.
func withoutMeta(object json.RawMessage, name string) json.RawMessage {
	object = wire.Apply(object, wire.Drop("_meta", name))
	for range wire.Members(wire.MetaOf(object)) {
		return object
	}
	return wire.Apply(object, wire.Drop("_meta"))
}

// MetaServer is the member of an elicitation's _meta that says which server asks.
const MetaServer = talk.MetaServer

// asksInput says whether a result, or a task, of the modern generation asks for input. The search for the bare word is much
// cheaper than reading a large result.
func asksInput(result json.RawMessage) bool {
	return bytes.Contains(result, []byte("input_required")) &&
		(wire.GetText(result, "resultType") == "input_required" || wire.GetText(result, "status") == "input_required")
}

// questionsNamed says which server asks, in the elicitations of a result that asks for input.
func questionsNamed(id drawbridge.ServerID, result json.RawMessage) json.RawMessage {
	if !asksInput(result) {
		return result
	}
	changed := false
	out := json.RawMessage{'{'}
	for m := range wire.Members(wire.Get(result, "inputRequests")) {
		question := m.Value
		if wire.GetText(question, "method") == wire.MethodElicitation {
			question = wire.Apply(question, wire.Put(talk.Named(id, wire.MethodElicitation, wire.Get(question, "params")), "params"))
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

// undeclared gives the method of a question, in a result that asks for input, which the caller did not declare to answer;
// false where there is none.
func undeclared(client, server, result json.RawMessage) (method string, found bool) {
	for m := range wire.Members(wire.Get(result, "inputRequests")) {
		method := wire.GetText(m.Value, "method")
		if !wire.MayAskBy(client, server, method, wire.Get(m.Value, "params")) {
			return method, true
		}
	}
	return "", false
}

// clientInfo is who we are towards servers.
func clientInfo(version string) string {
	return `{"name":"drawbridge","title":"Drawbridge","version":` + string(wire.Quote(version)) + `}`
}
