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

// Bounds of one list of one server. Items beyond a bound are left out.
const (
	maxListPages = 1000
	maxListItems = 10_000
	// maxListBytes is the total size of a list's pages at which no further page is requested.
	maxListBytes = 64 << 20
)

const (
	// maxNamedTools is how many left-out items of a list are named. maxNameBytes limits the length of each name and
	// reason.
	maxNamedTools = 5
	maxNameBytes  = 256
)

// A listKind describes one of the four lists of a server. method requests the list, and member is the list's name in
// the result. capability is the name of the capability that a server with that list declares. of returns the field of a
// listing that contains the list.
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

// A serverList is the content of one list, as read from the server.
type serverList struct {
	items []json.RawMessage
	hint  *drawbridge.CacheHint // nil if the server sent none
	// problem describes an error in a list that is used in spite of the error.
	problem string
	// leftOut describes the items that are not shown to clients.
	leftOut []string
}

// A listReader reads all lists of a server, each page by page. The number and the size of the pages are bounded,
// whatever the server sends. A list that cannot be read keeps its last known content and does not affect the other
// lists. Items are stored unchanged.
type listReader struct {
	// Request sends a request and returns its result; an error response is a *transport.ResponseError. It is called
	// from several goroutines.
	Request func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Last is the last listing of the server; nil if there is none.
	Last *drawbridge.Listing
	// Headers is set if some arguments of tools are also sent in HTTP headers. Tools whose header parameters are
	// invalid are then left out.
	Headers bool
}

// A listingOutcome describes the lists that could not be read, and the items that were left out.
type listingOutcome struct {
	// Problems describe the lists that could not be read or were malformed, as text for people.
	Problems []string
	// LeftOut describe the items that were left out because no client could use them.
	LeftOut []string
	// Missed contains the errors of the lists that could not be read, by method.
	Missed map[string]error
}

// readAllLists reads concurrently all lists that l.Capabilities declares. It stores the lists and their cache hints in
// l. It returns an error if the tools could not be read and Last is nil.
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

// lastKnownList returns a list of the last listing, or an empty list if last is nil.
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

// readPage requests one page of a list. If the server declares the capability but does not know the method, the page is
// empty.
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

// mergeCacheHint merges the cache hint of a page into the hint of the list. The result has the shortest TTL of all
// pages, and is public only if all pages are public.
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

// checkHeaderParams returns an error for a tool with invalid header parameters. A client must not use such a tool over
// HTTP (2026-07-28, Streamable HTTP, Custom Headers).
func checkHeaderParams(tool json.RawMessage) error {
	_, err := mcp.ParseHeaderParams(rawjson.Get(tool, "inputSchema"))
	return err
}

// checkItemName returns an error for an item whose name or URI template contains a NUL character or invalid UTF-8. Some
// databases cannot store such text. Drawbridge could then not store the approved definition (the pin) of a tool with
// such a name, and would show no tool of its server.
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

// dropItems removes the items for which check returns an error. member is the name of the list, such as "tools".
// dropItems returns descriptions of the first maxNamedTools removed items, and the number of the others.
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

// parseCacheHint returns the cache hint of a result.
func parseCacheHint(result json.RawMessage) drawbridge.CacheHint {
	var ms int64
	_ = json.Unmarshal(rawjson.Get(result, "ttlMs"), &ms) // zero if it is not a number
	const most = int64(365 * 24 * time.Hour / time.Millisecond)
	return drawbridge.CacheHint{
		TTL:    time.Duration(max(0, min(ms, most))) * time.Millisecond,
		Public: rawjson.GetString(result, "cacheScope") == "public",
	}
}
