// Package hop edits the members of "_meta" that belong to one hop: between a caller and us, or between us and a server.
//
// It promises that nothing else of params and results changes, and that neither end hears how the other and we talk.
package hop

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// keys are the members of _meta that say how a caller and we talk. A server hears how we and it talk.
var keys = []string{
	wire.MetaProtocolVersion, wire.MetaClientInfo, wire.MetaClientCapabilities, wire.MetaServerInfo, wire.MetaSubscriptionID,
}

// A Hop is what a request of the modern generation says of us.
type Hop struct {
	// Version is the protocol's, Client a JSON object: an Implementation.
	Version, Client string
	// Capabilities is a JSON object; empty counts as {}.
	Capabilities json.RawMessage
	// Level is the log level wanted, where the request itself names none; empty for none.
	Level string
}

// ToModern gives the params of a request as they go to a server of the modern generation: what _meta said of the caller's
// hop is replaced by ours, everything else stays.
func ToModern(params json.RawMessage, h Hop) json.RawMessage {
	meta := wire.MetaOf(params)
	out := make([]byte, 0, len(meta)+len(h.Client)+len(h.Capabilities)+256)
	out = append(out, '{')
	put := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(wire.AppendQuoted(out, name), ':'), value...)
	}
	put(wire.MetaProtocolVersion, wire.Quote(h.Version))
	put(wire.MetaClientInfo, []byte(h.Client))
	if len(h.Capabilities) == 0 {
		h.Capabilities = json.RawMessage("{}")
	}
	put(wire.MetaClientCapabilities, h.Capabilities)
	levelled := false
	for m := range wire.Members(meta) {
		if Is(m) {
			continue
		}
		levelled = levelled || m.Is(wire.MetaLogLevel)
		out = append(append(append(append(out, ','), m.Name...), ':'), m.Value...)
	}
	if h.Level != "" && !levelled {
		put(wire.MetaLogLevel, wire.Quote(h.Level))
	}
	return wire.Apply(params, wire.Put(append(out, '}'), "_meta"))
}

// Is says whether a member of _meta belongs to one hop.
func Is(m wire.Member) bool {
	for _, key := range keys {
		if m.Is(key) {
			return true
		}
	}
	return false
}

// ToLegacy gives the params of a request as they go to a server of the legacy generation: without what only the modern
// one says in _meta.
func ToLegacy(params json.RawMessage) json.RawMessage {
	if !bytes.Contains(params, []byte("io.modelcontextprotocol")) {
		return params
	}
	edits := make([]wire.Edit, 0, len(keys)+1)
	for _, key := range keys {
		edits = append(edits, wire.Drop("_meta", key))
	}
	return wire.Apply(params, append(edits, wire.Drop("_meta", wire.MetaLogLevel))...)
}

// ours begins the names of members that only we may say: what kept a call from its server, say.
const ours = "drawbridge/"

// FromServer gives a result without the server's name for itself, since towards the caller the server is we, and without what
// only we say: a server can not make a fault look as if it were ours.
func FromServer(result json.RawMessage) json.RawMessage {
	// Searched without the key's slash, which some encoders escape.
	if !wire.MayHave(result, "serverInfo") && !wire.MayHave(result, "drawbridge") {
		return result
	}
	edits, metas := []wire.Edit{}, 0
	for m := range wire.Members(result) {
		if !m.Is("_meta") {
			continue
		}
		metas++
		for said := range wire.Members(m.Value) {
			if name, _ := wire.Text(said.Name); name == wire.MetaServerInfo || strings.HasPrefix(name, ours) {
				edits = append(edits, wire.Drop("_meta", name))
			}
		}
	}
	if len(edits) == 0 {
		return result
	}
	if metas > 1 {
		edits = append(edits, wire.Put(wire.MetaOf(result), "_meta")) // the last counts for us: it is the only one for everybody
		edits[0], edits[len(edits)-1] = edits[len(edits)-1], edits[0]
	}
	return trimMeta(wire.Apply(result, edits...))
}

// WithoutTask gives an object without what says which task it belongs to.
func WithoutTask(object json.RawMessage) json.RawMessage {
	if !wire.MayHave(object, "related-task") {
		return object
	}
	return withoutMeta(object, wire.MetaRelatedTask)
}

// withoutMeta gives an object without a member of its _meta, and without _meta where that was all.
func withoutMeta(object json.RawMessage, name string) json.RawMessage {
	return trimMeta(wire.Apply(object, wire.Drop("_meta", name)))
}

// trimMeta gives an object without a _meta that is empty.
func trimMeta(object json.RawMessage) json.RawMessage {
	for range wire.Members(wire.MetaOf(object)) {
		return object
	}
	return wire.Apply(object, wire.Drop("_meta"))
}

// ClientInfo is who we are towards servers.
func ClientInfo(version string) string {
	return `{"name":"drawbridge","title":"Drawbridge","version":` + string(wire.Quote(version)) + `}`
}

// A Root is a directory that servers are told of: a file URI, and a name for people, which may be empty.
type Root struct{ URI, Name string }

// Rootless reports whether roots are ours to tell for a client with these capabilities: it has none, and we have some.
func Rootless(capabilities json.RawMessage, roots []Root) bool {
	return len(roots) > 0 && !wire.Declares(capabilities, "roots")
}

// Rooted is what a server hears that a client can do: what the client says, and that it has roots where they are ours to tell.
func Rooted(capabilities json.RawMessage, roots []Root) json.RawMessage {
	if len(capabilities) == 0 {
		capabilities = json.RawMessage("{}")
	}
	if !Rootless(capabilities, roots) {
		return capabilities
	}
	return wire.Apply(capabilities, wire.Put(json.RawMessage("{}"), "roots"))
}

// Roots is the answer to roots/list.
func Roots(roots []Root) json.RawMessage {
	out := []byte(`{"roots":[`)
	for i, root := range roots {
		if i > 0 {
			out = append(out, ',')
		}
		out = wire.AppendQuoted(append(out, `{"uri":`...), root.URI)
		if root.Name != "" {
			out = wire.AppendQuoted(append(out, `,"name":`...), root.Name)
		}
		out = append(out, '}')
	}
	return append(out, "]}"...)
}
