//go:build !nomcp

package gateway_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
)

// saidFeatures are those of what a server says without an answer.
func saidFeatures() []feature {
	return []feature{
		{name: "log lines, at the level asked for", prove: func(b *box) string {
			c := b.plain()
			if b.cell.client == drawbridge.Legacy {
				c.do(mcp.MethodSetLevel, `{"level":"warning"}`)
			}
			c.level = "warning" // of each request, in the stateless generation
			return proveLines(b, c, `{"level":"warning","data":{"n":9007199254740993}}`,
				`{"level":"emergency","logger":"l","data":2}`)
		}},
		{name: "log lines, where no level is asked for", prove: func(b *box) string {
			lines := []string{`{"level":"info","data":1}`, `{"level":"warning","data":{"n":9007199254740993}}`,
				`{"level":"emergency","logger":"l","data":2}`}
			// The stateful generation leaves it to the server; in the other a client that asks for none hears none.
			if b.cell.client == drawbridge.Modern || b.cell.server == drawbridge.Modern {
				lines = nil
			}
			return proveLines(b, b.plain(), lines...)
		}, alone: true},
		{name: "progress, by the caller's own token", prove: func(b *box) string {
			c := b.plain()
			m := c.call(mcp.MethodToolsCall,
				`{"name":"up__progress","arguments":{"steps":3},"_meta":{"progressToken":"mine \u003c"}}`)
			token := rawjson.Get(m.Result, "structuredContent", "token")
			if got, _ := rawjson.DecodeString(token); token == nil || string(token) == "null" || got == "mine <" {
				b.Errorf("the server's token is %s", token)
			}
			for i, note := range c.await(mcp.NoteProgress, 3) {
				want := fmt.Sprintf(`{"progressToken":"mine \u003c","progress":%d,"total":3,"message":"step"}`, i+1)
				if diff := cmp.Diff(want, string(note.Params)); diff != "" {
					b.Errorf("progress (-want +got):\n%s", diff)
				}
			}
			return ""
		}},
		{name: "progress, around questions", prove: func(b *box) string {
			c := b.asker()
			c.call(mcp.MethodToolsCall,
				`{"name":"up__ask","arguments":{"rounds":[["form"],["roots"]]},"_meta":{"progressToken":7}}`)
			var got []string
			for _, note := range c.await(mcp.NoteProgress, 2) {
				got = append(got, string(note.Params))
			}
			if diff := cmp.Diff([]string{`{"progressToken":7,"progress":1}`, `{"progressToken":7,"progress":2}`},
				got); diff != "" {
				b.Errorf("progress (-want +got):\n%s", diff)
			}
			return ""
		}},
		{name: "progress, where the caller wants none", prove: func(b *box) string {
			c := b.plain()
			m := c.tool("progress", `{"steps":2}`)
			if token := rawjson.Get(m.Result, "structuredContent", "token"); token == nil || string(token) == "null" {
				b.Errorf("the server has no token: %s%s", m.Result, m.Error)
			}
			if got := c.notes(mcp.NoteProgress); len(got) > 0 {
				b.Errorf("the client heard %s", got[0].Params)
			}
			return ""
		}},
	}
}

// proveLines has the server write three log lines, and looks which its caller hears. Someone else hears none.
func proveLines(b *box, c *client, want ...string) string {
	other := b.plain()
	c.tool("log", `{"lines":[{"level":"info","data":1},{"level":"warning","data":{"n":9007199254740993}},{"level":"emergency","logger":"l","data":2}]}`)
	var got []string
	for _, note := range c.notes(mcp.NoteMessage) {
		got = append(got, string(note.Params))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("log lines (-want +got):\n%s", diff)
	}
	other.tool("echo", `{"text":"x"}`)
	if got := other.notes(mcp.NoteMessage); len(got) > 0 {
		b.Errorf("somebody else heard %s", got[0].Params)
	}
	return ""
}

