//go:build !nomcp

package attack

import (
	"database/sql"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// A deprivation takes something away that a guard needs.
type deprivation struct {
	name     string
	settings string // drawbridge.toml
	rules    *drawbridge.Rules
	members  map[string]any // of the server's row
	lies     bool           // the server's answers meet rules
	// before is done to the home and the store before the gateway opens, after while it runs and has its server.
	before, after func(t *testing.T, home, location string)
	// opens is what the gateway says that does not open; empty for one that does.
	opens string
	// says is what a call is refused with, code its code; sent says that it is sent all the same, and its answer is
	// not given.
	says string
	code drawbridge.FaultCode
	sent bool
}

// without drops a table of the store, as a store that is damaged has none.
func without(table string) func(t *testing.T, _, location string) {
	return func(t *testing.T, _, location string) {
		t.Helper()
		if _, err := os.Stat(location); err != nil {
			made, err := store.Open(t.Context(), location, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			made.Close()
		}
		db, err := sql.Open("sqlite", location)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), "PRAGMA busy_timeout = 10000; DROP TABLE "+table); err != nil {
			t.Fatal(err)
		}
	}
}

// file puts a text where a guard expects another.
func file(name, text string) func(t *testing.T, home, _ string) {
	return func(t *testing.T, home, _ string) {
		t.Helper()
		path := filepath.Join(home, ".config", "drawbridge", name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// rowOf writes a configuration with one server.
func rowOf(t *testing.T, row config.Server, members map[string]any) string {
	t.Helper()
	env := map[string]string{}
	for _, p := range row.Env {
		env[p.Name] = p.Value
	}
	object := map[string]any{"command": row.Command, "args": row.Args, "env": env}
	maps.Copy(object, members)
	text, err := json.Marshal(map[string]any{"servers": map[string]any{string(row.ID): object}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func deprivations() []deprivation {
	asks := &drawbridge.Rules{Default: drawbridge.Allow,
		Rules: []drawbridge.Rule{{At: "rules:1", Effect: drawbridge.Ask, Tools: []string{"up__safe"}}}}
	return []deprivation{
		{name: "quotas without their store", settings: "[tools]\nmax_tool_calls_per_session = 5\n",
			after: without("accounts"), says: "calls cannot be counted", code: drawbridge.PolicyBlocked},
		{name: "approvals without the grants", rules: asks, after: without("grants"),
			says: "it needs a person's approval, and the store does not answer", code: drawbridge.PolicyBlocked},
		{name: "approvals without the questions", rules: asks, after: without("asks"),
			says: "it needs a person's approval, and the store does not answer", code: drawbridge.PolicyBlocked},
		{
			name: "the record without its directory", says: "record it in the audit", code: drawbridge.ServerError,
			before: func(t *testing.T, _, location string) {
				if err := os.WriteFile(location+"-audit", nil, 0o600); err != nil {
					t.Fatal(err)
				}
			},
		},
		{name: "rules with a mistake", settings: "[tools.policy]\ndefault = 'sometimes'\n", opens: "drawbridge.toml:2"},
		{name: "rules that do not compile",
			rules: &drawbridge.Rules{Rules: []drawbridge.Rule{{At: "rules:7", When: "1 +"}}}, opens: "rules:7"},
		{name: "pins without their store", before: without("pins"), says: "unknown tool up__safe",
			code: drawbridge.NotFound},
		{name: "pins without their lists", before: without("pin_lists"), says: "unknown tool up__safe",
			code: drawbridge.NotFound},
		{name: "a lockfile that cannot be read", before: file(config.LockfileName, "{\n"),
			says: "unknown tool up__safe", code: drawbridge.NotFound},
		{name: "a lockfile that is named and not there", settings: "[mcp]\nlock_file = '/nowhere/drawbridge.lock'\n",
			says: "unknown tool up__safe", code: drawbridge.NotFound},
		{name: "a first list without its store", members: map[string]any{"lock_tool_list": true},
			before: without("first_tools"), says: "unknown tool up__safe", code: drawbridge.NotFound},
		{name: "approvals of rows without their store", before: without("row_approvals"),
			opens: "no such table: row_approvals"},
		{name: "trust without its store", before: without("accounts"), opens: "no such table: accounts"},
		{
			name: "results that are held back, without their store", lies: true,
			members: map[string]any{"hold_flagged": true},
			after:   without("held_results"), says: "is held back", code: drawbridge.PolicyBlocked, sent: true,
		},
		{name: "settings that cannot be read", settings: "[tools\n", opens: "drawbridge.toml:"},
	}
}

// TestEveryGuardWithoutWhatItNeeds takes away, from each guard in turn, what it needs to decide: then it denies, says
// why with a code, and no server hears of a call. (Those that need the network have it taken away in bridge/egress,
// server/bearer and bridge/signin, and confinement in bridge.)
func TestEveryGuardWithoutWhatItNeeds(t *testing.T) {
	for _, d := range deprivations() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			d.run(t)
		})
	}
}

func (d deprivation) run(t *testing.T) {
	home := t.TempDir()
	location := filepath.Join(home, "store.db")
	if err := os.MkdirAll(filepath.Join(home, ".config", "drawbridge"), 0o700); err != nil {
		t.Fatal(err)
	}
	file("drawbridge.toml", d.settings)(t, home, location)
	if d.before != nil {
		d.before(t, home, location)
	}
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	tool := "safe"
	if d.lies {
		up, tool = mcptest.NewHostileServer(t, mcptest.Lies, 0), "echo"
	}
	file("mcp.json", rowOf(t, up.Stdio("up"), d.members))(t, home, location)
	env := map[string]string{"HOME": home, gateway.KeychainVariable: "off"}
	c := gateway.Config{
		Store: location, Dir: home, Rules: d.rules, Version: "test",
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	}
	if d.opens != "" {
		g, err := gateway.Open(t.Context(), c)
		if err == nil {
			t.Error(g.Close())
		}
		if f := drawbridge.AsFault(err); err == nil || !strings.Contains(err.Error(), d.opens) || f.Code == "" {
			t.Errorf("it opens with %v, want %q", err, d.opens)
		}
		return
	}
	h := openWith(t, c)
	h.MountNew(t.Context())
	if d.after != nil {
		d.after(t, home, location)
	}
	result, err := h.call(t.Context(), `{"name":"up__`+tool+`"}`)
	if f := drawbridge.AsFault(err); err == nil || result != "" || f.Code != d.code ||
		!strings.Contains(err.Error(), d.says) {
		t.Errorf("the call ends with %s, %v; want %q", result, err, d.says)
	}
	if calls := callsAfter(up, 0); (len(calls) > 0) != d.sent {
		t.Errorf("the server hears %v", calls)
	}
}

// TestADoorWithoutItsClients has a door over HTTP whose list of clients cannot be read: nobody is let in, with a token
// and without.
func TestADoorWithoutItsClients(t *testing.T) {
	location := filepath.Join(t.TempDir(), "store.db")
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	d := serve(t, gateway.Config{Store: location, Servers: serversOf(up.HTTP("up"))})
	before := len(up.Requests())
	without("clients")(t, "", location)
	for _, headers := range [][]string{nil,
		{"Authorization", "Bearer dbr_0123456789012345678901234567890123456789012"}} {
		if got := d.post(safe, headers...); got.went() || got.status < 400 {
			t.Errorf("%v is answered with %d %s", headers, got.status, got.body)
		}
	}
	if calls := callsAfter(up, before); len(calls) > 0 {
		t.Errorf("the server hears %v", calls)
	}
}
