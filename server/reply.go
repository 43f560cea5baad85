package server

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A reply is what a request is answered with: an error object, or a result in two parts, so that a large one that gets
// a member or two at its end is not copied for it. The zero reply is none: a cancelled request has no answer.
type reply struct {
	body, tail json.RawMessage
	fault      json.RawMessage
}

func (r reply) isNone() bool { return r.body == nil && r.fault == nil }

// result is the reply with a whole result.
func result(raw json.RawMessage) reply { return reply{body: raw} }

// failure is the reply with an error of our own. Data may be nil.
func failure(code int, message string, data json.RawMessage) reply {
	return reply{fault: wire.ErrorObject(code, message, data)}
}

// cancelled is the reply to a cancelled request where there must be one.
func cancelled() reply { return failure(wire.CodeInternal, "Cancelled", nil) }

// noBatches is the reply to a batch where the caller's revision has none.
func noBatches() reply { return failure(wire.CodeInvalidRequest, "This revision has no batches", nil) }

// parts gives the response's bytes in order. They may hold line breaks between tokens.
func (r reply) parts(id json.RawMessage) [6][]byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	if r.fault != nil {
		return [6][]byte{[]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"error":`), r.fault, nil, []byte(`}`)}
	}
	return [6][]byte{[]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), r.body, r.tail, []byte(`}`)}
}

// line writes the response as one line, without its end.
func (r reply) line(id json.RawMessage) []byte {
	parts := r.parts(id)
	size := 1 // whoever frames it adds a line end
	for _, p := range parts {
		size += len(p)
	}
	line := make([]byte, 0, size)
	for _, p := range parts {
		line = append(line, p...)
	}
	return flat(line)
}

// joinLines makes the answer to a batch.
func joinLines(lines [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(lines, []byte{','})...), ']')
}

// flat turns line breaks, which can only stand between tokens, into spaces.
func flat(line []byte) []byte {
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

// alone says whether what a caller is told is for them alone: they are one of several who come here, and what another may
// know is another matter. So no answer to them may be kept for others, whatever its server says.
func (s *Server) alone(caller drawbridge.Caller) bool {
	return caller.Principal != s.o.Caller.Principal
}

// finish makes a result that came from a card into one for the caller's generation.
func (s *Server) finish(caller drawbridge.Caller, method string, raw json.RawMessage) reply {
	if caller.Era != drawbridge.Modern {
		if !wire.MayHave(raw, `"resultType"`) {
			return result(raw)
		}
		return result(wire.Apply(raw, wire.Drop("resultType")))
	}
	raw = bytes.Trim(raw, " \t\r\n")
	if len(raw) < 2 || raw[0] != '{' || raw[len(raw)-1] != '}' {
		return result(raw)
	}
	cacheable := isCacheable(method)
	var has struct{ typ, meta, ttl, scope, public bool }
	complete := true
	if cacheable || wire.MayHave(raw, `"resultType"`) || wire.MayHave(raw, `"_meta"`) {
		for m := range wire.Members(raw) {
			switch {
			case m.Is("resultType"):
				has.typ = true
				complete = string(m.Value) == `"complete"`
			case m.Is("_meta"):
				has.meta = true
			case m.Is("ttlMs"):
				has.ttl = true
			case m.Is("cacheScope"):
				has.scope, has.public = true, string(m.Value) == `"public"`
			}
		}
	}
	if has.public && s.alone(caller) {
		raw = wire.Apply(raw, wire.Put(json.RawMessage(`"private"`), "cacheScope"))
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
	case wire.Get(raw, "_meta", wire.MetaServerInfo) == nil:
		raw = wire.Apply(raw, wire.Put(s.info, "_meta", wire.MetaServerInfo))
	}
	return join(raw, tail)
}

// isCacheable says whether the results of a method, other than a list, say how long they may be kept.
func isCacheable(method string) bool {
	return method == wire.MethodResourcesRead || method == wire.MethodSkillsGet || method == wire.MethodDirectoryRead
}

// join adds members, each with its comma in front, to the object raw.
func join(raw, members json.RawMessage) reply {
	if len(members) == 0 {
		return result(raw)
	}
	body := raw[:len(raw)-1]
	if len(bytes.Trim(body, " \t\r\n")) == 1 {
		members = members[1:]
	}
	return reply{body: body, tail: append(members, '}')}
}

// appendMeta appends the "_meta" object of a result of ours, but for its closing brace.
func (s *Server) appendMeta(dst []byte) []byte {
	dst = append(dst, `{"`+wire.MetaServerInfo+`":`...)
	return append(dst, s.info...)
}

// appendHint appends caching hints as members, each with its comma in front.
func appendHint(dst []byte, h drawbridge.Hint) []byte {
	dst = strconv.AppendInt(append(dst, `,"ttlMs":`...), max(h.TTL.Milliseconds(), 0), 10)
	if h.Public {
		return append(dst, `,"cacheScope":"public"`...)
	}
	return append(dst, `,"cacheScope":"private"`...)
}
