package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// readModernMeta returns the data about the client in the _meta of a message. It returns false if the message does not
// contain the version of a stateless protocol generation. It parses the params only if raw contains "protocolVersion",
// the last part of the member's name. It does not search for the whole name, because some encoders escape the slash in
// it.
func readModernMeta(raw []byte, m mcp.Message) (mcp.RequestMeta, bool) {
	if !bytes.Contains(raw, []byte("protocolVersion")) {
		return mcp.RequestMeta{}, false
	}
	meta := mcp.ReadRequestMeta(m.Params)
	return meta, mcp.EraOf(meta.Version) == drawbridge.Modern
}

// A clientInfo holds the data about the caller that a stateless request contains.
type clientInfo struct {
	caller drawbridge.Caller
	// level is the minimum log level that the client requests; empty means no log messages.
	level string
}

// readClientInfo returns the authenticated caller with the additional data that a stateless request contains. It
// returns an error reply for a request with a missing member or an unsupported version.
func (s *Server) readClientInfo(caller drawbridge.Caller, meta mcp.RequestMeta) (clientInfo, reply) {
	caller = s.clientScopes.requestCaller(caller, meta)
	st := clientInfo{caller, meta.LogLevel}
	switch {
	case caller.Protocol == "":
		return st, failureReply(mcp.CodeInvalidParams, "Missing _meta member "+mcp.MetaProtocolVersion, nil)
	case !isObject(caller.Capabilities):
		return st, failureReply(mcp.CodeInvalidParams, "Missing _meta member "+mcp.MetaClientCapabilities, nil)
	case !slices.Contains(mcp.ModernVersions(), caller.Protocol):
		return st, unsupportedVersion(caller.Protocol)
	}
	return st, checkCapabilities(caller.Capabilities)
}

// checkCapabilities returns an error reply if the value of a capability that the protocol defines is not an object.
// Parsers may disagree about the meaning of another value. Null counts as absent. Unknown members may have any type.
func checkCapabilities(capabilities json.RawMessage) reply {
	for m := range rawjson.Members(capabilities) {
		if isObject(m.Value) || string(m.Value) == "null" {
			continue
		}
		switch name, _ := rawjson.DecodeString(m.Name); name {
		case "roots", "sampling", "elicitation", "tasks", "extensions", "experimental":
			return failureReply(mcp.CodeInvalidParams, "Invalid client capabilities: "+name+" must be an object", nil)
		}
	}
	return reply{}
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// supportedVersions returns the protocol versions that the server supports, newest first.
func supportedVersions() []string { return append(mcp.ModernVersions(), mcp.LegacyVersions()...) }

// unsupportedVersion returns the UnsupportedProtocolVersionError of 2026-07-28 for the requested version.
func unsupportedVersion(requested string) reply {
	data := append([]byte(`{"supported":`), supportedVersionsJSON()...)
	data = append(append(data, `,"requested":`...), rawjson.Quote(truncate(requested))...)
	return failureReply(mcp.CodeUnsupportedVersion, "Unsupported protocol version", append(data, '}'))
}

func supportedVersionsJSON() json.RawMessage {
	return rawjson.AppendStrings(nil, supportedVersions()...)
}

// checkHeaders compares the headers of a stateless request with its body, as 2026-07-28 requires, because a proxy may
// have routed the request by its headers. It returns the zero reply if they agree, else an error reply.
func checkHeaders(h http.Header, m mcp.Message, version string) reply {
	mismatch := func(text string) reply { return failureReply(mcp.CodeHeaderMismatch, "Header mismatch: "+text, nil) }
	got, ok := singleHeader(h, mcp.HeaderVersion)
	switch {
	case !ok:
		return mismatch(mcp.HeaderVersion + " is missing")
	case got != version:
		return mismatch(mcp.HeaderVersion + " is not the version of _meta")
	}
	got, ok = singleHeader(h, mcp.HeaderMethod)
	switch {
	case !ok:
		return mismatch(mcp.HeaderMethod + " is missing")
	case got != m.Method:
		return mismatch(mcp.HeaderMethod + " is not the method of the body")
	}
	want, named := mcp.TargetName(m.Method, m.Params)
	if !named {
		return reply{}
	}
	got, ok = singleHeader(h, mcp.HeaderName)
	if !ok {
		return mismatch(mcp.HeaderName + " is missing")
	}
	got, err := mcp.DecodeHeaderValue(got)
	switch {
	case err != nil:
		return mismatch(mcp.HeaderName + " is not decodable")
	case got != want:
		return mismatch(mcp.HeaderName + " is not the name of the body")
	}
	return reply{}
}

// singleHeader returns the value of a header. It returns false if the header is missing. For a header that was sent
// more than once it returns "\x00", which equals no valid value.
func singleHeader(h http.Header, name string) (string, bool) {
	switch values := h[http.CanonicalHeaderKey(name)]; len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	default:
		return "\x00", true
	}
}

