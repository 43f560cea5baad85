//go:build !nomcp

package gateway_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
)

// TestRulesCountAtEveryDoor has clients of both generations at both doors list and call what rules hide, deny and
// allow.
func TestRulesCountAtEveryDoor(t *testing.T) {
	const rules = `
[[tools.policy.rules]]
effect = "deny"
tools = ["drawbridge_*", "fail"]
[[tools.policy.rules]]
effect = "deny"
args.text = "secret"
[[tools.policy.rules]]
effect = "deny"
prompts = "*"
[[tools.policy.rules]]
effect = "deny"
resources = "*"
`
	g := runGateway(t, `{"servers":{"up":`+string(mcptest.ServerRow(t, "everything"))+`}}`, rules)
	r := &rig{t: t, running: g}
	for _, door := range []string{"HTTP", "stdio"} {
		for _, era := range []drawbridge.ProtocolEra{drawbridge.Legacy, drawbridge.Modern} {
			c := r.client(t, era, door, `{}`)
			where := era.String() + " at " + door
			var listed []string
			for item := range rawjson.Elements(rawjson.Get(c.call(mcp.MethodToolsList, `{}`).Result, "tools")) {
				listed = append(listed, rawjson.GetString(item, "name"))
			}
			if len(listed) == 0 || !slices.Contains(listed, "up__echo") || slices.Contains(listed, "up__fail") ||
				slices.Contains(listed, "drawbridge_tools") {
				t.Errorf("%s: listed are %q", where, listed)
			}
			for list, member := range map[string]string{mcp.MethodPromptsList: "prompts",
				mcp.MethodResourcesList: "resources", mcp.MethodTemplatesList: "resourceTemplates"} {
				for item := range rawjson.Elements(rawjson.Get(c.call(list, `{}`).Result, member)) {
					t.Errorf("%s: %s has %s", where, list, item)
				}
			}
			if m := c.tool("echo", `{"text":"hello"}`); m.Error != nil || !strings.Contains(string(m.Result), "hello") {
				t.Errorf("%s: %s %s", where, m.Result, m.Error)
			}
			denied := c.tool("echo", `{"text":"secret"}`)
			if text := string(denied.Result) + string(denied.Error); !strings.Contains(text,
				"Tool call denied by policy") || strings.Contains(text, "rule") || strings.Contains(text, ".toml") {
				t.Errorf("%s: %s", where, text)
			}
			hidden, nothing := c.tool("fail", `{}`), c.tool("none", `{}`)
			said := func(m mcp.Message) string { return string(m.Result) + string(m.Error) }
			if diff := cmp.Diff(strings.ReplaceAll(said(nothing), "none", "fail"), said(hidden)); diff != "" {
				t.Errorf("%s: hidden is not as unknown (-want +got):\n%s", where, diff)
			}
		}
	}
}

// atHome is the configuration of a gateway that forgets, for a person whose home is that directory.
func atHome(dir string) gateway.Config {
	return gateway.Config{
		Dir: dir, Store: gateway.MemoryStore,
		LookupEnv: func(name string) (string, bool) {
			if name == gateway.KeychainVariable {
				return "off", true
			}
			return dir, name == "XDG_CONFIG_HOME" || name == "HOME"
		},
	}
}

// TestReloadTakesRulesWhole: rules that change count at once, and callers hear of it; a file with a mistake changes
// nothing.
func TestReloadTakesRulesWhole(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "drawbridge", "drawbridge.toml")
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := atHome(dir)
	write("")
	g, err := gateway.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	changes := 0
	defer g.Deck().OnEvent(func(e deck.Event) {
		if e.Kind == deck.ToolsChanged {
			changes++
		}
	})()
	listed := func() bool {
		_, ok := g.Deck().FindCard(g.Owner(), "drawbridge_scopes")
		return ok
	}
	const deny = "[[tools.policy.rules]]\neffect = 'deny'\ntools = 'drawbridge_scopes'\n"
	for _, step := range []struct {
		text    string
		listed  bool
		changes int
		wrong   string
	}{
		{"", true, 0, ""},
		{deny, false, 1, ""},
		{deny, false, 1, ""},
		{deny + "when = '1 +'\n", false, 1, "drawbridge.toml:1: when, character"},
		{deny + "tool = 'x'\n", false, 1, "drawbridge.toml:4: tool is written twice"},
		{"[[tools.policy", false, 1, "drawbridge.toml:1"},
		{"", true, 2, ""},
	} {
		write(step.text)
		_, err := g.Reload(t.Context())
		switch f, ok := errors.AsType[*drawbridge.Fault](err); {
		case step.wrong == "" && err != nil:
			t.Errorf("%q: %v", step.text, err)
		case step.wrong != "" && (!ok || f.Code != drawbridge.InvalidInput ||
			!strings.Contains(err.Error(), step.wrong)):
			t.Errorf("%q: %v, want %s", step.text, err, step.wrong)
		}
		if listed() != step.listed || changes != step.changes {
			t.Errorf("%q: listed %v, %d changes, want %v and %d", step.text, listed(), changes,
				step.listed, step.changes)
		}
	}
	write(deny + "args_match = '('\n")
	if other, err := gateway.Open(t.Context(), c); err == nil {
		_ = other.Close()
		t.Error("a gateway opens with rules that have a mistake")
	}
}

// TestRulesOutliveTheirFile takes away the file with the rules while they are in force, and has a link lead there from
// where nothing is.
func TestRulesOutliveTheirFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "drawbridge", "drawbridge.toml")
	const deny = "[[tools.policy.rules]]\neffect = 'deny'\ntools = 'drawbridge_scopes'\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(deny), 0o600)); err != nil {
		t.Fatal(err)
	}
	c := atHome(dir)
	g, err := gateway.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	listed := func() bool {
		_, ok := g.Deck().FindCard(g.Owner(), "drawbridge_scopes")
		return ok
	}
	if listed() {
		t.Fatal("the rule is not in force")
	}
	for _, gone := range []func() error{
		func() error { return os.Remove(file) },
		func() error { return os.Symlink(filepath.Join(dir, "nowhere"), file) },
	} {
		if err := gone(); err != nil {
			t.Fatal(err)
		}
		_, err := g.Reload(t.Context())
		if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput || listed() {
			t.Errorf("the rules went with their file: %v", err)
		}
	}
	if other, err := gateway.Open(t.Context(), c); err == nil || !strings.Contains(err.Error(),
		"drawbridge.toml: a link in its path leads nowhere") {
		if err == nil {
			_ = other.Close()
		}
		t.Errorf("a gateway opens without the rules that a link leads to no more: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	other, err := gateway.Open(t.Context(), c) // who wants none
	if err != nil {
		t.Fatal(err)
	}
	_ = other.Close()
}
