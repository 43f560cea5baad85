//go:build peers

package interop

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	root "github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/llm"
)

// aimock starts other people's fake of all providers with the answers of a script, and gives its address.
func aimock(t *testing.T, answers string) string {
	t.Helper()
	module(t, "@copilotkit/aimock/package.json")
	script, err := filepath.Abs(answers)
	if err != nil {
		t.Fatal(err)
	}
	said, port := first(func(line string) (string, bool) { return strings.CutPrefix(line, "loopback port ") })
	p := start(t, exec.Command(node, script), nil, said)
	return "http://127.0.0.1:" + await(t, p, port, "its port")
}

// TestLanguageModels has turns with the four APIs as other people implemented them: a text, thinking, a loop of calls,
// a stream that is cut, and a rate limit.
func TestLanguageModels(t *testing.T) {
	t.Parallel()
	for kind, name := range map[string]string{llm.KindAnthropic: "claude-sonnet-5", llm.KindOpenAI: "gpt-5",
		llm.KindOpenAIChat: "gpt-5", llm.KindGemini: "gemini-3.8-flash"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			models, err := llm.OpenChatModels(llm.ChatOptions{Providers: []config.ModelProvider{{Name: "p", Kind: kind,
				BaseURL: aimock(t, "aimock.mjs"), Key: config.SecretRef{Parts: []config.ValuePart{{Text: "key"}}}}}})
			if err != nil {
				t.Fatal(err)
			}
			defer models.Close()
			m, err := models.Find(t.Context(), "p/"+name)
			if err != nil {
				t.Fatal(err)
			}
			haveTurns(t, m)
		})
	}
}

// haveTurns has a turn of each sort.
func haveTurns(t *testing.T, m *llm.ChatModel) {
	shown := ""
	ask := func(messages ...root.Message) (root.ModelResponse, error) {
		shown = ""
		return m.Generate(limit(t, time.Minute), root.ModelRequest{Instructions: "Be brief.", Messages: messages,
			Thinking: root.ThinkingLow, Tools: []root.ToolDefinition{{Name: "fs__read", Description: "Reads a file.",
				InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}}},
			func(d root.ModelDelta) {
				if shown += d.Text; d.Retry != nil {
					shown = ""
				}
			})
	}
	r, err := ask(root.NewUserMessage("Hello"))
	if err != nil || r.Message.Text() != "Hello, wörld. How are you?" || shown != r.Message.Text() || r.Stop != root.StopEnd ||
		r.Usage.Input == 0 || r.Usage.Output == 0 {
		t.Errorf("a text: %+v, shown %q, %v", r, shown, err)
	}
	r, err = ask(root.NewUserMessage("Think"))
	thought := ""
	for _, p := range r.Message.Parts {
		if p.Thinking != nil {
			thought += p.Thinking.Text
		}
	}
	if err != nil || thought != "Six times seven." || r.Message.Text() != "It is 42." {
		t.Errorf("thinking: %+v %v", r, err)
	}

	question := root.NewUserMessage("Read both")
	r, err = ask(question)
	calls := r.Message.ToolCalls()
	if err != nil || r.Stop != root.StopToolCalls || len(calls) != 2 || calls[0].ID == calls[1].ID {
		t.Fatalf("calls: %+v %v", r, err)
	}
	results := root.Message{Role: root.UserRole}
	for i, c := range calls {
		var arguments struct{ Path string }
		if err := json.Unmarshal(c.Arguments, &arguments); err != nil || arguments.Path != []string{"a.txt", "b.txt"}[i] ||
			c.Name != "fs__read" {
			t.Errorf("call %d: %+v %v", i, c, err)
		}
		results.Parts = append(results.Parts, root.MessagePart{ToolResult: &root.ToolResult{CallID: c.ID, Name: c.Name,
			Text: "empty"}})
	}
	r, err = ask(question, r.Message, results)
	if err != nil || r.Message.Text() != "Both files are empty." {
		t.Errorf("after the calls: %+v %v", r, err)
	}

	r, err = ask(root.NewUserMessage("Once"))
	if err != nil || r.Message.Text() != "Now it works." {
		t.Errorf("a rate limit: %+v %v", r, err)
	}
	r, err = ask(root.NewUserMessage("Stop early"))
	if e, ok := errors.AsType[*root.ModelError](err); !ok || e.Code != root.ModelBroken && e.Code != root.ModelUnreachable {
		t.Errorf("a cut stream: %+v %v", r, err)
	}
}
