package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

func tools(names ...string) (items []json.RawMessage) {
	for _, name := range names {
		items = append(items, json.RawMessage(`{"name":"`+name+`"}`))
	}
	return items
}

// names gives the names on a page, and the cursor of the next.
func names(t *testing.T, page reply) (names []string, cursor json.RawMessage) {
	t.Helper()
	if page.fault != nil {
		t.Fatalf("no page: %s", page.fault)
	}
	for item := range rawjson.Elements(rawjson.Get(page.body, "tools")) {
		names = append(names, rawjson.GetString(item, "name"))
	}
	return names, rawjson.Get(page.body, "nextCursor")
}

func at(cursor json.RawMessage) json.RawMessage {
	return rawjson.Apply(nil, rawjson.Put(cursor, "cursor"))
}

// TestPages shows that a cursor finds its place again when the list has changed elsewhere, and says so when it is gone.
func TestPages(t *testing.T) {
	d := newFakeDeck()
	d.setTools(tools("a", "b", "c", "d", "e")...)
	s := newServer(t, d, Options{PageSize: 2})
	list := func(cursor json.RawMessage) reply {
		params := json.RawMessage(nil)
		if cursor != nil {
			params = at(cursor)
		}
		return s.list(t.Context(), owner, mcp.MethodToolsList, params)
	}
	first, second := names(t, list(nil))
	if diff := cmp.Diff([]string{"a", "b"}, first); diff != "" {
		t.Errorf("first page (-want +got):\n%s", diff)
	}
	got, third := names(t, list(second))
	if diff := cmp.Diff([]string{"c", "d"}, got); diff != "" {
		t.Errorf("second page (-want +got):\n%s", diff)
	}
	got, end := names(t, list(third))
	if diff := cmp.Diff([]string{"e"}, got); diff != "" || end != nil {
		t.Errorf("third page, cursor %s (-want +got):\n%s", end, diff)
	}
	d.setTools(tools("new", "a", "b", "c", "d")...)
	got, _ = names(t, list(second))
	if diff := cmp.Diff([]string{"c", "d"}, got); diff != "" {
		t.Errorf("second page, one more before it (-want +got):\n%s", diff)
	}
	d.setTools(tools("c", "d")...)
	if r := list(second); mcp.ErrorCode(r.fault) != mcp.CodeInvalidParams {
		t.Errorf("a page whose place is gone: %s%s", r.body, r.fault)
	}
}

func TestCursorsOfOthers(t *testing.T) {
	s := newServer(t, newFakeDeck(), Options{PageSize: 1})
	zero := base64.RawURLEncoding.EncodeToString(make([]byte, cursorSize))
	for _, cursor := range []string{`""`, `7`, `{}`, `"x"`, `"!!!!!!!!!!!!!!!!"`, `"` + zero + `"`} {
		r := s.list(t.Context(), owner, mcp.MethodToolsList, at(json.RawMessage(cursor)))
		if mcp.ErrorCode(r.fault) != mcp.CodeInvalidParams {
			t.Errorf("cursor %s: %s%s", cursor, r.body, r.fault)
		}
	}
	if r := s.list(t.Context(), owner, mcp.MethodToolsList, at(json.RawMessage(`null`))); r.fault != nil {
		t.Errorf("a null cursor: %s", r.fault)
	}
}

// TestListsAreKept: an unchanged list is the same bytes; another version, hint, page or era is another page.
func TestListsAreKept(t *testing.T) {
	d := newFakeDeck()
	s := newServer(t, d, Options{})
	modern := owner
	modern.Era = drawbridge.Modern
	list := func(caller drawbridge.Caller) string {
		return string(s.list(t.Context(), caller, mcp.MethodToolsList, nil).body)
	}
	before := list(modern)
	if again := list(modern); again != before {
		t.Errorf("the same list twice:\n%s\n%s", before, again)
	}
	if legacy := list(owner); legacy == before {
		t.Error("both generations get the same page")
	}
	d.hint.Public = true
	if list(modern) == before {
		t.Error("another hint is the same page")
	}
	d.setTools()
	if got := list(owner); got != `{"tools":[]}` {
		t.Errorf("an empty list is %s", got)
	}
}

// TestPagesAreBounded: what is kept is thrown away before it is too much.
func TestPagesAreBounded(t *testing.T) {
	p := newPageCache()
	for version := range uint64(100) {
		p.getOrEncode(pageKey{version: version}, func() json.RawMessage { return make(json.RawMessage, 1<<20) })
		if p.size > maxPageBytes || p.kept.Len() > maxPageBytes>>20 {
			t.Fatalf("%d bytes are kept in %d pages", p.size, p.kept.Len())
		}
	}
	if got := p.kept.Len(); got != maxPageBytes>>20 {
		t.Errorf("%d pages are kept", got)
	}
	p.getOrEncode(pageKey{start: 1}, func() json.RawMessage { return make(json.RawMessage, maxPageBytes+1) })
	if got := p.kept.Len(); got != maxPageBytes>>20 {
		t.Errorf("a page that is too large leaves %d pages", got)
	}
}

// BenchmarkList encodes a list of 1,000 tools the second time.
func BenchmarkList(b *testing.B) {
	d := newFakeDeck()
	items := make([]json.RawMessage, 1000)
	for i := range items {
		items[i] = json.RawMessage(
			fmt.Sprintf(`{"name":"tool_%d","description":"does one thing","inputSchema":{"type":"object"}}`, i))
	}
	d.setTools(items...)
	s := newServer(b, d, Options{})
	b.ReportAllocs()
	for b.Loop() {
		s.list(b.Context(), owner, mcp.MethodToolsList, nil)
	}
}

// TestAllToolsAreListedToWhoAsks shows that each page of the direct list must be asked for, and that other lists have
// none.
func TestAllToolsAreListedToWhoAsks(t *testing.T) {
	d := newFakeDeck()
	d.setTools(tools("short")...)
	d.items["direct"] = tools("a", "b", "c")
	s := newServer(t, d, Options{PageSize: 2})
	ask := func(method, params string) string {
		return string(s.list(t.Context(), owner, method, json.RawMessage(params)).body)
	}
	const direct = `{"_meta":{"drawbridge/direct":true}`
	first := ask(mcp.MethodToolsList, direct+"}")
	cursor := `,"cursor":` + string(rawjson.Get([]byte(first), "nextCursor")) + "}"
	for what, got := range map[string][2]string{
		"the first page": {first, `"name":"b"`}, "the second page": {ask(mcp.MethodToolsList, direct+cursor), `"name":"c"`},
		"without": {ask(mcp.MethodToolsList, `{}`), `"name":"short"`}, "prompts": {ask(mcp.MethodPromptsList, direct+"}"), `"prompts":[`},
	} {
		if !strings.Contains(got[0], got[1]) {
			t.Errorf("%s: %s", what, got[0])
		}
	}
	if r := s.list(t.Context(), owner, mcp.MethodToolsList, json.RawMessage("{"+cursor[1:])); r.fault == nil {
		t.Errorf("a cursor of the other list: %s", r.body)
	}
}
