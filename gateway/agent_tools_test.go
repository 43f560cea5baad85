//go:build !nomcp

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

func agentGateway(t *testing.T, dir string, rows ...config.Server) *Gateway {
	t.Helper()
	home := t.TempDir()
	g := open(t, Config{Servers: rows, Dir: dir, LookupEnv: func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": home, "DRAWBRIDGE_KEYCHAIN": "off", "XDG_CACHE_HOME": cacheDir(t)}[name]
		return v, ok
	}})
	loaded(t, g)
	return g
}

func toolCall(name, arguments string) drawbridge.ToolCall {
	return drawbridge.ToolCall{ID: "1", Name: drawbridge.CardName(name), Arguments: json.RawMessage(arguments)}
}

// TestAgentToolsOfAllKinds calls a tool of a server, one of Drawbridge's own, and one that does not exist.
func TestAgentToolsOfAllKinds(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := agentGateway(t, dir, row(t, "every", "everything"))
	tools := g.AgentTools("s1", AgentOptions{Dir: dir})
	defer tools.Close()
	who := agent.Identity{Session: "s1", Mode: agent.Bypass}
	b, err := tools.Brief(t.Context(), who, true)
	if err != nil || b.Dir != dir || len(b.Servers) != 1 || b.Servers[0].Name != "every" || b.Servers[0].Tools == 0 {
		t.Errorf("the briefing is %+v, %v", b, err)
	}
	all, err := tools.Select(t.Context(), who, "add two numbers", nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range all {
		names = append(names, string(d.Name))
		if d.InputSchema == nil || d.Description == "" {
			t.Errorf("the definition is %+v", d)
		}
	}
	for _, name := range []string{"read", "bash", "run_python", "task", "every__echo"} {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") {
			t.Errorf("no %s in %q", name, names)
		}
	}
	known := []drawbridge.CardName{"every__echo", "bash"}
	if again, err := tools.Select(t.Context(), who, "something else", known); err != nil || again[0].Name != "every__echo" || again[1].Name != "bash" {
		t.Errorf("known tools lost their place: %v, %v", again[:2], err)
	}

	update := func(agent.CallUpdate) {}
	out, err := tools.Call(t.Context(), who, toolCall("read", `{"path":"a.txt"}`), update)
	if err != nil || !strings.Contains(out.Result.Text(), "hello") || out.Server != "drawbridge" || out.Tool != "read" {
		t.Errorf("read: %+v, %v", out, err)
	}
	if l := out.Label; l == nil || l.Integrity != "project" || l.Private || l.Kind != "file" || l.More != 0 {
		t.Errorf("the label after a file of the project: %+v", l)
	}
	if err := tools.Prompted(t.Context(), who, []drawbridge.MessagePart{{Text: "Read a.txt and echo ping."}}); err != nil {
		t.Fatal(err)
	}
	out, err = tools.Call(t.Context(), who, toolCall("every__echo", `{"text":"ping"}`), update)
	if err != nil || !strings.Contains(out.Result.Text(), "ping") || out.Server != "every" || out.Tool != "echo" {
		t.Errorf("echo: %+v, %v", out, err)
	}
	foreign := agent.RunLabel{Integrity: "untrusted", Kind: "result", Name: "every__echo", More: 1}
	if l := out.Label; l == nil || *l != foreign {
		t.Errorf("the label after a result that is not trusted: %+v", l)
	}
	if !strings.Contains(string(out.Result.Raw), "every") || out.Result.Text() == "ping" {
		t.Errorf("the text of a server is not marked as foreign: %s", out.Result.Raw)
	}
	_, err = tools.Call(t.Context(), who, toolCall("every__no", `{}`), update)
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.NotFound {
		t.Errorf("an unknown tool: %v", err)
	}
	who.Tools = [][]string{{"*"}, {"read"}}
	if _, err = tools.Call(t.Context(), who, toolCall("every__echo", `{"text":"ping"}`), update); err == nil {
		t.Error("a tool that the patterns leave out was called")
	}
	if some, err := tools.Select(t.Context(), who, "", nil); err != nil || len(some) != 1 {
		t.Errorf("the patterns permit %v, %v", some, err)
	}
}

// TestAgentOwnTools permits some of Drawbridge's own tools: others cannot be called, and not by a script either.
func TestAgentOwnTools(t *testing.T) {
	dir := t.TempDir()
	g := agentGateway(t, dir, row(t, "every", "everything"))
	tools := g.AgentTools("s1", AgentOptions{Dir: dir, OwnTools: []string{"Read", "run-python"}})
	defer tools.Close()
	who := agent.Identity{Session: "s1", Mode: agent.Bypass}
	all, err := tools.Select(t.Context(), who, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if !strings.HasPrefix(string(d.Name), "every__") && d.Name != "read" && d.Name != "run_python" {
			t.Errorf("%s is offered", d.Name)
		}
	}
	update := func(agent.CallUpdate) {}
	_, err = tools.Call(t.Context(), who, toolCall("bash", `{"command":"true"}`), update)
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.NotFound {
		t.Errorf("bash: %v", err)
	}
	out, err := tools.Call(t.Context(), who, toolCall("run_python", `{"code":"tools.call('bash', command='true')"}`), update)
	if errors.Is(err, sandbox.ErrNoInterpreter) {
		t.Skip(err)
	}
	if err != nil || !out.Result.IsError() || !strings.Contains(out.Result.Text(), "bash") {
		t.Errorf("a script calls bash: %s, %v", out.Result.Raw, err)
	}
}

