//go:build peers

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestACP has the official SDK of the Agent Client Protocol hold sessions with a model that a test serves. The SDK checks
// each message against the schema of the protocol.
func TestACP(t *testing.T) {
	t.Parallel()
	module(t, "@agentclientprotocol/sdk/package.json")
	model := httptest.NewServer(http.HandlerFunc(playModel))
	t.Cleanup(model.Close)
	home, work := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "drawbridge"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("[agent]\nmodel = \"test/scripted\"\n[models.providers.test]\nbase_url = %q\n"+
		"[models.providers.test.models.scripted]\nwindow = 32768\n[models.providers.test.models.other]\nwindow = 4096\n",
		model.URL+"/v1")
	if err := os.WriteFile(filepath.Join(home, "drawbridge", "drawbridge.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(limit(t, 2*time.Minute), node, filepath.Join("clients", "acp.mjs"), work, drawbridge, "acp")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	var got acpStory
	decode(t, stdout.Bytes(), &got)
	for what, pair := range map[string][2]string{
		"write": {got.Write.StopReason, "end_turn"}, "turn": {got.Turn.StopReason, "end_turn"},
		"other model": {got.Other.StopReason, "end_turn"}, "slow": {got.Slow.StopReason, "cancelled"},
		"mode of the loaded session": {got.Load.Modes.CurrentModeID, "plan"},
		"unknown session":            {got.Unknown, "no session none was held in this directory"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %q, want %q", what, pair[0], pair[1])
		}
	}
	checkACPOptions(t, got.Options, "test/scripted", "default")
	checkACPOptions(t, got.Model.ConfigOptions, "test/other", "default")
	checkACPOptions(t, got.Thinking.ConfigOptions, "test/other", "low")
	if l := got.List.Sessions; len(l) != 1 || l[0].Cwd != work || l[0].Title != "write the file" {
		t.Errorf("the list is %+v", l)
	}
	checkACPShown(t, got, work)
	if bytes.Contains(stdout.Bytes(), []byte("hidden")) {
		t.Error("the secret of the editor's server is shown")
	}
	if text, err := os.ReadFile(filepath.Join(work, "out.txt")); err != nil || string(text) != "hi" {
		t.Errorf("the file has %q, %v", text, err)
	}
	var replay []string
	for _, u := range got.Replay {
		if u.SessionUpdate != "available_commands_update" && u.SessionUpdate != "usage_update" { // they follow the response
			replay = append(replay, u.SessionUpdate)
		}
	}
	if want := "user_message_chunk tool_call tool_call_update agent_message_chunk user_message_chunk agent_message_chunk user_message_chunk " +
		"agent_message_chunk user_message_chunk"; strings.Join(replay, " ") != want {
		t.Errorf("the replay is %s, want %s", replay, want)
	}
	if got.Exit != 0 {
		t.Errorf("the agent ended with exit code %d\n%s", got.Exit, stderr.Bytes())
	}
}

// An acpStory is what the client saw.
type acpStory struct {
	Write, Turn, Slow, Other struct{ StopReason string }
	Options                  []acpOption
	Model, Thinking          struct{ ConfigOptions []acpOption }
	List                     struct {
		Sessions []struct{ SessionID, Cwd, Title string }
	}
	Asked []struct {
		ToolCall struct{ RawInput, Content json.RawMessage }
	}
	Updates, Replay []struct {
		SessionUpdate, Status string
		Content               json.RawMessage
		Size                  int
	}
	Load struct {
		Modes struct{ CurrentModeID string }
	}
	Unknown string
	Exit    int
}

// checkACPShown checks what the client was asked and shown in a working directory.
func checkACPShown(t *testing.T, got acpStory, work string) {
	t.Helper()
	if len(got.Asked) != 1 || string(got.Asked[0].ToolCall.RawInput) != `{"path":"out.txt","content":"hi"}` {
		t.Errorf("the client was asked %+v", got.Asked)
	}
	var shown []string
	windows := map[int]bool{}
	for _, u := range got.Updates {
		shown = append(shown, string(u.Content))
		windows[u.Size] = true
	}
	change := fmt.Sprintf(`{"path":%q,"newText":"hi","type":"diff"}`, filepath.Join(work, "out.txt"))
	all := strings.Join(shown, "\n")
	if strings.Count(all, change) < 2 || len(got.Asked) == 1 && !strings.Contains(string(got.Asked[0].ToolCall.Content), change) {
		t.Errorf("the change %s is not shown twice, or not asked for: %s\n%+v", change, all, got.Asked)
	}
	if !strings.Contains(all, "are not used (of-the-editor)") {
		t.Errorf("the server of the editor is not named: %s", all)
	}
	if !windows[32768] || !windows[4096] {
		t.Errorf("the windows of both models are not shown: %v", windows)
	}
}

// An acpOption is a setting of a session.
type acpOption struct {
	ID, CurrentValue string
	Options          []struct{ Value string }
}

// checkACPOptions checks the values of the settings model and thinking, and that each setting can be set to its value.
func checkACPOptions(t *testing.T, all []acpOption, model, thinking string) {
	t.Helper()
	now := map[string]string{}
	for _, o := range all {
		if slices.ContainsFunc(o.Options, func(v struct{ Value string }) bool { return v.Value == o.CurrentValue }) {
			now[o.ID] = o.CurrentValue
		}
	}
	if now["mode"] != "default" || now["model"] != model || now["thinking"] != thinking {
		t.Errorf("the settings are %+v, want the model %s and %s", all, model, thinking)
	}
}

// playModel is a model with the API Chat Completions. It writes a file if it is asked to, never ends if the prompt is
// "slow", and else answers with a text.
func playModel(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		_, _ = io.WriteString(w, `{"data":[{"id":"scripted"},{"id":"other"}]}`)
		return
	}
	var request struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if json.NewDecoder(r.Body).Decode(&request) != nil || len(request.Messages) == 0 {
		http.Error(w, "not a request", http.StatusBadRequest)
		return
	}
	last := request.Messages[len(request.Messages)-1]
	asked := func(word string) bool { return last.Role == "user" && bytes.Contains(last.Content, []byte(word)) }
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(choice string) { _, _ = io.WriteString(w, `data: {"choices":[{"index":0,`+choice+"}]}\n\n") }
	switch {
	case asked("write the file"):
		send(`"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"write",` +
			`"arguments":"{\"path\":\"out.txt\",\"content\":\"hi\"}"}}]}`)
		send(`"delta":{},"finish_reason":"tool_calls"`)
	case asked("slow"):
		send(`"delta":{"content":"begins"}`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	default:
		send(`"delta":{"content":"done"}`)
		send(`"delta":{},"finish_reason":"stop"`)
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}
