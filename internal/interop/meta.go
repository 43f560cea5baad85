package interop

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// hopMetaKeys are the members of _meta that apply only to one connection. Drawbridge does not pass them on: it drops
// them, or sets its own values for the next connection.
var hopMetaKeys = []string{
	mcp.MetaProtocolVersion, mcp.MetaClientInfo, mcp.MetaClientCapabilities, mcp.MetaServerInfo, mcp.MetaSubscriptionID,
}

// A RequestMeta holds the values that Drawbridge sets in the _meta of a request to a stateless server.
type RequestMeta struct {
	// Version is the protocol version; ClientInfo is a JSON object, an Implementation.
	Version, ClientInfo string
	// Capabilities is a JSON object; empty means {}.
	Capabilities json.RawMessage
	// LogLevel is the minimum level of log messages, for requests whose _meta does not contain a level; "" means that
	// no level is set.
	LogLevel string
}

// ToModernParams returns the params of a request for a stateless server. It removes the members in hopMetaKeys from
// _meta and adds the values in h. All other members are unchanged.
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

// isHopMember reports whether a member of _meta is one of hopMetaKeys.
func isHopMember(m rawjson.Member) bool {
	for _, key := range hopMetaKeys {
		if m.HasName(key) {
			return true
		}
	}
	return false
}

// ToLegacyParams returns the params of a request for a stateful server, without the members of _meta that only
// stateless requests have.
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

// ownMetaPrefix is the prefix of the members of _meta that only Drawbridge may set, such as the reason of a fault.
const ownMetaPrefix = "drawbridge/"

// CleanServerResult returns a result without the server's own serverInfo, because for the caller the server is
// Drawbridge. It also drops the members of _meta with ownMetaPrefix, so that a server cannot imitate a fault of
// Drawbridge.
func CleanServerResult(result json.RawMessage) json.RawMessage {
	// The search text has no slash, because some encoders escape the slash in the key.
	if !rawjson.MayContain(result, "serverInfo") && !rawjson.MayContain(result, "drawbridge") {
		return result
	}
	var edits []rawjson.Edit
	metas, kept := 0, 0
	for m := range rawjson.Members(result) {
		if !m.HasName("_meta") {
			continue
		}
		metas++
		for said := range rawjson.Members(m.Value) {
			if name, _ := rawjson.DecodeString(said.Name); name == mcp.MetaServerInfo || strings.HasPrefix(name,
				ownMetaPrefix) {
				edits = append(edits, rawjson.Drop("_meta", name))
			} else {
				kept++
			}
		}
	}
	switch {
	case len(edits) == 0:
		return result
	case metas == 1 && kept == 0: // as nearly always
		return rawjson.Apply(result, rawjson.Drop("_meta"))
	}
	if metas > 1 {
		// Keep only the last _meta, which Drawbridge reads, so that all parsers read the same members.
		edits = append(edits, rawjson.Put(mcp.MetaOf(result), "_meta"))
		edits[0], edits[len(edits)-1] = edits[len(edits)-1], edits[0]
	}
	return dropEmptyMeta(rawjson.Apply(result, edits...))
}

// StripRelatedTask returns an object without the related-task member of its _meta.
func StripRelatedTask(object json.RawMessage) json.RawMessage {
	if !rawjson.MayContain(object, "related-task") {
		return object
	}
	return withoutMetaMember(object, mcp.MetaRelatedTask)
}

// withoutMetaMember returns an object without a member of its _meta, and without an empty _meta.
func withoutMetaMember(object json.RawMessage, name string) json.RawMessage {
	return dropEmptyMeta(rawjson.Apply(object, rawjson.Drop("_meta", name)))
}

// dropEmptyMeta returns an object without an empty _meta.
func dropEmptyMeta(object json.RawMessage) json.RawMessage {
	for range rawjson.Members(mcp.MetaOf(object)) {
		return object
	}
	return rawjson.Apply(object, rawjson.Drop("_meta"))
}

// ClientInfo returns the Implementation object with which Drawbridge identifies itself to servers, as JSON.
func ClientInfo(version string) string {
	return `{"name":"drawbridge","title":"Drawbridge","version":` + string(rawjson.Quote(version)) + `}`
}

// A Root is a directory that Drawbridge announces to servers: a file URI, and a name for people, which may be empty.
type Root struct{ URI, Name string }

// AnswersRootsForClient reports whether Drawbridge itself responds to roots/list for a client with these capabilities.
// It does if the client did not declare roots, and the settings contain roots.
func AnswersRootsForClient(capabilities json.RawMessage, roots []Root) bool {
	return len(roots) > 0 && !mcp.DeclaresAny(capabilities, "roots")
}

// WithRoots returns a client's capabilities, with roots added if Drawbridge responds to roots/list for the client.
func WithRoots(capabilities json.RawMessage, roots []Root) json.RawMessage {
	if len(capabilities) == 0 {
		capabilities = json.RawMessage("{}")
	}
	if !AnswersRootsForClient(capabilities, roots) {
		return capabilities
	}
	return rawjson.Apply(capabilities, rawjson.Put(json.RawMessage("{}"), "roots"))
}

// RootsResult returns the result of roots/list with these roots.
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