// TestAgentIsNotToldOfHiddenServers briefs the agent of a server that a rule hides from it.
func TestAgentIsNotToldOfHiddenServers(t *testing.T) {
	home := t.TempDir()
	g := open(t, Config{Servers: []config.Server{row(t, "every", "everything")}, Dir: home,
		Rules: &drawbridge.Rules{Default: drawbridge.Allow, Rules: []drawbridge.Rule{{Effect: drawbridge.Deny, Servers: []string{"every"}, Kinds: []string{"agent"}}}},
		LookupEnv: func(name string) (string, bool) {
			v, ok := map[string]string{"HOME": home, "DRAWBRIDGE_KEYCHAIN": "off"}[name]
			return v, ok
		}})
	loaded(t, g)
	tools := g.AgentTools("s1", AgentOptions{})
	defer tools.Close()
	if b, err := tools.Brief(t.Context(), agent.Identity{Session: "s1", Mode: agent.AskFirst}, true); err != nil || len(b.Servers) > 0 {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestAgentApprovals asks the session's person before a file is written, with the exact arguments.
func TestAgentApprovals(t *testing.T) {
	dir := t.TempDir()
	g := agentGateway(t, dir)
	tools := g.AgentTools("s1", AgentOptions{Dir: dir})
	defer tools.Close()
	file := filepath.Join(dir, "new.txt")
	for _, c := range []struct {
		mode  agent.PermissionMode
		allow bool
		asked int
		wrote bool
	}{
		{agent.AskFirst, false, 1, false},
		{agent.AskFirst, true, 1, true},
		{agent.AcceptEdits, false, 0, true},
		{agent.PlanOnly, true, 0, false},
		{agent.Bypass, false, 0, true},
	} {
		_ = os.Remove(file) // it need not exist
		asked, text := 0, fmt.Sprintf("text of %s %t", c.mode, c.allow)
		_, err := tools.Call(t.Context(), agent.Identity{Session: "s1", Mode: c.mode},
			toolCall("write", `{"path":"new.txt","content":"`+text+`"}`), func(u agent.CallUpdate) {
				if u.Question == nil {
					return
				}
				asked++
				if u.Question.Tool != "write" || !strings.Contains(string(u.Question.Arguments), text) {
					t.Errorf("the question is %+v", u.Question)
				}
				if err := tools.Answer(t.Context(), agent.Answer{ID: u.Question.ID, Allow: c.allow}); err != nil {
					t.Error(err)
				}
			})
		_, statErr := os.Stat(file)
		if asked != c.asked || (statErr == nil) != c.wrote || (err == nil) != c.wrote {
			t.Errorf("%s, answer %t: asked %d times, written %t, %v", c.mode, c.allow, asked, statErr == nil, err)
		}
	}
}

// TestAgentTask asks the session to run a sub-agent, through the card task.
func TestAgentTask(t *testing.T) {
	g := agentGateway(t, t.TempDir(), row(t, "every", "everything"))
	tools := g.AgentTools("s1", AgentOptions{})
	defer tools.Close()
	who := agent.Identity{Session: "s1", Mode: agent.AskFirst}
	out, err := tools.Call(t.Context(), who, toolCall("task", `{"objective":"count"}`), func(u agent.CallUpdate) {
		if u.Task == nil || u.Task.Objective != "count" {
			t.Errorf("the update is %+v", u)
			return
		}
		if err := tools.Answer(t.Context(), agent.Answer{ID: u.Task.ID, Content: json.RawMessage(`{"report":"three"}`)}); err != nil {
			t.Error(err)
		}
	})
	if err != nil || !strings.Contains(out.Result.Text(), "three") {
		t.Errorf("%s, %v", out.Result.Raw, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := tools.Call(ctx, who, toolCall("task", `{"objective":"count"}`), func(agent.CallUpdate) { cancel() }); err == nil {
		t.Error("a cancelled task was answered")
	}
	result, err := g.Deck().Call(t.Context(), drawbridge.Call{Caller: g.Owner(), Params: json.RawMessage(`{"name":"task","arguments":{"objective":"count"}}`)})
	if err == nil && !result.IsError() {
		t.Errorf("a caller without a session: %s", result.Raw)
	}
}

// TestBriefingNamesServersThatStart has a server that never answers: it is awaited, and the wait ends with its context.
func TestBriefingNamesServersThatStart(t *testing.T) {
	home := t.TempDir()
	g := open(t, Config{Servers: []config.Server{row(t, "mute", "hang")}, Dir: home, LookupEnv: func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": home, "DRAWBRIDGE_KEYCHAIN": "off", "XDG_CACHE_HOME": cacheDir(t)}[name]
		return v, ok
	}})
	tools := g.AgentTools("s1", AgentOptions{Dir: home})
	defer tools.Close()
	who := agent.Identity{Session: "s1", Mode: agent.Bypass}
	if b, err := tools.Brief(t.Context(), who, false); err != nil || len(b.Servers) != 1 || !b.Servers[0].Waiting {
		t.Errorf("%+v, %v", b, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tools.Brief(ctx, who, true); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
