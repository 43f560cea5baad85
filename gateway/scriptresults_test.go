//go:build !nomcp

package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

const scriptSettings = "[sandbox]\nclients = true\nresult = 1000\n"

// scriptParams returns the params of a call of run_python.
func scriptParams(t *testing.T, code string) string {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		t.Fatal(err)
	}
	return `{"name":"run_python","arguments":` + string(arguments) + `}`
}

// runScript runs a script as a client, and returns the text and the structured content of the result.
func runScript(t *testing.T, c *client, code string) (text string, structured json.RawMessage) {
	t.Helper()
	m := c.call(mcp.MethodToolsCall, scriptParams(t, code))
	if m.Error != nil {
		t.Fatalf("%s: %s", code, m.Error)
	}
	return scriptText(m.Result), rawjson.Get(m.Result, "structuredContent")
}

// scriptText returns the texts of a result.
func scriptText(result json.RawMessage) string {
	var text strings.Builder
	for block := range rawjson.Elements(rawjson.Get(result, "content")) {
		text.WriteString(rawjson.GetString(block, "text"))
	}
	return text.String()
}

// scriptRig returns a gateway that has run a script: the interpreter may have to be compiled, for longer than a client
// waits. dir has its settings. The results of the session of the script have ended with it.
func scriptRig(t *testing.T) (r *rig, dir string) {
	t.Helper()
	dir = t.TempDir()
	g := runIn(t, dir, `{"servers":{"every":`+string(mcptest.ServerRow(t, "everything"))+`}}`, scriptSettings)
	caller, end := g.NewCaller(nil)
	ask := func(code string) string {
		result, err := g.Deck().Call(context.WithoutCancel(t.Context()), drawbridge.Call{Caller: caller, Params: json.RawMessage(scriptParams(t, code))})
		if errors.Is(err, sandbox.ErrNoInterpreter) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return scriptText(result.Raw)
	}
	id := strings.TrimSpace(ask(`tools.keep("of a session that ends").id`))
	if text := ask(`tools.result("` + id + `").text()`); text != "of a session that ends\n" {
		t.Fatal(text)
	}
	end()
	if text := ask(`tools.result("` + id + `").text()`); !strings.Contains(text, "unknown result "+id) {
		t.Errorf("after the end of the session: %s", text)
	}
	return &rig{running: g, t: t}, dir
}

// keptID returns the id of the result that a text names.
func keptID(t *testing.T, text string) string {
	t.Helper()
	_, after, _ := strings.Cut(text, `tools.result("`)
	id, _, ok := strings.Cut(after, `"`)
	if !ok {
		t.Fatalf("no result is named: %s", text)
	}
	return id
}

// TestResultsOfScriptsAreOfTheirSession has sessions keep results, and other sessions try to read them.
func TestResultsOfScriptsAreOfTheirSession(t *testing.T) {
	r, _ := scriptRig(t)
	for _, door := range []string{"HTTP", "stdio"} {
		one, two := r.client(t, drawbridge.Legacy, door, ""), r.client(t, drawbridge.Legacy, door, "")
		text, structured := runScript(t, one, `print("x" * 4999 + "y")`)
		id := keptID(t, text)
		if want := strings.Repeat("x", 1000) + "\n\n" + `[4001 more characters: in the next script, r = tools.result("` + id + `") has r[a:b] and r.lines(a, b)]` + "\n"; text != want {
			t.Errorf("%s: the model gets %q", door, text)
		}
		if want := `{"stdout":"` + strings.Repeat("x", 1000) + `","calls":0,"results":[{"id":"` + id + `","part":"stdout","length":5001,"returned":1000}]}`; string(structured) != want {
			t.Errorf("%s: the client gets %s", door, structured)
		}
		if text, _ := runScript(t, one, `r = tools.result("`+id+`"); print(len(r), r[4997:])`); text != "5001 xxy\n" {
			t.Errorf("%s: the next script reads %q", door, text)
		}
		for name, other := range map[string]*client{"another session": two, "a stateless client": r.client(t, drawbridge.Modern, "HTTP", "")} {
			if text, _ := runScript(t, other, `tools.result("`+id+`").text()`); !strings.Contains(text, "unknown result "+id+"; next:") {
				t.Errorf("%s: %s reads %q", door, name, text)
			}
		}
	}
	stateless := r.client(t, drawbridge.Modern, "HTTP", "")
	text, _ := runScript(t, stateless, `tools.keep({"a": [1, 2]}).id`)
	id := strings.TrimSpace(text)
	if text, _ := runScript(t, stateless, `tools.result("`+id+`").select("$.a[1]")`); text != "[2]\n" {
		t.Errorf("a stateless client reads %q", text)
	}
}

// TestAResultIsLostWithTheRightToItsTool adds a rule that denies a tool whose result was kept.
func TestAResultIsLostWithTheRightToItsTool(t *testing.T) {
	r, dir := scriptRig(t)
	one := r.client(t, drawbridge.Legacy, "HTTP", "")
	text, _ := runScript(t, one, `tools.keep("of no tool").id`)
	none := strings.TrimSpace(text)
	text, _ = runScript(t, one, `tools.every.echo(text="z" * 3000)`)
	called := keptID(t, text)
	text, _ = runScript(t, one, `r = tools.result("`+called+`"); print(len(r), tools.keep(r[:10]).id)`)
	derived, ok := strings.CutPrefix(strings.TrimSpace(text), "3000 ")
	if !ok {
		t.Fatalf("before the rule: %q", text)
	}
	rule := "[[tools.policy.rules]]\neffect = \"deny\"\ntools = \"every__echo\"\n"
	if err := os.WriteFile(filepath.Join(dir, "drawbridge", "drawbridge.toml"), []byte(scriptSettings+rule), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ id, text string }{{none, "of no tool\n"}, {called, "unknown result " + called}, {derived, "unknown result " + derived}} {
		if text, _ := runScript(t, one, `tools.result("`+tt.id+`").text()`); !strings.Contains(text, tt.text) {
			t.Errorf("after the rule, %s: %q", tt.id, text)
		}
	}
}
