// Package survey asks a server for everything that it offers: its four lists, each page by page.
//
// It promises that a survey ends, whatever the server answers; that a list which does not come costs the others nothing,
// and that for it the last one known stands; and that what the server said of its items is kept byte by byte. Whom it asks,
// how that is reached and in which protocol generation it does not know.
package survey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// The bounds of one list of one server: what goes on after that is left out.
const (
	maxPages = 1000
	maxItems = 10_000
	// maxBytes is how many bytes the pages of a list have together: after them no other is asked for.
	maxBytes = 64 << 20
)

const (
	// mostNamed is how many tools are named that were left out, mostNameSaid how much of a name and a reason is said.
	mostNamed    = 5
	mostNameSaid = 256
)

// A kind is one of the four lists of a server.
type kind struct {
	method, member, capability string
	of                         func(*drawbridge.Listing) *[]json.RawMessage
}

var kinds = [...]kind{
	{wire.MethodToolsList, "tools", "tools", func(l *drawbridge.Listing) *[]json.RawMessage { return &l.Tools }},
	{wire.MethodPromptsList, "prompts", "prompts", func(l *drawbridge.Listing) *[]json.RawMessage { return &l.Prompts }},
	{wire.MethodResourcesList, "resources", "resources", func(l *drawbridge.Listing) *[]json.RawMessage { return &l.Resources }},
	{wire.MethodTemplatesList, "resourceTemplates", "resources", func(l *drawbridge.Listing) *[]json.RawMessage { return &l.Templates }},
}

// A list is what a server answered for one kind.
type list struct {
	items []json.RawMessage
	hint  *drawbridge.Hint // nil where the server said nothing of caching
	// trouble says for people what was wrong with a list that was taken all the same.
	trouble string
}

// Options are what a survey needs.
type Options struct {
	// Ask sends a request and gives its result; an error object that the server answers with is a *link.ReplyError. It is
	// called from several goroutines.
	Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Last is the last listing of the server; nil where none is known.
	Last *drawbridge.Listing
	// Headers says that arguments of tools travel in headers too: tools are left out that want what cannot be sent so.
	Headers bool
}

// An Outcome says what went wrong with lists that are known all the same.
type Outcome struct {
	// Troubles say for people which lists did not come, or not in good order.
	Troubles []string
	// Missed are the lists that did not come, by method, with the reason.
	Missed map[string]error
}

// Take asks for all lists at once that the Capabilities of l declare, and puts them and the server's caching hints into l.
// An error is for a server whose tools are not known, now or from before.
func Take(ctx context.Context, l *drawbridge.Listing, o Options) (out Outcome, err error) {
	var lists [len(kinds)]list
	var faults [len(kinds)]error
	var work sync.WaitGroup
	for i, k := range kinds {
		if v := wire.Get(l.Capabilities, k.capability); v == nil || string(v) == "null" || string(v) == "false" {
			continue
		}
		work.Go(func() { lists[i], faults[i] = o.list(ctx, k) })
	}
	work.Wait()
	if l.Hints == nil {
		l.Hints = map[string]drawbridge.Hint{}
	}
	for i, k := range kinds {
		if err := faults[i]; err != nil {
			if o.Last == nil && k.method == wire.MethodToolsList {
				return Outcome{}, fmt.Errorf("%s: %w", k.member, err)
			}
			if out.Missed == nil {
				out.Missed = map[string]error{}
			}
			out.Missed[k.method] = err
			out.Troubles = append(out.Troubles, fmt.Sprintf("list %s: %v", k.member, err))
			lists[i] = lastOf(o.Last, k)
		}
		if lists[i].trouble != "" {
			out.Troubles = append(out.Troubles, fmt.Sprintf("list %s: %s", k.member, lists[i].trouble))
		}
		*k.of(l) = lists[i].items
		if lists[i].hint != nil {
			l.Hints[k.method] = *lists[i].hint
		}
	}
	l.At = time.Now()
	return out, nil
}

// lastOf gives a list as it was in the last listing, if there was one.
func lastOf(last *drawbridge.Listing, k kind) list {
	if last == nil {
		return list{}
	}
	out := list{items: *k.of(last)}
	if hint, ok := last.Hints[k.method]; ok {
		out.hint = &hint
	}
	return out
}

