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
		"[models.providers.test.models.scripted]\nwindow = 32768\n", model.URL+"/v1")
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
	var got struct {
		Write, Turn, Slow struct{ StopReason string }
		Asked             []struct {
			ToolCall struct{ RawInput json.RawMessage }
		}
		Updates, Replay []struct{ SessionUpdate, Status string }
		Load            struct {
			Modes struct{ CurrentModeID string }
		}
		Unknown string
		Exit    int
	}
	decode(t, stdout.Bytes(), &got)
	for what, pair := range map[string][2]string{
		"write": {got.Write.StopReason, "end_turn"}, "turn": {got.Turn.StopReason, "end_turn"},
		"slow": {got.Slow.StopReason, "cancelled"}, "mode of the loaded session": {got.Load.Modes.CurrentModeID, "plan"},
		"unknown session": {got.Unknown, "no session none was held in this directory"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %q, want %q", what, pair[0], pair[1])
		}
	}
	if len(got.Asked) != 1 || string(got.Asked[0].ToolCall.RawInput) != `{"path":"out.txt","content":"hi"}` {
		t.Errorf("the client was asked %+v", got.Asked)
	}
	if text, err := os.ReadFile(filepath.Join(work, "out.txt")); err != nil || string(text) != "hi" {
		t.Errorf("the file has %q, %v", text, err)
	}
	var replay []string
	for _, u := range got.Replay {
		if u.SessionUpdate != "available_commands_update" { // it follows the response
			replay = append(replay, u.SessionUpdate)
		}
	}
	if want := "user_message_chunk tool_call tool_call_update agent_message_chunk user_message_chunk agent_message_chunk " +
		"user_message_chunk"; strings.Join(replay, " ") != want {
		t.Errorf("the replay is %s, want %s", replay, want)
	}
	if got.Exit != 0 {
		t.Errorf("the agent ended with exit code %d\n%s", got.Exit, stderr.Bytes())
	}
}

// playModel is a model with the API Chat Completions. It writes a file if it is asked to, never ends if the prompt is
// "slow", and else answers with a text.
func playModel(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		_, _ = io.WriteString(w, `{"data":[{"id":"scripted"}]}`)
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
