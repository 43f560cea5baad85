package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// Bounds of one list of one server: items beyond them are left out.
const (
	maxListPages = 1000
	maxListItems = 10_000
	// maxListBytes is how many bytes the pages of a list may have together before no other is requested.
	maxListBytes = 64 << 20
)

const (
	// maxNamedTools is how many omitted tools are named; maxNameBytes limits the name and the reason of each.
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

// A serverList is a server's answer for one kind of list.
type serverList struct {
	items []json.RawMessage
	hint  *drawbridge.CacheHint // nil if the server sent none
	// problem describes what was wrong with a list that is used anyway.
	problem string
	// leftOut describes the items that no client is shown.
	leftOut []string
}

// A listReader reads all lists of a server, each page by page. Reading ends whatever the server answers; a list that
// fails does not affect the others and keeps its last known content; items are kept byte by byte.
type listReader struct {
	// Request sends a request and returns its result; an error response is a *transport.ResponseError. It is called
	// from several goroutines.
	Request func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Last is the last listing of the server; nil where none is known.
	Last *drawbridge.Listing
	// Headers is set if arguments of tools travel in headers too: tools whose header parameters cannot be sent are left
	// out.
	Headers bool
}

// A listingOutcome describes the lists of a server that could not be read, or only in part.
type listingOutcome struct {
	// Problems describe, for people, which lists failed or were malformed.
	Problems []string
	// LeftOut describe the items that were left out since they can be shown to no client.
	LeftOut []string
	// Missed holds the lists that failed, by method, with the reason.
	Missed map[string]error
}

// readAllLists reads concurrently all lists that the Capabilities of l declare, and stores them and the cache hints in
// l. It returns an error if the server's tools are known neither now nor from before.
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
		out.LeftOut = append(out.LeftOut, lists[i].leftOut...)
		*k.of(l) = lists[i].items
		if lists[i].hint != nil {
			l.CacheHints[k.method] = *lists[i].hint
		}
	}
	l.ListedAt = time.Now()
	return out, nil
}

// lastKnownList returns a list from the last listing, if there is one.
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

// readList reads all pages of one list.
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
			out.problem = "the server repeated a cursor"
		case page == maxListPages || len(out.items) == maxListItems || size >= maxListBytes:
			out.problem = fmt.Sprintf("the list goes on after %d pages with %d items; the rest was left out",
				page, len(out.items))
		default:
			seen[string(cursor)] = true
			continue
		}
		if dropped > 0 {
			out.problem = strings.TrimPrefix(fmt.Sprintf("%s; %d items were not objects and were left out",
				out.problem, dropped), "; ")
		}
		out.leftOut = out.dropItems(k.member, checkItemName)
		if o.Headers && k.method == mcp.MethodToolsList {
			troubles := out.dropItems(k.member, checkHeaderParams)
			out.problem = strings.TrimPrefix(strings.Join(append([]string{out.problem}, troubles...), "; "), "; ")
		}
		return out, nil
	}
}

// readPage requests one page. If the server declares the capability but not the method, the list is empty.
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

// mergeCacheHint keeps the strictest cache hint of all pages.
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

// checkHeaderParams returns an error for a tool that a client must not use over HTTP, since its header parameters cannot
// be sent (2026-07-28, Streamable HTTP, Custom Headers).
func checkHeaderParams(tool json.RawMessage) error {
	_, err := mcp.ParseHeaderParams(rawjson.Get(tool, "inputSchema"))
	return err
}

// checkItemName returns an error for a name that not every store can hold. One such tool would keep all tools of its
// server from being shown, since its definition could not be pinned.
func checkItemName(item json.RawMessage) error {
	for _, member := range []string{"name", "uriTemplate"} {
		switch name := rawjson.GetString(item, member); {
		case strings.ContainsRune(name, 0):
			return fmt.Errorf("its %s has a NUL", member)
		case !utf8.ValidString(name):
			return fmt.Errorf("its %s is not valid UTF-8", member)
		}
	}
	return nil
}

// dropItems leaves out the items of a list, such as "tools", that check returns an error for. It describes the first of
// them.
func (l *serverList) dropItems(member string, check func(item json.RawMessage) error) (troubles []string) {
	kind := strings.TrimSuffix(member, "s")
	kept := l.items[:0]
	out := 0
	for _, item := range l.items {
		err := check(item)
		if err == nil {
			kept = append(kept, item)
			continue
		}
		if out++; out <= maxNamedTools {
			name := safetext.Truncate(rawjson.GetString(item, "name"), maxNameBytes, safetext.Bytes, "…")
			troubles = append(troubles, fmt.Sprintf("%s %q was left out: %s", kind, name, safetext.Truncate(err.Error(),
				maxNameBytes, safetext.Bytes, "…")))
		}
	}
	if more := out - maxNamedTools; more > 0 {
		troubles = append(troubles, fmt.Sprintf("%d more %s were left out for such reasons", more, member))
	}
	l.items = kept
	return troubles
}

// parseCacheHint returns the cache hints of a result.
func parseCacheHint(result json.RawMessage) drawbridge.CacheHint {
	var ms int64
	_ = json.Unmarshal(rawjson.Get(result, "ttlMs"), &ms) // not a number: no hint
	const most = int64(365 * 24 * time.Hour / time.Millisecond)
	return drawbridge.CacheHint{
		TTL:    time.Duration(max(0, min(ms, most))) * time.Millisecond,
		Public: rawjson.GetString(result, "cacheScope") == "public",
	}
}
