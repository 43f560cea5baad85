//go:build !nomcp

package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// badName is what the poisoned server calls things by that it wants a model to read.
const badName = mcptest.PoisonName

// TestAHostileServerIsShownAsTheShieldLeavesIt mounts it, and looks at all that a client sees, and the server hears.
func TestAHostileServerIsShownAsTheShieldLeavesIt(t *testing.T) {
	dir := t.TempDir()
	record := filepath.Join(dir, "record")
	c := Config{Store: filepath.Join(dir, "x.db"), Servers: []config.Server{row(t, "p", "poisoned", record)},
		Shield: config.ShieldSettings{Threshold: -1}}
	g := open(t, c)
	if faults := loaded(t, g); len(faults) > 0 {
		t.Fatal(faults)
	}
	tools, err := g.Deck().List(t.Context(), g.Owner(), mcp.MethodToolsList)
	if err != nil {
		t.Fatal(err)
	}
	shown := tools.Items[len(tools.Items)-4:]
	resources, err := g.Deck().List(t.Context(), g.Owner(), mcp.MethodResourcesList)
	if err != nil {
		t.Fatal(err)
	}
	const renamed = "sanitized_46caf9"
	for _, call := range []struct{ method, params, heard string }{
		{mcp.MethodToolsCall, `{"name":"p__` + renamed + `","arguments":{"` + renamed +
			`":{"path":"path"},"path":1.0}}`,
			`"params":{"name":"` + badName + `","arguments":{"` + badName + `":{"pa` + "\u200b" + `th":"path"},"pa` +
				"\u200b" + `th":1.0}`},
		{mcp.MethodPromptsGet, `{"name":"p__` + renamed + `","arguments":{"` + renamed + `":"x"}}`,
			`"params":{"name":"` + badName + `","arguments":{"` + badName + `":"x"}`},
		{mcp.MethodComplete, `{"ref":{"type":"ref/prompt","name":"p__` + renamed + `"},"argument":{"name":"` + renamed +
			`","value":"x"}}`,
			`"params":{"ref":{"type":"ref/prompt","name":"` + badName + `"},"argument":{"name":"` + badName +
				`","value":"x"}`},
		{mcp.MethodResourcesRead, `{"uri":"` + rawjson.GetString(resources.Items[0], "uri") + `"}`,
			`"params":{"uri":"x://` + "\u200b" + `one"`},
	} {
		result, err := request(t, g, g.Owner(), call.method, call.params)
		if err != nil {
			t.Errorf("%s %s: %v", call.method, call.params, err)
		}
		if call.method == mcp.MethodResourcesRead && strings.Contains(string(result), "\u200b") {
			t.Errorf("the resource came as %s", result)
		}
		if heard, _ := os.ReadFile(record); !strings.Contains(string(heard), call.heard) {
			t.Errorf("%s: the server did not hear %s in\n%s", call.method, call.heard, heard)
		}
	}
	notes := strings.Join(g.Status()[0].Notes, "\n")
	for _, note := range []string{
		"tool told: a text was blanked, because /description tells the model to ignore its instructions (override), and 1 more",
		"tool " + badName + ": a name was replaced, because /name tells the model", "tool deep: a text was blanked",
		`template x://{\u200ba}: left out, because its URI is not what it looks like`,
		"server instructions: a text was blanked",
	} {
		if !strings.Contains(notes, note) {
			t.Errorf("no note %q in\n%s", note, notes)
		}
	}
	closeIt(t, g)

	// The journal has what was shown, and the next process shows the same before anything is started.
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	again := openOnly(t, c)
	entries, err := again.shared.db.Replay(t.Context(), configStream(c, config.Configuration{}))
	if err != nil || len(entries) != 4 {
		t.Fatalf("the journal has %d entries, %v", len(entries), err)
	}
	for i, e := range entries {
		want := rawjson.Apply(e.Card.Definition, rawjson.Put(rawjson.Quote("p__"+rawjson.GetString(e.Card.Definition,
			"name")), "name"))
		if string(shown[i]) != string(want) {
			t.Errorf("the journal has %s, shown was %s", e.Card.Definition, shown[i])
		}
	}
	if got := names(t, again); !slices.Equal(got, names(t, g)) {
		t.Errorf("shown again are %q, before %q", got, names(t, g))
	}
	if got := strings.Join(again.Status()[0].Notes, "\n"); got != notes {
		t.Errorf("notes again:\n%s\nwant\n%s", got, notes)
	}
}

