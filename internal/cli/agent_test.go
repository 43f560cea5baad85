//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// A fakeModel is a provider of the API of Chat Completions. reply returns the text, or the name and the arguments of a
// call, for the last message of a request.
type fakeModel struct {
	mu       sync.Mutex
	reply    func(role, text string) (answer, tool, arguments string)
	requests []string
}

// answersWith makes reply the answer to the requests that follow.
func (m *fakeModel) answersWith(reply func(role, text string) (answer, tool, arguments string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reply = reply
}

func (m *fakeModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"tiny","object":"model"}]}`)
		return
	}
	var request struct {
		Messages []struct {
			Role    string
			Content any
		}
		Tools []json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	raw, err := json.Marshal(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.requests = append(m.requests, string(raw))
	reply := m.reply
	m.mu.Unlock()
	last := request.Messages[len(request.Messages)-1]
	answer, tool, arguments := reply(last.Role, fmt.Sprint(last.Content))
	type object = map[string]any
	var deltas []object
	end := "stop"
	if tool != "" {
		end = "tool_calls"
		deltas = append(deltas, object{"tool_calls": []any{object{"index": 0, "id": "call-" + tool, "type": "function",
			"function": object{"name": tool, "arguments": arguments}}}})
	}
	for word := range strings.SplitAfterSeq(answer, " ") {
		deltas = append(deltas, object{"content": word})
	}
	writeStream(w, end, deltas...)
}

// writeStream writes the answer of a model in parts, as a Chat Completions server does. end is why it ends.
func writeStream(w http.ResponseWriter, end string, deltas ...map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	type object = map[string]any
	send := func(v any) {
		if line, err := json.Marshal(v); err == nil {
			fmt.Fprintf(w, "data: %s\n\n", line)
		}
	}
	chunk := func(delta object, end any) {
		send(object{"id": "1", "object": "chat.completion.chunk", "choices": []any{object{"index": 0, "delta": delta, "finish_reason": end}}})
	}
	for _, delta := range deltas {
		chunk(delta, nil)
	}
	chunk(object{}, end)
	send(object{"id": "1", "object": "chat.completion.chunk", "choices": []any{}, "usage": object{"prompt_tokens": 100, "completion_tokens": 10}})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// seen returns the requests to the model.
func (m *fakeModel) seen() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string{}, m.requests...)
}

// agentHome writes a configuration with one server and one provider of a model, and returns the model.
func agentHome(t *testing.T, home string) *fakeModel {
	t.Helper()
	m := &fakeModel{reply: func(role, text string) (answer, tool, arguments string) {
		switch {
		case role == "user" && strings.HasPrefix(text, "write"):
			return "", "write", `{"path":"note.txt","content":"from the agent\n"}`
		case role == "user" && strings.HasPrefix(text, "echo"):
			return "", "every__echo", `{"text":"ping"}`
		}
		return "the answer to: " + text, "", ""
	}}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(home, ".config", "drawbridge")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"mcp.json": fmt.Sprintf(`{"servers": {"every": {"command": %q, "env": {%q: "everything"}}}}`, self, mcptest.ServerVariable),
		"drawbridge.toml": fmt.Sprintf("[agent]\nmodel = \"fake/tiny\"\n[models.providers.fake]\nkind = \"openai-chat\"\nbase_url = %q\n",
			server.URL+"/v1"),
	} {
		if err := os.WriteFile(filepath.Join(config, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestOnePrompt runs prompts with --print, with the tools of a gateway of the command, and with those of the hub.
func TestOnePrompt(t *testing.T) {
	for _, place := range []string{"own", "hub"} {
		t.Run(place, func(t *testing.T) {
			d := newDesk(t)
			m := agentHome(t, d.home)
			if place == "hub" {
				d.startHub()
			}
			out, _ := d.run(0, "-p", "hello there")
			if out != "the answer to: hello there\n" {
				t.Errorf("%q", out)
			}
			if first := m.seen()[0]; !strings.Contains(first, `"every__echo"`) || !strings.Contains(first, `"run_python"`) {
				t.Errorf("the model is offered %.3000s", first)
			}
			out, stderr := d.run(0, "-p", "write a note")
			if !strings.Contains(out, "said no") || !strings.Contains(stderr, "write was refused: with --print") {
				t.Errorf("a call that needs a person: %q %q", out, stderr)
			}
			out, _ = d.run(0, "-p", "--permission-mode", "bypass", "echo something")
			if !strings.Contains(out, "ping") {
				t.Errorf("the tool of a server: %q", out)
			}
			out, _ = d.run(0, "-p", "--permission-mode", "acceptEdits", "write a note")
			text, err := os.ReadFile(filepath.Join(d.project, "note.txt"))
			if err != nil || string(text) != "from the agent\n" || !strings.Contains(out, "note.txt") {
				t.Errorf("%q, %v, %q", text, err, out)
			}
			d.write("project/a.txt", "attached text")
			if out, _ = d.run(0, "-p", "read this", "@a.txt"); !strings.Contains(out, `<file path="a.txt">`) || !strings.Contains(out, "attached text") {
				t.Errorf("an attached file: %q", out)
			}
			var answer struct{ SessionID, Outcome, Text string }
			out, _ = d.run(0, "-p", "--output-format", "json", "hello again")
			if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Outcome != "completed" || answer.Text != "the answer to: hello again" {
				t.Errorf("%q, %v", out, err)
			}
			d.run(0, "-p", "--resume", answer.SessionID, "and now")
			if last := m.seen()[len(m.seen())-1]; !strings.Contains(last, "hello again") || !strings.Contains(last, "and now") {
				t.Errorf("the resumed session has %.2000s", last)
			}
			d.run(0, "-p", "-c", "still there")
			if last := m.seen()[len(m.seen())-1]; !strings.Contains(last, "and now") {
				t.Errorf("the continued session has %.2000s", last)
			}
			out, _ = d.run(0, "-p", "--no-tools", "--output-format", "stream-json", "hello")
			if !strings.Contains(out, `{"type":"run_started"`) || !strings.Contains(out, `"outcome":"completed"`) {
				t.Errorf("the events are %q", out)
			}
		})
	}
}

// TestPlanWithPrint has a model present a plan where no person can be asked: it is refused, and the model learns why.
func TestPlanWithPrint(t *testing.T) {
	for _, place := range []string{"own", "hub"} {
		t.Run(place, func(t *testing.T) {
			d := newDesk(t)
			agentHome(t, d.home).answersWith(func(role, text string) (answer, tool, arguments string) {
				if role == "user" {
					return "", "exit_plan_mode", `{"plan":"1. Write."}`
				}
				return "the answer to: " + text, "", ""
			})
			if place == "hub" {
				d.startHub()
			}
			out, stderr := d.run(0, "-p", "--permission-mode", "plan", "make a plan")
			if !strings.Contains(out, "not approved: with --print, no person can be asked") || !strings.Contains(stderr, "the plan was not approved: with --print") {
				t.Errorf("%q %q", out, stderr)
			}
		})
	}
}

// TestPromptsThatCannotRun have an error that says what to do.
func TestPromptsThatCannotRun(t *testing.T) {
	d := newDesk(t)
	agentHome(t, d.home)
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{2, "--print needs a prompt", []string{"-p"}},
		{2, "NotFound", []string{"-p", "@missing.txt"}},
		{2, "NotFound", []string{"-p", "look at @missing.txt"}},
		{2, "Unsupported", []string{"-p", "@."}},
		{2, "no session was held", []string{"-p", "-c", "x"}},
		{2, "no session nothing was held", []string{"-p", "-r", "nothing", "x"}},
		{2, "--output-format is text", []string{"-p", "--output-format", "xml", "x"}},
		{2, "is not a directory", []string{"-p", "--cwd", "missing", "x"}},
		{2, "--permission-mode is", []string{"-p", "--permission-mode", "none", "x"}},
		{1, "a session needs a terminal", []string{"-i"}},
		{2, "unknown command", []string{"nonsense"}},
	} {
		if _, stderr := d.run(c.code, c.args...); !strings.Contains(stderr, c.want) {
			t.Errorf("%q: %q", c.args, stderr)
		}
	}
	d.write(".config/drawbridge/drawbridge.toml", "")
	if _, stderr := d.run(1, "-p", "hello"); !strings.Contains(stderr, "ANTHROPIC_API_KEY") || !strings.Contains(stderr, "drawbridge secret") {
		t.Errorf("without a key: %q", stderr)
	}
}

// TestASessionAtTheTerminal answers an approval, uses commands and ends with Ctrl-C twice.
func TestASessionAtTheTerminal(t *testing.T) {
	dir := t.TempDir()
	agentHome(t, filepath.Join(dir, "home"))
	c := atTerminal(t, dir, "-i", "--plain", "write a note")
	c.see(`"content": "from the agent\n"`)
	c.answer("Type y for once, a for this session, n to deny.", "n")
	c.see("said no")
	c.answer("Ready.", "write it again")
	c.answer("Type y for once, a for this session, n to deny.", "a")
	c.see("Saved")
	c.answer("Ready.", "/cost")
	c.answer("tokens", "/mcp list")
	c.answer("every", "/nonsense")
	c.answer("unknown command: /nonsense", "/quit")
	if screen, code := c.ends(); code != 0 {
		t.Errorf("%d %s", code, screen)
	}
}

// TestSamplingInASession has a server ask the session's model; the person sees who asks, and says yes.
func TestSamplingInASession(t *testing.T) {
	dir := t.TempDir()
	m := agentHome(t, filepath.Join(dir, "home"))
	m.answersWith(func(role, text string) (answer, tool, arguments string) {
		if role == "user" && strings.HasPrefix(text, "ask") {
			return "", "every__ask-sampling", `{"prompt":"what now"}`
		}
		return "the answer to: " + text, "", ""
	})
	c := atTerminal(t, dir, "-i", "--plain", "--permission-mode", "bypass", "ask the model")
	c.see("every")
	c.see("not verified")
	c.answer("Type y", "y")
	c.see("Tool ok: every__ask-sampling")
	c.answer("Ready.", "/quit")
	if screen, code := c.ends(); code != 0 {
		t.Errorf("%d %s", code, screen)
	}
}
