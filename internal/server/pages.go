package server

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

const (
	// maxPageBytes is the maximum total size of the cached pages.
	maxPageBytes = 32 << 20
	// maxPages is the maximum number of cached pages.
	maxPages = 4096
)

// A pageCache caches the encoded pages of lists, so that a page of an unchanged list is encoded only once. It need not
// be cleared when the deck changes, because each changed list has a new version, which is part of the key.
type pageCache struct {
	mu   sync.Mutex
	kept *simplelru.LRU[pageKey, json.RawMessage]
	size int
}

func newPageCache() *pageCache {
	p := new(pageCache)
	kept, err := simplelru.NewLRU(maxPages, func(_ pageKey, page json.RawMessage) { p.size -= len(page) })
	if err != nil {
		panic(err) // the size is positive
	}
	p.kept = kept
	return p
}

// A pageKey holds everything that determines the bytes of a page. version is the version of the list that the caller
// may see.
type pageKey struct {
	method  string
	version uint64
	start   int
	modern  bool
	hint    drawbridge.CacheHint
}

// getOrEncode returns the page for a key. If the page is not in the cache, it calls encode and caches the result.
func (p *pageCache) getOrEncode(key pageKey, encode func() json.RawMessage) json.RawMessage {
	p.mu.Lock()
	page, ok := p.kept.Get(key)
	p.mu.Unlock()
	if ok {
		return page
	}
	page = encode()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept.Contains(key) || len(page) > maxPageBytes {
		return page
	}
	p.kept.Add(key, page)
	for p.size += len(page); p.size > maxPageBytes; {
		p.kept.RemoveOldest()
	}
	return page
}

// listMember returns the name of the member that holds the items in the result of a list method.
func listMember(method string) string {
	switch method {
	case mcp.MethodPromptsList:
		return "prompts"
	case mcp.MethodResourcesList:
		return "resources"
	case mcp.MethodTemplatesList:
		return "resourceTemplates"
	case mcp.MethodSkillsList:
		return "skills"
	}
	return "tools"
}

// requestedList returns the list of a list method. A client requests the list of all tools with mcp.MetaDirect.
func (s *Server) requestedList(ctx context.Context, caller drawbridge.Caller, method string,
	params json.RawMessage) (deck.List, error) {
	if method == mcp.MethodToolsList && string(rawjson.Get(params, "_meta", mcp.MetaDirect)) == "true" {
		return s.deck.ListDirect(ctx, caller), nil
	}
	return s.deck.List(ctx, caller, method)
}

// list responds to a list method with one page.
func (s *Server) list(ctx context.Context, caller drawbridge.Caller, method string, params json.RawMessage) reply {
	l, err := s.requestedList(ctx, caller, method, params)
	if err != nil {
		return s.errorReply(ctx, caller, method, params, err)
	}
	start := 0
	if at := rawjson.Get(params, "cursor"); at != nil && string(at) != "null" {
		if start, err = resolveCursor(l.Items, at); err != nil {
			return failureReply(mcp.CodeInvalidParams, "Invalid cursor: "+err.Error(), nil)
		}
	}
	l.CacheHint.Public = l.CacheHint.Public && !s.isPrivateTo(caller)
	key := pageKey{method, l.Version, start, caller.Era == drawbridge.Modern, l.CacheHint}
	return resultReply(s.pages.getOrEncode(key, func() json.RawMessage { return s.encodePage(key, l) }))
}

// encodePage returns the result object of the page that begins at key.start.
func (s *Server) encodePage(key pageKey, l deck.List) json.RawMessage {
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
		out = rawjson.AppendQuoted(append(out, `,"nextCursor":`...), pageCursor(l.Items, end))
	}
	if key.modern {
		out = appendHint(append(out, `,"resultType":"complete"`...), key.hint)
		out = append(s.appendMeta(append(out, `,"_meta":`...)), '}')
	}
	return withoutLineBreaks(append(out, '}'))
}
