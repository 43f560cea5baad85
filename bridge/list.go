package bridge

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
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// The bounds of one list of one server.
const (
	maxPages = 1000
	maxItems = 10_000
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

// relist asks the server for everything it offers, and passes that on. began is when the mount began; zero for a refresh.
// An error is for a server whose tools are not known; what else goes wrong is told in the status.
func (e *endpoint) relist(s *session, began time.Time) error {
	ctx, cancel := context.WithTimeout(e.ctx, e.pool.o.ConnectTimeout)
	defer cancel()
	l, troubles, err := e.list(ctx, s)
	if err == nil {
		err = e.ctx.Err() // a list that our own end cut off says nothing about the server
	}
	if err != nil {
		return e.mountFault("list", err)
	}
	marks, only := marksOf(e.row, l.Tools), onlyTasks(l.Tools)
	e.mu.Lock()
	e.listing, e.fresh, e.marks, e.onlyTasks = &l, true, marks, only
	if !began.IsZero() {
		e.startMillis = max(1, time.Since(began).Milliseconds())
	}
	e.mu.Unlock()
	if m := e.pool.o.Memory; m != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), saveTimeout)
		defer cancel()
		if err := m.SaveListing(ctx, l); err != nil {
			e.log.Warn("a listing was not saved", "error", err)
		}
	}
	e.listed(l)
	var trouble error
	if len(troubles) > 0 {
		trouble = errors.New(strings.Join(troubles, "; "))
	}
	e.enter(drawbridge.Ready, trouble)
	return nil
}

// list asks for all lists at once: a server silent on one of them costs the others nothing. For a list that did not come
// the last known one stands.
func (e *endpoint) list(ctx context.Context, s *session) (drawbridge.Listing, []string, error) {
	e.mu.Lock()
	last := e.listing
	l := drawbridge.Listing{
		Server: e.row.ID, Row: e.row.Hash, Era: e.era,
		Info: s.info, Capabilities: s.capabilities, Instructions: s.instructions,
		Hints: map[string]drawbridge.Hint{},
	}
	e.mu.Unlock()
	if s.hint != nil {
		l.Hints[wire.MethodDiscover] = *s.hint
	}
	var lists [len(kinds)]list
	var faults [len(kinds)]error
	var work sync.WaitGroup
	for i, k := range kinds {
		if v := wire.Get(s.capabilities, k.capability); v == nil || string(v) == "null" || string(v) == "false" {
			continue
		}
		work.Go(func() { lists[i], faults[i] = s.list(ctx, k) })
	}
	work.Wait()
	var troubles []string
	for i, k := range kinds {
		if err := faults[i]; err != nil {
			if last == nil && k.method == wire.MethodToolsList {
				return l, nil, fmt.Errorf("%s: %w", k.member, err)
			}
			troubles = append(troubles, fmt.Sprintf("list %s: %v", k.member, err))
			lists[i] = lastOf(last, k)
		}
		if lists[i].trouble != "" {
			troubles = append(troubles, fmt.Sprintf("list %s: %s", k.member, lists[i].trouble))
		}
		*k.of(&l) = lists[i].items
		if lists[i].hint != nil {
			l.Hints[k.method] = *lists[i].hint
		}
	}
	l.At = time.Now()
	return l, troubles, nil
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
func (s *session) list(ctx context.Context, k kind) (list, error) {
	var out list
	seen := map[string]bool{}
	dropped := 0
	var cursor json.RawMessage
	for page := 1; ; page++ {
		result, err := s.page(ctx, k, cursor)
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
		out.heed(result)
		cursor = wire.Get(result, "nextCursor")
		switch {
		case cursor == nil || string(cursor) == "null":
		case seen[string(cursor)]:
			out.trouble = "the server gave a cursor that it gave before"
		case page == maxPages || len(out.items) == maxItems:
			out.trouble = fmt.Sprintf("it goes on after %d pages with %d items; the rest was left out", page, len(out.items))
		default:
			seen[string(cursor)] = true
			continue
		}
		if dropped > 0 {
			out.trouble = strings.TrimPrefix(fmt.Sprintf("%s; %d items were no objects and were left out", out.trouble, dropped), "; ")
		}
		s.checkMarks(k, &out)
		return out, nil
	}
}

// page asks for one page. A method that a server does not have, though it declares the capability, is an empty list.
func (s *session) page(ctx context.Context, k kind, cursor json.RawMessage) (json.RawMessage, error) {
	var params json.RawMessage
	if cursor != nil {
		params = wire.Apply(nil, wire.Put(cursor, "cursor"))
	}
	result, err := s.request(ctx, k.method, s.ours(params))
	if reply, ok := errors.AsType[*link.ReplyError](err); ok && wire.ErrorCode(reply.Object) == wire.CodeMethodNotFound {
		return nil, nil
	}
	if err != nil && ctx.Err() != nil && s.e.ctx.Err() == nil {
		return nil, &connectTimeout{s.e.pool.o.ConnectTimeout}
	}
	return result, err
}

// heed takes the strictest caching hint of all pages.
func (l *list) heed(result json.RawMessage) {
	if wire.Get(result, "ttlMs") == nil && wire.Get(result, "cacheScope") == nil {
		return
	}
	hint := hintOf(result)
	if l.hint != nil {
		hint = drawbridge.Hint{TTL: min(hint.TTL, l.hint.TTL), Public: hint.Public && l.hint.Public}
	}
	l.hint = &hint
}

// checkMarks leaves out the tools that a client must not take over HTTP, since what they want in headers cannot be sent
// (2026-07-28, Streamable HTTP, Custom Headers).
func (s *session) checkMarks(k kind, l *list) {
	if k.method != wire.MethodToolsList || s.era != drawbridge.Modern || s.e.row.URL == "" {
		return
	}
	kept := l.items[:0]
	for _, tool := range l.items {
		if _, err := wire.ParamMarks(wire.Get(tool, "inputSchema")); err != nil {
			l.trouble = strings.TrimPrefix(fmt.Sprintf("%s; tool %q was left out: %v", l.trouble, wire.GetText(tool, "name"), err), "; ")
			continue
		}
		kept = append(kept, tool)
	}
	l.items = kept
}

// marksOf gives the arguments that travel in headers too, by tool; only HTTP has headers.
func marksOf(row config.Server, tools []json.RawMessage) map[string][]wire.ParamMark {
	if row.URL == "" {
		return nil
	}
	var marks map[string][]wire.ParamMark
	for _, tool := range tools {
		m, err := wire.ParamMarks(wire.Get(tool, "inputSchema"))
		if err != nil || len(m) == 0 {
			continue
		}
		if marks == nil {
			marks = map[string][]wire.ParamMark{}
		}
		marks[wire.GetText(tool, "name")] = m
	}
	return marks
}