// TestALockedListOutlivesTheProcess has a server list something else the next time.
func TestALockedListOutlivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	script := mcptest.WriteScript(t,
		`{"tools/list":{"tools":[{"name":"a","inputSchema":{}},{"name":"b","inputSchema":{}}]}}`)
	locked := row(t, "s", "raw", script)
	yes := true
	locked.LockToolList = &yes
	c := Config{Store: filepath.Join(dir, "x.db"), Servers: []config.Server{locked}}
	first := open(t, c)
	loaded(t, first)
	want(t, names(t, first), "s__a", "s__b")
	closeIt(t, first)
	if err := os.WriteFile(script,
		[]byte(`{"tools/list":{"tools":[{"name":"c","inputSchema":{}},{"name":"b","description":"More.","inputSchema":{}},{"name":"a","inputSchema":{}}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, c)
	for range 2 { // remembered, then mounted
		want(t, names(t, again), "s__a", "s__b")
		if spec, _ := again.Deck().FindCard(again.Owner(), "s__b"); spec.Summary != "" {
			t.Errorf("b is %s", spec.Definition)
		}
		loaded(t, again)
	}
	want(t, again.Status()[0].Notes,
		"tool c: left out, because it came after the first list, which is locked (drawbridge shield unlock s takes it)",
		"tool b: the first definition is kept, because the server changed it, and the list is locked: the first definition stays",
		"tool b: held, because its definition changed: drawbridge shield held s")
	closeIt(t, again)
	want(t, names(t, openOnly(t, c)), "s__a", "s__b")
}

// TestExpectedToolsAreTheOnlyOnes names one of two.
func TestExpectedToolsAreTheOnlyOnes(t *testing.T) {
	s := row(t, "s", "raw", mcptest.WriteScript(t,
		`{"tools/list":{"tools":[{"name":"a","inputSchema":{}},{"name":"b","inputSchema":{}}]}}`))
	s.ExpectedTools = &[]string{"b"}
	g := open(t, Config{Servers: []config.Server{s}})
	loaded(t, g)
	want(t, names(t, g), "s__b")
	want(t, g.Status()[0].Notes, `tool a: left out, because "expected_tools" of its row does not name it`)
	if _, err := say(t, g, "s__a", `{}`); err == nil {
		t.Error("a tool that is not expected was called")
	}
}

// TestRulesOfTodayLookAtWhatOlderOnesLeft has a record of older rules, that let everything through.
func TestRulesOfTodayLookAtWhatOlderOnesLeft(t *testing.T) {
	c := Config{Store: filepath.Join(t.TempDir(), "x.db"), Servers: []config.Server{row(t, "p", "poisoned")},
		Shield: config.ShieldSettings{Threshold: -1}, OnDemand: true}
	first := open(t, c)
	loaded(t, first)
	closeIt(t, first)

	between := openOnly(t, c)
	hash := between.Config().Servers[0].Hash
	mounts, err := between.shared.db.Mounts(t.Context())
	if err != nil || mounts[hash].Vetted == nil {
		t.Fatalf("%v, %v", mounts[hash], err)
	}
	older := rawjson.Apply(mounts[hash].Vetted, rawjson.Put(json.RawMessage(`"older"`), "book", "rules"),
		rawjson.Put(json.RawMessage(`[]`), "book", "looks"))
	if err := between.shared.db.SaveVetted(t.Context(), map[string][]byte{hash: older}); err != nil {
		t.Fatal(err)
	}
	closeIt(t, between)

	g := openOnly(t, c)
	told := func() bool {
		return slices.ContainsFunc(names(t, g), func(name string) bool {
			return strings.HasPrefix(name,
				"p__ignore_all")
		})
	}
	if !told() {
		t.Errorf("what older rules left is not shown: %q", names(t, g))
	}
	changed := make(chan struct{}, 16)
	t.Cleanup(g.Deck().OnEvent(func(deck.Event) { changed <- struct{}{} }))
	run(t, g)
	deadline := time.After(time.Minute)
	for told() {
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("no one looked again")
		}
	}
}

// TestAListingThatComesTooLateIsIgnored: one of a server that is to end, or whose row is another now, is not a fault of
// anybody's.
func TestAListingThatComesTooLateIsIgnored(t *testing.T) {
	var log strings.Builder
	g := openOnly(t, Config{
		Servers: []config.Server{{ID: "a", Command: "never-started"}}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	l := drawbridge.Listing{
		Server: "a", ConfigHash: g.Config().Servers[0].Hash,
		Tools: []json.RawMessage{[]byte(`{"name":"x","inputSchema":{"type":"object"}}`)},
	}
	ended, end := context.WithCancel(t.Context())
	end()
	g.enrolListing(ended, l)
	l.ConfigHash = "another"
	g.enrolListing(t.Context(), l)
	if log.Len() > 0 {
		t.Error(log.String())
	}
}