// checkParamHeaders compares the Mcp-Param headers of a tools/call with its arguments, if the tool's schema maps
// arguments to headers. It returns an error reply if they differ.
func (s *Server) checkParamHeaders(h http.Header, caller drawbridge.Caller, params json.RawMessage) reply {
	spec, ok := s.deck.FindCard(caller, drawbridge.CardName(rawjson.GetString(params, "name")))
	if !ok {
		return reply{} // the call itself reports the error
	}
	if !mcp.MayHaveHeaderParams(spec.Definition) {
		return reply{}
	}
	marks, err := mcp.ParseHeaderParams(rawjson.Get(spec.Definition, "inputSchema"))
	if err != nil || len(marks) == 0 {
		return reply{}
	}
	get := func(name string) (string, bool) { return singleHeader(h, name) }
	if err := mcp.CheckParamHeaders(marks, rawjson.Get(params, "arguments"), get); err != nil {
		return failureReply(mcp.CodeHeaderMismatch, "Header mismatch: "+err.Error(), nil)
	}
	return reply{}
}

// handleModern responds to a stateless request, except subscriptions/listen, whose response is a stream.
func (s *Server) handleModern(ctx context.Context, caller drawbridge.Caller, m mcp.Message,
	peer drawbridge.Peer) reply {
	switch m.Method {
	case mcp.MethodDiscover:
		return s.discover(caller)
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList,
		mcp.MethodSkillsList:
		return s.list(ctx, caller, m.Method, m.Params)
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead, mcp.MethodComplete:
		return s.callDeck(ctx, clientKeyOf(caller), caller, m, peer)
	case mcp.MethodInitialize, mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		return methodNotFound(m.Method) // exists only in the stateful generation
	}
	return s.callDeck(ctx, clientKeyOf(caller), caller, m, peer) // an unknown method or a method of an extension
}

// callDeck passes a request of a client to the deck and returns the reply. The pacer may delay the request.
func (s *Server) callDeck(ctx context.Context, client clientKey, caller drawbridge.Caller, m mcp.Message,
	peer drawbridge.Peer) reply {
	s.activity.callBegan(client)
	leave, err := s.pacer.enter(ctx, client)
	if err != nil {
		return reply{} // the caller is gone
	}
	defer leave()
	got, err := s.deck.Do(ctx, drawbridge.Call{Caller: caller, Method: m.Method, Params: m.Params, Peer: peer})
	if err != nil {
		s.activity.callFailed(client)
		return s.errorReply(ctx, caller, m.Method, m.Params, err)
	}
	return s.finishResult(caller, m.Method, got.Raw)
}

func (s *Server) discover(caller drawbridge.Caller) reply {
	out := append([]byte(`{"supportedVersions":`), supportedVersionsJSON()...)
	out = append(append(out, `,"capabilities":`...), s.capabilities(caller)...)
	if text := s.deck.Instructions(caller); text != "" {
		out = rawjson.AppendQuoted(append(out, `,"instructions":`...), text)
	}
	hint := s.deck.CacheHint(caller, mcp.MethodDiscover)
	hint.Public = hint.Public && !s.isPrivateTo(caller)
	out = appendHint(append(out, `,"resultType":"complete"`...), hint)
	out = s.appendMeta(append(out, `,"_meta":`...))
	return resultReply(append(out, '}', '}'))
}

func (s *Server) capabilities(caller drawbridge.Caller) json.RawMessage {
	if caps := s.deck.Capabilities(caller); len(caps) > 0 {
		return caps
	}
	return json.RawMessage(`{}`)
}