// list follows the pages of one list to their end.
func (o Options) list(ctx context.Context, k kind) (list, error) {
	var out list
	seen := map[string]bool{}
	dropped, size := 0, 0
	var cursor json.RawMessage
	for page := 1; ; page++ {
		result, err := o.page(ctx, k, cursor)
		if err != nil {
			return list{}, err
		}
		for item := range wire.Elements(wire.Get(result, k.member)) {
			switch {
			case item[0] != '{':
				dropped++
			case len(out.items) < maxItems:
				out.items = append(out.items, item)
			}
		}
		size += len(result)
		out.heed(result)
		cursor = wire.Get(result, "nextCursor")
		switch {
		case cursor == nil || string(cursor) == "null":
		case seen[string(cursor)]:
			out.trouble = "the server gave a cursor that it gave before"
		case page == maxPages || len(out.items) == maxItems || size >= maxBytes:
			out.trouble = fmt.Sprintf("it goes on after %d pages with %d items; the rest was left out", page, len(out.items))
		default:
			seen[string(cursor)] = true
			continue
		}
		if dropped > 0 {
			out.trouble = strings.TrimPrefix(fmt.Sprintf("%s; %d items were no objects and were left out", out.trouble, dropped), "; ")
		}
		if o.Headers && k.method == wire.MethodToolsList {
			out.checkMarks()
		}
		return out, nil
	}
}

// page asks for one page. A method that a server does not have, though it declares the capability, is an empty list.
func (o Options) page(ctx context.Context, k kind, cursor json.RawMessage) (json.RawMessage, error) {
	var params json.RawMessage
	if cursor != nil {
		params = wire.Apply(nil, wire.Put(cursor, "cursor"))
	}
	result, err := o.Ask(ctx, k.method, params)
	if reply, ok := errors.AsType[*link.ReplyError](err); ok && wire.ErrorCode(reply.Object) == wire.CodeMethodNotFound {
		return nil, nil
	}
	return result, err
}

// heed takes the strictest caching hint of all pages.
func (l *list) heed(result json.RawMessage) {
	if wire.Get(result, "ttlMs") == nil && wire.Get(result, "cacheScope") == nil {
		return
	}
	hint := HintOf(result)
	if l.hint != nil {
		hint = drawbridge.Hint{TTL: min(hint.TTL, l.hint.TTL), Public: hint.Public && l.hint.Public}
	}
	l.hint = &hint
}

// checkMarks leaves out the tools that a client must not take over HTTP, since what they want in headers cannot be sent
// (2026-07-28, Streamable HTTP, Custom Headers).
func (l *list) checkMarks() {
	kept := l.items[:0]
	var troubles []string
	if l.trouble != "" {
		troubles = append(troubles, l.trouble)
	}
	out := 0
	for _, tool := range l.items {
		_, err := wire.ParamMarks(wire.Get(tool, "inputSchema"))
		if err == nil {
			kept = append(kept, tool)
			continue
		}
		if out++; out <= mostNamed {
			name := safetext.Truncate(wire.GetText(tool, "name"), mostNameSaid, safetext.Bytes, "…")
			troubles = append(troubles, fmt.Sprintf("tool %q was left out: %s", name, safetext.Truncate(err.Error(), mostNameSaid, safetext.Bytes, "…")))
		}
	}
	if more := out - mostNamed; more > 0 {
		troubles = append(troubles, fmt.Sprintf("%d more tools were left out for such reasons", more))
	}
	l.items, l.trouble = kept, strings.Join(troubles, "; ")
}

// HintOf reads the caching hints of a result.
func HintOf(result json.RawMessage) drawbridge.Hint {
	var ms int64
	_ = json.Unmarshal(wire.Get(result, "ttlMs"), &ms) // no number: no hint
	const most = int64(365 * 24 * time.Hour / time.Millisecond)
	return drawbridge.Hint{
		TTL:    time.Duration(max(0, min(ms, most))) * time.Millisecond,
		Public: wire.GetText(result, "cacheScope") == "public",
	}
}