// listFeatures are those of lists and resources, and of what changes in them.
func listFeatures() []feature {
	paged := plan{settings: "[serve]\npage_size = 4\n"}
	return []feature{
		{name: "list_changed of tools, prompts, resources", prove: proveChanges, alone: true},
		{name: "resources: subscribe, updated, unsubscribe", prove: proveUpdates, alone: true},
		{name: "subscriptions outlive the server", prove: proveResubscribed, alone: true},
		{name: "pages", prove: provePages, alone: true, plan: paged},
		{name: "a cursor that is not ours", prove: func(b *box) string {
			return refusalOf(b.plain().do(mcp.MethodToolsList, `{"cursor":"talker 5"}`))
		}, refused: refusedFor(foreignCursor, foreignCursor), alone: true, plan: paged},
		{name: "caching hints of lists", prove: proveListHints, alone: true},
		{name: "caching hints of merged lists", prove: proveMergedHints, alone: true,
			plan: plan{others: "modern-only"}},
		{name: "caching hints of a resource", prove: proveReadHints},
	}
}

const foreignCursor = "-32602 Invalid cursor: it is not one of ours"

// hearing returns a client that hears what belongs to no call, of these kinds.
func (b *box) hearing(filter string) *client {
	c := b.plain()
	if c.era == drawbridge.Modern {
		c.listen(filter)
	}
	return c
}

const (
	allChanges = `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`
	watched    = "talk://watched"
)

// proveChanges has the server change its three lists, and say so twice. Clients hear it once, and find it in the lists.
func proveChanges(b *box) string {
	c := b.hearing(allChanges)
	b.plain().tool("change", `{}`)
	methods := map[string]string{
		mcp.NoteToolsChanged: mcp.MethodToolsList, mcp.NotePromptsChanged: mcp.MethodPromptsList,
		mcp.NoteResourcesChanged: mcp.MethodResourcesList,
	}
	for note, list := range methods {
		c.await(note, 1)
		if m := c.do(list, `{}`); !slices.Contains(namesIn(m.Result), "extra") &&
			!slices.Contains(namesIn(m.Result), "up__extra") {
			b.Errorf("%s has no extra: %s", list, namesIn(m.Result))
		}
	}
	c.tool("echo", `{"text":"x"}`)
	for note := range methods {
		if n := len(c.notes(note)); n != 1 {
			b.Errorf("%s was heard %d times", note, n)
		}
	}
	return ""
}

// namesIn returns the names in the result of a list.
func namesIn(result []byte) []string {
	var names []string
	for _, list := range []string{"tools", "prompts", "resources"} {
		for item := range rawjson.Elements(rawjson.Get(result, list)) {
			names = append(names, rawjson.GetString(item, "name"))
		}
	}
	return names
}

// watch has a client watch the resource, in the way of its generation, and returns what ends that.
func (c *client) watch() (end func()) {
	c.t.Helper()
	if c.era == drawbridge.Modern {
		p := c.listen(`{"resourceSubscriptions":["` + watched + `"]}`)
		return p.giveUp
	}
	if m := c.do(mcp.MethodSubscribe, `{"uri":"`+watched+`"}`); m.Error != nil {
		c.t.Fatalf("subscribe: %s", m.Error)
	}
	return func() { c.do(mcp.MethodUnsubscribe, `{"uri":"`+watched+`"}`) }
}

// watches reports whether a record tells of a request to watch the resource, or of one that watches it no more.
func watches(one mcptest.TalkerEvent, on bool) bool {
	params := rawjson.Get(one.Message, "params")
	switch {
	case one.Heard(mcp.MethodSubscribe):
		return on
	case one.Heard(mcp.MethodUnsubscribe):
		return !on
	case one.Heard(mcp.MethodListen):
		return (rawjson.Get(params, "notifications", "resourceSubscriptions") != nil) == on
	}
	return false
}

// proveUpdates has two clients watch a resource. The server is told once; it is told of the end when both are gone.
func proveUpdates(b *box) string {
	one, two := b.plain(), b.plain()
	endOne, endTwo := one.watch(), two.watch()
	told := 0
	for _, r := range b.records() {
		if watches(r, true) {
			told++
		}
	}
	if told != 1 {
		b.Errorf("the server was told %d times", told)
	}
	one.tool("touch", `{"uri":"`+watched+`"}`)
	for _, c := range []*client{one, two} {
		if got := rawjson.GetString(c.await(mcp.NoteResourceUpdated, 1)[0].Params, "uri"); got != watched {
			b.Errorf("updated: %q", got)
		}
	}
	endOne()
	one.tool("touch", `{"uri":"`+watched+`"}`)
	two.await(mcp.NoteResourceUpdated, 2)
	before := len(b.records())
	endTwo()
	b.awaitRecord(b.T, before, "the end of the subscription",
		func(r mcptest.TalkerEvent) bool { return watches(r, false) })
	if n := len(one.notes(mcp.NoteResourceUpdated)); n > 1 {
		b.Errorf("who unsubscribed heard %d updates", n)
	}
	return ""
}

