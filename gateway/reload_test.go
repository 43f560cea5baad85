//go:build !nomcp

package gateway

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/google/go-cmp/cmp"
)

// writeRows writes a configuration file.
func writeRows(t *testing.T, path string, rows ...config.Server) {
	t.Helper()
	type pairs map[string]string
	servers := map[string]any{}
	for _, row := range rows {
		env := pairs{}
		for _, p := range row.Env {
			env[p.Name] = p.Value
		}
		servers[string(row.ID)] = map[string]any{"command": row.Command, "args": row.Args, "env": env}
	}
	data, err := json.Marshal(map[string]any{"servers": servers})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReloadTouchesWhatChangedOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	stays, goes, changes := row(t, "stays", "everything"), row(t, "goes", "everything"), row(t, "changes", "everything")
	writeRows(t, path, stays, goes, changes)
	g := open(t, Config{Paths: []string{path}})
	loaded(t, g)
	started := pids(g)
	comes := row(t, "comes", "everything")
	changes.Env = append(changes.Env, config.NameValue{Name: "MORE", Value: "1"})
	writeRows(t, path, stays, changes, comes)
	got, err := g.Reload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Changes{Added: []drawbridge.ServerID{"comes"}, Removed: []drawbridge.ServerID{"goes"},
		Changed: []drawbridge.ServerID{"changes"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if faults := loaded(t, g); len(faults) > 0 {
		t.Error(faults)
	}
	owners := map[string]bool{}
	for _, name := range names(t, g) {
		id, _, _ := strings.Cut(name, "__")
		owners[id] = true
	}
	if diff := cmp.Diff(map[string]bool{"stays": true, "changes": true, "comes": true}, owners); diff != "" {
		t.Error(diff)
	}
	now := pids(g)
	if now["stays"] != started["stays"] {
		t.Errorf("the server that did not change is another process: %d, then %d", started["stays"], now["stays"])
	}
	if now["changes"] == started["changes"] {
		t.Error("the server whose row changed is the same process")
	}
	if got, err := g.Reload(t.Context()); err != nil || !got.IsEmpty() {
		t.Errorf("a second reload: %+v, %v", got, err)
	}
}

func TestReloadOfABrokenFileChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".drawbridge", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	writeRows(t, path, row(t, "a", "everything"))
	g := open(t, Config{Paths: []string{filepath.Dir(filepath.Dir(path))}})
	loaded(t, g)
	before := names(t, g)
	if err := os.WriteFile(path, []byte(`{"servers": {`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := g.Reload(t.Context())
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput ||
		!strings.Contains(err.Error(), path+":") {
		t.Errorf("got %v", err)
	}
	if now := names(t, g); !slices.Equal(before, now) {
		t.Errorf("the deck was %v, is %v", before, now)
	}
}

// pids returns each server's process.
func pids(g *Gateway) map[string]int {
	out := map[string]int{}
	for _, s := range g.Status() {
		out[string(s.Server)] = s.PIDs[0]
	}
	return out
}

// TestNewServersComeUnderNewRules has a reload bring a server and the rule against it: at no moment between is it
// there.
func TestNewServersComeUnderNewRules(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drawbridge")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	rows := filepath.Join(dir, "mcp.json")
	writeRows(t, rows, row(t, "s", "legacy"))
	g := open(t, Config{Store: filepath.Join(dir, "store.db"), Dir: dir, LookupEnv: func(name string) (string, bool) {
		if name == KeychainVariable {
			return "off", true
		}
		return filepath.Dir(dir), name == "XDG_CONFIG_HOME" || name == "HOME"
	}})
	loaded(t, g)
	shown := func() bool {
		_, ok := g.Deck().FindCard(g.Owner(), "s__echo")
		return ok
	}
	reload := func() {
		t.Helper()
		if _, err := g.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !shown() {
		t.Fatal("there is nothing to hide")
	}
	writeRows(t, rows)
	reload()
	writeRows(t, rows, row(t, "s", "legacy"))
	write(t, filepath.Join(dir, "drawbridge.toml"), "[[tools.policy.rules]]\neffect = 'deny'\nservers = 's'\n")
	events := 0
	defer g.Deck().OnEvent(func(deck.Event) {
		if events++; shown() {
			t.Errorf("event %d: the server is there, and its rule is not", events)
		}
	})()
	reload()
	if events == 0 || len(g.Config().Servers) != 1 {
		t.Errorf("%d events", events)
	}
}

// TestAnAttachedServerIsJudgedByItsRow attaches a server that its row trusts less than others.
func TestAnAttachedServerIsJudgedByItsRow(t *testing.T) {
	g := open(t, Config{Servers: []config.Server{row(t, "one", "legacy")}, Rules: &drawbridge.Rules{
		Default: drawbridge.Allow, Rules: []drawbridge.Rule{{Effect: drawbridge.Deny, Trust: []string{"sandboxed"}}},
	}})
	two := row(t, "two", "legacy")
	two.Trust = "sandboxed"
	if err := g.AddServer(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	loaded(t, g)
	want(t, names(t, g), "one__echo")
}
