package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// The bounds of one list of one server: what goes on after that is left out.
const (
	maxListPages = 1000
	maxListItems = 10_000
	// maxListBytes is how many bytes the pages of a list have together: after them no other is asked for.
	maxListBytes = 64 << 20
)

const (
	// maxNamedTools is how many tools are named that were left out, maxNameBytes how much of a name and a reason is
	// said.
	maxNamedTools = 5
	maxNameBytes  = 256
)

// A listKind is one of the four lists of a server.
type listKind struct {
	method, member, capability string
	of                         func(*drawbridge.Listing) *[]json.RawMessage
}

var listKinds = [...]listKind{
	{mcp.MethodToolsList, "tools", "tools", func(l *drawbridge.Listing) *[]json.RawMessage { return &l.Tools }},
	{mcp.MethodPromptsList, "prompts", "prompts", func(l *drawbridge.Listing) *[]json.RawMessage { return &l.Prompts }},
	{mcp.MethodResourcesList, "resources", "resources",
		func(l *drawbridge.Listing) *[]json.RawMessage { return &l.Resources }},
	{mcp.MethodTemplatesList, "resourceTemplates", "resources",
		func(l *drawbridge.Listing) *[]json.RawMessage { return &l.Templates }},
}

// A serverList is what a server answered for one kind.
type serverList struct {
	items []json.RawMessage
	hint  *drawbridge.CacheHint // nil where the server said nothing of caching
	// problem says for people what was wrong with a list that was taken all the same.
	problem string
}

// listReader are what a survey needs.
type listReader struct {
	// Request sends a request and gives its result; an error object that the server answers with is a
	// *transport.ResponseError. It is called from several goroutines.
	Request func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Last is the last listing of the server; nil where none is known.
	Last *drawbridge.Listing
	// Headers says that arguments of tools travel in headers too: tools are left out that want what cannot be sent so.
	Headers bool
}

// An listingOutcome says what went wrong with lists that are known all the same.
type listingOutcome struct {
	// Problems say for people which lists did not come, or not in good order.
	Problems []string
	// Missed are the lists that did not come, by method, with the reason.
	Missed map[string]error
}

// readAllLists asks for all lists at once that the Capabilities of l declare, and puts them and the server's caching
// hints into l. An error is for a server whose tools are not known, now or from before.
func readAllLists(ctx context.Context, l *drawbridge.Listing, o listReader) (out listingOutcome, err error) {
	var lists [len(listKinds)]serverList
	var faults [len(listKinds)]error
	var work sync.WaitGroup
	for i, k := range listKinds {
		if v := rawjson.Get(l.Capabilities, k.capability); v == nil || string(v) == "null" || string(v) == "false" {
			continue
		}
		work.Go(func() { lists[i], faults[i] = o.readList(ctx, k) })
	}
	work.Wait()
	if l.CacheHints == nil {
		l.CacheHints = map[string]drawbridge.CacheHint{}
	}
	for i, k := range listKinds {
		if err := faults[i]; err != nil {
			if o.Last == nil && k.method == mcp.MethodToolsList {
				return listingOutcome{}, fmt.Errorf("%s: %w", k.member, err)
			}
			if out.Missed == nil {
				out.Missed = map[string]error{}
			}
			out.Missed[k.method] = err
			out.Problems = append(out.Problems, fmt.Sprintf("list %s: %v", k.member, err))
			lists[i] = lastKnownList(o.Last, k)
		}
		if lists[i].problem != "" {
			out.Problems = append(out.Problems, fmt.Sprintf("list %s: %s", k.member, lists[i].problem))
		}
		*k.of(l) = lists[i].items
		if lists[i].hint != nil {
			l.CacheHints[k.method] = *lists[i].hint
		}
	}
	l.ListedAt = time.Now()
	return out, nil
}

// lastKnownList gives a list as it was in the last listing, if there was one.
func lastKnownList(last *drawbridge.Listing, k listKind) serverList {
	if last == nil {
		return serverList{}
	}
	out := serverList{items: *k.of(last)}
	if hint, ok := last.CacheHints[k.method]; ok {
		out.hint = &hint
	}
	return out
}