// proveResubscribed has the server lose all it knows: it is told again what is watched.
func proveResubscribed(b *box) string {
	c := b.plain()
	c.watch()
	before := len(b.records())
	b.restart()
	b.awaitRecord(b.T, before, "a new life", func(r mcptest.TalkerEvent) bool { return r.Event == "start" })
	b.awaitRecord(b.T, before, "the subscription again", func(r mcptest.TalkerEvent) bool { return watches(r, true) })
	eventually(b.T, "the server never answered again", func() bool {
		return textOf(c.tool("touch", `{"uri":"`+watched+`"}`)) == "touched "+watched
	})
	c.await(mcp.NoteResourceUpdated, 1)
	return ""
}

// provePages follows the pages of all tools: every one is there once, and no cursor is the server's.
func provePages(b *box) string {
	c := b.plain()
	seen := map[string]int{}
	pages, params := 0, `{}`
	for params != "" {
		m := c.do(mcp.MethodToolsList, params)
		pages++
		for _, name := range namesIn(m.Result) {
			seen[name]++
		}
		cursor := rawjson.Get(m.Result, "nextCursor")
		if n := len(namesIn(m.Result)); n > 4 || n < 4 && cursor != nil {
			b.Fatalf("a page has %d tools", n)
		}
		params = ""
		if cursor != nil {
			params = `{"cursor":` + string(cursor) + `}`
		}
	}
	if pages < 4 || len(seen) < 16 {
		b.Errorf("%d tools on %d pages", len(seen), pages)
	}
	for name, times := range seen {
		if times != 1 {
			b.Errorf("%s is there %d times", name, times)
		}
	}
	return ""
}

// A hint is what a result says about caching it.
func hintOf(m mcp.Message) string {
	return fmt.Sprintf("%s %s", rawjson.Get(m.Result, "ttlMs"), rawjson.Get(m.Result, "cacheScope"))
}

// proveListHints looks at what lists say about keeping them: as little as the strictest server allows. Of a stateful
// server no one knows, and stateful clients have no words for it.
func proveListHints(b *box) string {
	c := b.plain()
	want := map[string]string{mcp.MethodPromptsList: `60000 "public"`, mcp.MethodTemplatesList: `30000 "public"`}
	for list, hint := range want {
		switch {
		case b.cell.client == drawbridge.Legacy:
			hint = " "
		case b.cell.server == drawbridge.Legacy:
			hint = `0 "private"`
		}
		if got := hintOf(c.do(list, `{}`)); got != hint {
			b.Errorf("%s: %s, want %s", list, got, hint)
		}
	}
	return ""
}

// proveMergedHints has beside the talker a server whose resources are private, and to be kept for a second only.
func proveMergedHints(b *box) string {
	want := `1000 "private"`
	switch {
	case b.cell.client == drawbridge.Legacy:
		want = " "
	case b.cell.server == drawbridge.Legacy:
		want = `0 "private"`
	}
	if got := hintOf(b.plain().do(mcp.MethodResourcesList, `{}`)); got != want {
		b.Errorf("the hint is %s, want %s", got, want)
	}
	return ""
}

func proveReadHints(b *box) string {
	want := `20000 "private"`
	switch {
	case b.cell.server == drawbridge.Legacy && b.cell.client == drawbridge.Modern:
		want = `0 "private"`
	case b.cell.server == drawbridge.Legacy:
		want = " "
	}
	if got := hintOf(b.plain().do(mcp.MethodResourcesRead, `{"uri":"talk://plain"}`)); got != want {
		b.Errorf("the hint is %s, want %s", got, want)
	}
	return ""
}

// touchFile makes an empty file.
func touchFile(t testing.TB, path string) {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Error(err)
	}
}
