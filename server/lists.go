package server

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/server/cursor"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// maxPages is how many bytes of encoded pages are kept.
const maxPages = 32 << 20

// pages keeps the encoded pages of lists: the same list is the same bytes, and costs its copying only. It needs no
// clearing when a deck changes, since a list's version then changes too.
type pages struct {
	mu   sync.Mutex
	kept map[pageKey]json.RawMessage
	size int
}

// A pageKey is all that the bytes of a page depend on. What a caller may see is in the version.
type pageKey struct {
	method  string
	version uint64
	start   int
	modern  bool
	hint    drawbridge.Hint
}

// get gives the page of that key, made by encode where it is not there.
func (p *pages) get(key pageKey, encode func() json.RawMessage) json.RawMessage {
	p.mu.Lock()
	page, ok := p.kept[key]
	p.mu.Unlock()
	if ok {
		return page
	}
	page = encode()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, there := p.kept[key]; there {
		return page
	}
	if p.kept == nil || p.size+len(page) > maxPages {
		p.kept, p.size = map[pageKey]json.RawMessage{}, 0
	}
	p.kept[key] = page
	p.size += len(page)
	return page
}

// listMember is the member of a list method's result that has the items.
func listMember(method string) string {
	switch method {
	case wire.MethodPromptsList:
		return "prompts"
	case wire.MethodResourcesList:
		return "resources"
	case wire.MethodTemplatesList:
		return "resourceTemplates"
	case wire.MethodSkillsList:
		return "skills"
	}
	return "tools"
}

// list answers a list method.
func (s *Server) list(ctx context.Context, caller drawbridge.Caller, method string, params json.RawMessage) reply {
	l, err := s.deck.List(ctx, caller, method)
	if err != nil {
		return s.failed(ctx, caller, method, params, err)
	}
	start := 0
	if at := wire.Get(params, "cursor"); at != nil && string(at) != "null" {
		if start, err = cursor.Resume(l.Items, at); err != nil {
			return failure(wire.CodeInvalidParams, "Invalid cursor: "+err.Error(), nil)
		}
	}
	l.Hint.Public = l.Hint.Public && !s.alone(caller)
	key := pageKey{method, l.Version, start, caller.Era == drawbridge.Modern, l.Hint}
	return result(s.lists.get(key, func() json.RawMessage { return s.page(key, l) }))
}

// page encodes a page.
func (s *Server) page(key pageKey, l deck.List) json.RawMessage {
	end := min(key.start+s.o.PageSize, len(l.Items))
	size := 512
	for _, item := range l.Items[key.start:end] {
		size += len(item) + 1
	}
	out := append(make([]byte, 0, size), `{"`+listMember(key.method)+`":[`...)
	for i, item := range l.Items[key.start:end] {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	out = append(out, ']')
	if end < len(l.Items) {
		out = wire.AppendQuoted(append(out, `,"nextCursor":`...), cursor.At(l.Items, end))
	}
	if key.modern {
		out = appendHint(append(out, `,"resultType":"complete"`...), key.hint)
		out = append(s.appendMeta(append(out, `,"_meta":`...)), '}')
	}
	return flat(append(out, '}'))
}
