package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// saysModern says whether a message carries the version of a stateless revision, without reading it where it does not. Only
// the end of the member's name is searched for: some encoders escape the slash before it.
func saysModern(raw []byte, m wire.Message) bool {
	return bytes.Contains(raw, []byte("protocolVersion")) && wire.EraOf(wire.VersionOf(m.Params)) == drawbridge.Modern
}

// A statement is what a stateless request says of its caller.
type statement struct {
	caller drawbridge.Caller
	// level is the least severe log line to hear; empty hears none.
	level string
}

// stated reads what a stateless request says of its caller, beside what was proved. The reply is the refusal of one that does not say what it
// must, or speaks a revision that we do not.
func (s *Server) stated(caller drawbridge.Caller, params json.RawMessage) (statement, reply) {
	meta := wire.MetaOf(params)
	caller = s.parts.Request(caller, meta)
	st := statement{caller, wire.GetText(meta, wire.MetaLogLevel)}
	switch {
	case caller.Protocol == "":
		return st, failure(wire.CodeInvalidParams, "Missing _meta member "+wire.MetaProtocolVersion, nil)
	case !isObject(caller.Capabilities):
		return st, failure(wire.CodeInvalidParams, "Missing _meta member "+wire.MetaClientCapabilities, nil)
	case !slices.Contains(wire.ModernVersions(), caller.Protocol):
		return st, unsupported(caller.Protocol)
	}
	return st, checkCapabilities(caller.Capabilities)
}

// checkCapabilities refuses capabilities in which a member that the protocol defines is no object: who reads them next may
// take anything else for a yes or for a no. Null counts as absent, and what the protocol does not know may be anything.
func checkCapabilities(capabilities json.RawMessage) reply {
	for m := range wire.Members(capabilities) {
		if isObject(m.Value) || string(m.Value) == "null" {
			continue
		}
		switch name, _ := wire.Text(m.Name); name {
		case "roots", "sampling", "elicitation", "tasks", "extensions", "experimental":
			return failure(wire.CodeInvalidParams, "Invalid client capabilities: "+name+" is no object", nil)
		}
	}
	return reply{}
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// versions are all that we speak, newest first.
func versions() []string { return append(wire.ModernVersions(), wire.LegacyVersions()...) }

// unsupported refuses a revision: an UnsupportedProtocolVersionError of 2026-07-28.
func unsupported(requested string) reply {
	data := append([]byte(`{"supported":`), versionList()...)
	data = append(append(data, `,"requested":`...), wire.Quote(clip(requested))...)
	return failure(wire.CodeUnsupportedVersion, "Unsupported protocol version", append(data, '}'))
}

func versionList() json.RawMessage { return wire.AppendTexts(nil, versions()...) }

// checkHeaders compares the headers of a stateless request with its body, as 2026-07-28 wants it: what stands between may
// have routed on them. The zero reply is for headers that say what the body says.
func checkHeaders(h http.Header, m wire.Message, version string) reply {
	mismatch := func(text string) reply { return failure(wire.CodeHeaderMismatch, "Header mismatch: "+text, nil) }
	got, ok := header(h, wire.HeaderVersion)
	switch {
	case !ok:
		return mismatch(wire.HeaderVersion + " is missing")
	case got != version:
		return mismatch(wire.HeaderVersion + " is not the version of _meta")
	}
	got, ok = header(h, wire.HeaderMethod)
	switch {
	case !ok:
		return mismatch(wire.HeaderMethod + " is missing")
	case got != m.Method:
		return mismatch(wire.HeaderMethod + " is not the method of the body")
	}
	want, named := wire.NameOf(m.Method, m.Params)
	if !named {
		return reply{}
	}
	got, ok = header(h, wire.HeaderName)
	if !ok {
		return mismatch(wire.HeaderName + " is missing")
	}
	got, err := wire.DecodeHeader(got)
	switch {
	case err != nil:
		return mismatch(wire.HeaderName + " is not decodable")
	case got != want:
		return mismatch(wire.HeaderName + " is not the name of the body")
	}
	return reply{}
}

// header gives a header's value; one that was sent twice matches nothing.
func header(h http.Header, name string) (string, bool) {
	switch values := h[http.CanonicalHeaderKey(name)]; len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	default:
		return "\x00", true
	}
}

// checkMarks compares the Mcp-Param headers of a tools/call with its arguments, where the tool's schema has marks.
func (s *Server) checkMarks(h http.Header, caller drawbridge.Caller, params json.RawMessage) reply {
	spec, ok := s.deck.Find(caller, drawbridge.CardName(wire.GetText(params, "name")))
	if !ok {
		return reply{} // the call itself says so
	}
	marks, err := wire.ParamMarks(wire.Get(spec.Definition, "inputSchema"))
	if err != nil || len(marks) == 0 {
		return reply{}
	}
	get := func(name string) (string, bool) { return header(h, name) }
	if err := wire.CheckParamHeaders(marks, wire.Get(params, "arguments"), get); err != nil {
		return failure(wire.CodeHeaderMismatch, "Header mismatch: "+err.Error(), nil)
	}
	return reply{}
}

// modern answers a stateless request, but for subscriptions/listen, whose answer is a stream.
func (s *Server) modern(ctx context.Context, caller drawbridge.Caller, m wire.Message, peer drawbridge.Peer) reply {
	switch m.Method {
	case wire.MethodDiscover:
		return s.discover(caller)
	case wire.MethodToolsList, wire.MethodPromptsList, wire.MethodResourcesList, wire.MethodTemplatesList, wire.MethodSkillsList:
		return s.list(ctx, caller, m.Method, m.Params)
	case wire.MethodToolsCall, wire.MethodPromptsGet, wire.MethodResourcesRead, wire.MethodComplete:
		return s.call(ctx, caller, m, peer)
	case wire.MethodInitialize, wire.MethodPing, wire.MethodSetLevel, wire.MethodSubscribe, wire.MethodUnsubscribe:
		return noMethod(m.Method) // gone with the stateful generation
	}
	return s.call(ctx, caller, m, peer) // of an extension, or of nobody
}

// call hands a request to the deck.
func (s *Server) call(ctx context.Context, caller drawbridge.Caller, m wire.Message, peer drawbridge.Peer) reply {
	got, err := s.deck.Do(ctx, drawbridge.Call{Caller: caller, Method: m.Method, Params: m.Params, Peer: peer})
	if err != nil {
		return s.failed(ctx, caller, m.Method, m.Params, err)
	}
	return s.finish(caller, m.Method, got.Raw)
}

func (s *Server) discover(caller drawbridge.Caller) reply {
	out := append([]byte(`{"supportedVersions":`), versionList()...)
	out = append(append(out, `,"capabilities":`...), s.capabilities(caller)...)
	if text := s.deck.Instructions(caller); text != "" {
		out = wire.AppendQuoted(append(out, `,"instructions":`...), text)
	}
	hint := s.deck.Hint(caller, wire.MethodDiscover)
	hint.Public = hint.Public && !s.alone(caller)
	out = appendHint(append(out, `,"resultType":"complete"`...), hint)
	out = s.appendMeta(append(out, `,"_meta":`...))
	return result(append(out, '}', '}'))
}

func (s *Server) capabilities(caller drawbridge.Caller) json.RawMessage {
	if caps := s.deck.Capabilities(caller); len(caps) > 0 {
		return caps
	}
	return json.RawMessage(`{}`)
}