// readList follows the pages of one list to their end.
func (o listReader) readList(ctx context.Context, k listKind) (serverList, error) {
	var out serverList
	seen := map[string]bool{}
	dropped, size := 0, 0
	var cursor json.RawMessage
	for page := 1; ; page++ {
		result, err := o.readPage(ctx, k, cursor)
		if err != nil {
			return serverList{}, err
		}
		for item := range rawjson.Elements(rawjson.Get(result, k.member)) {
			switch {
			case item[0] != '{':
				dropped++
			case len(out.items) < maxListItems:
				out.items = append(out.items, item)
			}
		}
		size += len(result)
		out.mergeCacheHint(result)
		cursor = rawjson.Get(result, "nextCursor")
		switch {
		case cursor == nil || string(cursor) == "null":
		case seen[string(cursor)]:
			out.problem = "the server gave a cursor that it gave before"
		case page == maxListPages || len(out.items) == maxListItems || size >= maxListBytes:
			out.problem = fmt.Sprintf("it goes on after %d pages with %d items; the rest was left out",
				page, len(out.items))
		default:
			seen[string(cursor)] = true
			continue
		}
		if dropped > 0 {
			out.problem = strings.TrimPrefix(fmt.Sprintf("%s; %d items were no objects and were left out",
				out.problem, dropped), "; ")
		}
		if o.Headers && k.method == mcp.MethodToolsList {
			out.dropInvalidHeaderParams()
		}
		return out, nil
	}
}

// readPage asks for one page. A method that a server does not have, though it declares the capability, is an empty
// list.
func (o listReader) readPage(ctx context.Context, k listKind, cursor json.RawMessage) (json.RawMessage, error) {
	var params json.RawMessage
	if cursor != nil {
		params = rawjson.Apply(nil, rawjson.Put(cursor, "cursor"))
	}
	result, err := o.Request(ctx, k.method, params)
	if reply, ok := errors.AsType[*transport.ResponseError](err); ok &&
		mcp.ErrorCode(reply.Object) == mcp.CodeMethodNotFound {
		return nil, nil
	}
	return result, err
}

// mergeCacheHint takes the strictest caching hint of all pages.
func (l *serverList) mergeCacheHint(result json.RawMessage) {
	if rawjson.Get(result, "ttlMs") == nil && rawjson.Get(result, "cacheScope") == nil {
		return
	}
	hint := parseCacheHint(result)
	if l.hint != nil {
		hint = drawbridge.CacheHint{TTL: min(hint.TTL, l.hint.TTL), Public: hint.Public && l.hint.Public}
	}
	l.hint = &hint
}

// dropInvalidHeaderParams leaves out the tools that a client must not take over HTTP, since what they want in headers
// cannot be sent (2026-07-28, Streamable HTTP, Custom Headers).
func (l *serverList) dropInvalidHeaderParams() {
	kept := l.items[:0]
	var troubles []string
	if l.problem != "" {
		troubles = append(troubles, l.problem)
	}
	out := 0
	for _, tool := range l.items {
		_, err := mcp.ParseHeaderParams(rawjson.Get(tool, "inputSchema"))
		if err == nil {
			kept = append(kept, tool)
			continue
		}
		if out++; out <= maxNamedTools {
			name := safetext.Truncate(rawjson.GetString(tool, "name"), maxNameBytes, safetext.Bytes, "…")
			troubles = append(troubles, fmt.Sprintf("tool %q was left out: %s", name, safetext.Truncate(err.Error(),
				maxNameBytes, safetext.Bytes, "…")))
		}
	}
	if more := out - maxNamedTools; more > 0 {
		troubles = append(troubles, fmt.Sprintf("%d more tools were left out for such reasons", more))
	}
	l.items, l.problem = kept, strings.Join(troubles, "; ")
}

// parseCacheHint reads the caching hints of a result.
func parseCacheHint(result json.RawMessage) drawbridge.CacheHint {
	var ms int64
	_ = json.Unmarshal(rawjson.Get(result, "ttlMs"), &ms) // no number: no hint
	const most = int64(365 * 24 * time.Hour / time.Millisecond)
	return drawbridge.CacheHint{
		TTL:    time.Duration(max(0, min(ms, most))) * time.Millisecond,
		Public: rawjson.GetString(result, "cacheScope") == "public",
	}
}
