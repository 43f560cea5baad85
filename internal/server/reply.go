package server

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A reply is the response to a request: an error object or a result object. The result object is body followed by tail,
// so that members can be added at the end of a large result without copying it. The zero reply means no response, as
// for a cancelled request.
type reply struct {
	body, tail json.RawMessage
	fault      json.RawMessage
}

func (r reply) isNone() bool { return r.body == nil && r.fault == nil }

// resultReply returns a reply with the result object raw.
func resultReply(raw json.RawMessage) reply { return reply{body: raw} }

// failureReply returns a reply with an error object. data may be nil.
func failureReply(code int, message string, data json.RawMessage) reply {
	return reply{fault: mcp.NewErrorObject(code, message, data)}
}

// cancelledReply returns the error reply to a cancelled request, for transports that require a response.
func cancelledReply() reply { return failureReply(mcp.CodeInternal, "Cancelled", nil) }

// noBatches returns the error reply to a batch if the caller's protocol version does not allow batches.
func noBatches() reply {
	return failureReply(mcp.CodeInvalidRequest, "This revision has no batches", nil)
}

// parts returns the bytes of the response with the given id, as parts to be written in order. They may contain line
// breaks between JSON tokens.
func (r reply) parts(id json.RawMessage) [6][]byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	if r.fault != nil {
		return [6][]byte{[]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"error":`), r.fault, nil, []byte(`}`)}
	}
	return [6][]byte{[]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), r.body, r.tail, []byte(`}`)}
}

// line returns the response with the given id as one line, without a line feed at the end.
func (r reply) line(id json.RawMessage) []byte {
	parts := r.parts(id)
	size := 1 // one byte for the line feed
	for _, p := range parts {
		size += len(p)
	}
	line := make([]byte, 0, size)
	for _, p := range parts {
		line = append(line, p...)
	}
	return withoutLineBreaks(line)
}

// joinLines returns the JSON array of the responses to a batch.
func joinLines(lines [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(lines, []byte{','})...), ']')
}

// withoutLineBreaks replaces line breaks by spaces, in place. In valid JSON, line breaks occur only between tokens.
func withoutLineBreaks(line []byte) []byte {
	if bytes.IndexByte(line, '\n') < 0 && bytes.IndexByte(line, '\r') < 0 {
		return line
	}
	for i, c := range line {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	return line
}

// isPrivateTo reports whether a response must be marked as private to this caller, because other callers may see
// different data. A private response must not be cached for other callers, even if its server declares it as public.
func (s *Server) isPrivateTo(caller drawbridge.Caller) bool {
	return caller.Principal != s.o.Caller.Principal
}

// finishResult converts a result object of the deck to the form of the caller's protocol generation. For a stateful
// caller it removes "resultType". For a stateless caller it adds "resultType", caching hints and this server's info in
// "_meta", if they are missing.
func (s *Server) finishResult(caller drawbridge.Caller, method string, raw json.RawMessage) reply {
	if caller.Era != drawbridge.Modern {
		if !rawjson.MayContain(raw, `"resultType"`) {
			return resultReply(raw)
		}
		return resultReply(rawjson.Apply(raw, rawjson.Drop("resultType")))
	}
	raw = bytes.Trim(raw, " \t\r\n")
	if len(raw) < 2 || raw[0] != '{' || raw[len(raw)-1] != '}' {
		return resultReply(raw)
	}
	cacheable := isCacheable(method)
	var has struct{ typ, meta, ttl, scope, public bool }
	complete := true
	if cacheable || rawjson.MayContain(raw, `"resultType"`) || rawjson.MayContain(raw, `"_meta"`) {
		for m := range rawjson.Members(raw) {
			switch {
			case m.HasName("resultType"):
				has.typ = true
				complete = string(m.Value) == `"complete"`
			case m.HasName("_meta"):
				has.meta = true
			case m.HasName("ttlMs"):
				has.ttl = true
			case m.HasName("cacheScope"):
				has.scope, has.public = true, string(m.Value) == `"public"`
			}
		}
	}
	if has.public && s.isPrivateTo(caller) {
		raw = rawjson.Apply(raw, rawjson.Put(json.RawMessage(`"private"`), "cacheScope"))
	}
	var tail []byte
	if !has.typ {
		tail = append(tail, `,"resultType":"complete"`...)
	}
	if cacheable && complete && !has.ttl {
		tail = append(tail, `,"ttlMs":0`...)
	}
	if cacheable && complete && !has.scope {
		tail = append(tail, `,"cacheScope":"private"`...)
	}
	switch {
	case !has.meta:
		tail = append(s.appendMeta(append(tail, `,"_meta":`...)), '}')
	case rawjson.Get(raw, "_meta", mcp.MetaServerInfo) == nil:
		raw = rawjson.Apply(raw, rawjson.Put(s.info, "_meta", mcp.MetaServerInfo))
	}
	return appendMembers(raw, tail)
}

// isCacheable reports whether results of a method that is not a list method have caching hints.
func isCacheable(method string) bool {
	return method == mcp.MethodResourcesRead || method == mcp.MethodSkillsGet || method == mcp.MethodDirectoryRead
}

// appendMembers returns a reply whose result is the object raw with additional members. In members, each member has a
// comma before it.
func appendMembers(raw, members json.RawMessage) reply {
	if len(members) == 0 {
		return resultReply(raw)
	}
	body := raw[:len(raw)-1]
	if len(bytes.Trim(body, " \t\r\n")) == 1 {
		members = members[1:]
	}
	return reply{body: body, tail: append(members, '}')}
}

// appendMeta appends a "_meta" object with this server's info to dst, without the closing brace.
func (s *Server) appendMeta(dst []byte) []byte {
	dst = append(dst, `{"`+mcp.MetaServerInfo+`":`...)
	return append(dst, s.info...)
}

// appendHint appends the members of a caching hint to dst, each with a comma before it.
func appendHint(dst []byte, h drawbridge.CacheHint) []byte {
	dst = strconv.AppendInt(append(dst, `,"ttlMs":`...), max(h.TTL.Milliseconds(), 0), 10)
	if h.Public {
		return append(dst, `,"cacheScope":"public"`...)
	}
	return append(dst, `,"cacheScope":"private"`...)
}
