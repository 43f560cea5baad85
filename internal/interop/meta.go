package interop

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// hopMetaKeys are the members of _meta that say how a caller and we talk. A server hears how we and it talk.
var hopMetaKeys = []string{
	mcp.MetaProtocolVersion, mcp.MetaClientInfo, mcp.MetaClientCapabilities, mcp.MetaServerInfo, mcp.MetaSubscriptionID,
}

// A RequestMeta is what a request of the modern generation says of us.
type RequestMeta struct {
	// Version is the protocol's, Client a JSON object: an Implementation.
	Version, ClientInfo string
	// Capabilities is a JSON object; empty counts as {}.
	Capabilities json.RawMessage
	// LogLevel is the log level wanted, where the request itself names none; empty for none.
	LogLevel string
}

// ToModernParams gives the params of a request as they go to a server of the modern generation: what _meta said of the
// caller's hop is replaced by ours, everything else stays.
func ToModernParams(params json.RawMessage, h RequestMeta) json.RawMessage {
	meta := mcp.MetaOf(params)
	out := make([]byte, 0, len(meta)+len(h.ClientInfo)+len(h.Capabilities)+256)
	out = append(out, '{')
	put := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(rawjson.AppendQuoted(out, name), ':'), value...)
	}
	put(mcp.MetaProtocolVersion, rawjson.Quote(h.Version))
	put(mcp.MetaClientInfo, []byte(h.ClientInfo))
	if len(h.Capabilities) == 0 {
		h.Capabilities = json.RawMessage("{}")
	}
	put(mcp.MetaClientCapabilities, h.Capabilities)
	levelled := false
	for m := range rawjson.Members(meta) {
		if isHopMember(m) {
			continue
		}
		levelled = levelled || m.HasName(mcp.MetaLogLevel)
		out = append(append(append(append(out, ','), m.Name...), ':'), m.Value...)
	}
	if h.LogLevel != "" && !levelled {
		put(mcp.MetaLogLevel, rawjson.Quote(h.LogLevel))
	}
	return rawjson.Apply(params, rawjson.Put(append(out, '}'), "_meta"))
}

// isHopMember says whether a member of _meta belongs to one hop.
func isHopMember(m rawjson.Member) bool {
	for _, key := range hopMetaKeys {
		if m.HasName(key) {
			return true
		}
	}
	return false
}

// ToLegacyParams gives the params of a request as they go to a server of the legacy generation: without what only the
// modern one says in _meta.
func ToLegacyParams(params json.RawMessage) json.RawMessage {
	if !bytes.Contains(params, []byte("io.modelcontextprotocol")) {
		return params
	}
	edits := make([]rawjson.Edit, 0, len(hopMetaKeys)+1)
	for _, key := range hopMetaKeys {
		edits = append(edits, rawjson.Drop("_meta", key))
	}
	return rawjson.Apply(params, append(edits, rawjson.Drop("_meta", mcp.MetaLogLevel))...)
}

// ownMetaPrefix begins the names of members that only we may say: what kept a call from its server, say.
const ownMetaPrefix = "drawbridge/"

// CleanServerResult gives a result without the server's name for itself, since towards the caller the server is we,
// and without what only we say: a server can not make a fault look as if it were ours.
func CleanServerResult(result json.RawMessage) json.RawMessage {
	// Searched without the key's slash, which some encoders escape.
	if !rawjson.MayContain(result, "serverInfo") && !rawjson.MayContain(result, "drawbridge") {
		return result
	}
	edits, metas := []rawjson.Edit{}, 0
	for m := range rawjson.Members(result) {
		if !m.HasName("_meta") {
			continue
		}
		metas++
		for said := range rawjson.Members(m.Value) {
			if name, _ := rawjson.DecodeString(said.Name); name == mcp.MetaServerInfo || strings.HasPrefix(name,
				ownMetaPrefix) {
				edits = append(edits, rawjson.Drop("_meta", name))
			}
		}
	}
	if len(edits) == 0 {
		return result
	}
	if metas > 1 {
		// the last counts for us: it is the only one for everybody
		edits = append(edits, rawjson.Put(mcp.MetaOf(result), "_meta"))
		edits[0], edits[len(edits)-1] = edits[len(edits)-1], edits[0]
	}
	return dropEmptyMeta(rawjson.Apply(result, edits...))
}

// StripRelatedTask gives an object without what says which task it belongs to.
func StripRelatedTask(object json.RawMessage) json.RawMessage {
	if !rawjson.MayContain(object, "related-task") {
		return object
	}
	return withoutMetaMember(object, mcp.MetaRelatedTask)
}

// withoutMetaMember gives an object without a member of its _meta, and without _meta where that was all.
func withoutMetaMember(object json.RawMessage, name string) json.RawMessage {
	return dropEmptyMeta(rawjson.Apply(object, rawjson.Drop("_meta", name)))
}

// dropEmptyMeta gives an object without a _meta that is empty.
func dropEmptyMeta(object json.RawMessage) json.RawMessage {
	for range rawjson.Members(mcp.MetaOf(object)) {
		return object
	}
	return rawjson.Apply(object, rawjson.Drop("_meta"))
}

// ClientInfo is who we are towards servers.
func ClientInfo(version string) string {
	return `{"name":"drawbridge","title":"Drawbridge","version":` + string(rawjson.Quote(version)) + `}`
}

// A Root is a directory that servers are told of: a file URI, and a name for people, which may be empty.
type Root struct{ URI, Name string }

// AnswersRootsForClient reports whether roots are ours to tell for a client with these capabilities: it has none, and
// we have some.
func AnswersRootsForClient(capabilities json.RawMessage, roots []Root) bool {
	return len(roots) > 0 && !mcp.DeclaresAny(capabilities, "roots")
}

// WithRoots is what a server hears that a client can do: what the client says, and that it has roots where they are
// ours to tell.
func WithRoots(capabilities json.RawMessage, roots []Root) json.RawMessage {
	if len(capabilities) == 0 {
		capabilities = json.RawMessage("{}")
	}
	if !AnswersRootsForClient(capabilities, roots) {
		return capabilities
	}
	return rawjson.Apply(capabilities, rawjson.Put(json.RawMessage("{}"), "roots"))
}

// RootsResult is the answer to roots/list.
func RootsResult(roots []Root) json.RawMessage {
	out := []byte(`{"roots":[`)
	for i, root := range roots {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendQuoted(append(out, `{"uri":`...), root.URI)
		if root.Name != "" {
			out = rawjson.AppendQuoted(append(out, `,"name":`...), root.Name)
		}
		out = append(out, '}')
	}
	return append(out, "]}"...)
}
