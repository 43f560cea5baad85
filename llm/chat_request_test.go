package llm_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/llm"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// history is a conversation with everything that a request may have, and with mistakes that must not reach a provider.
// It continues an answer of the model.
func history(answer drawbridge.ModelResponse) drawbridge.ModelRequest {
	r := ask()
	calls := answer.Message.ToolCalls()
	r.Messages = []drawbridge.Message{
		{Role: drawbridge.UserRole, Parts: []drawbridge.MessagePart{{Text: "Look at this."}, {Text: "  "},
			{Image: &drawbridge.Image{MIMEType: "image/png", Data: []byte("png")}}}},
		{Role: drawbridge.AssistantRole, Parts: []drawbridge.MessagePart{
			{Thinking: &drawbridge.Thinking{Text: "foreign", Provider: json.RawMessage(`{"signature":"foreign"}`), Model: "other/model"}},
			{Text: "I call."},
			{ToolCall: &drawbridge.ToolCall{ID: "functions.fs:0", Name: "fs read", Arguments: json.RawMessage(`{"path": "a`),
				Provider: json.RawMessage(`{"thoughtSignature":"foreign"}`), Model: "other/model"}},
			{ToolCall: &drawbridge.ToolCall{ID: "lost", Name: "fs__list"}}}},
		{Role: drawbridge.UserRole, Parts: []drawbridge.MessagePart{
			{ToolResult: &drawbridge.ToolResult{CallID: "functions.fs:0", Name: "fs read", Text: "no such tool", IsError: true}}}},
		drawbridge.NewUserMessage("Go on."),
		answer.Message,
		{Role: drawbridge.UserRole, Parts: []drawbridge.MessagePart{
			{Text: "Faster!"},
			{ToolResult: &drawbridge.ToolResult{CallID: calls[1].ID, Name: calls[1].Name, Text: "b <is> here",
				Images: []drawbridge.Image{{MIMEType: "image/jpeg", Data: []byte("jpg")}}}},
			{ToolResult: &drawbridge.ToolResult{CallID: calls[0].ID, Name: calls[0].Name, Text: "a"}}}},
	}
	r.Thinking, r.MaxOutput = drawbridge.ThinkingHigh, 9000
	return r
}

// TestChatRequests compares whole requests with golden files.
func TestChatRequests(t *testing.T) {
	for _, kind := range chatKinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files := chatFiles(t, kind)
				s := serveChat(t, kind, streams(files["calls"]), streams(files["text"]))
				m := s.model()
				answer, err := m.Generate(t.Context(), ask(), nil)
				if err != nil {
					t.Fatal(err)
				}
				raw, _ := json.Marshal(answer.Message) // it survives being stored
				answer.Message = drawbridge.Message{}
				if err := json.Unmarshal(raw, &answer.Message); err != nil {
					t.Fatal(err)
				}
				if _, err := m.Generate(t.Context(), history(answer), nil); err != nil {
					t.Fatal(err)
				}
				sent := s.requests()[1]
				body := sent.body
				if kind == llm.KindGemini { // Gemini sends no IDs, and gets none
					for i, c := range answer.Message.ToolCalls() {
						body = strings.ReplaceAll(body, c.ID, []string{"ID0", "ID1"}[i])
					}
				}
				got := "POST " + sent.path + "\n" + indented(t, body) + "\n"
				path := filepath.Join("testdata", "chat", kind+".request")
				if *update {
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Error(path, diff)
				}
			})
		})
	}
}

// TestPrefixIsAppendOnly shows that a request begins with the bytes of the request before it, but for the marks of the
// cache: what a provider has cached stays valid.
func TestPrefixIsAppendOnly(t *testing.T) {
	for _, kind := range chatKinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files := chatFiles(t, kind)
				s := serveChat(t, kind, streams(files["calls"]), streams(files["text"]))
				m, r := s.model(), ask()
				answer, err := m.Generate(t.Context(), r, nil)
				if err != nil {
					t.Fatal(err)
				}
				results := drawbridge.Message{Role: drawbridge.UserRole}
				for _, c := range answer.Message.ToolCalls() {
					results.Parts = append(results.Parts, drawbridge.MessagePart{ToolResult: &drawbridge.ToolResult{
						CallID: c.ID, Name: c.Name, Text: "x"}})
				}
				r.Messages = append(r.Messages, answer.Message, results)
				if _, err := m.Generate(t.Context(), r, nil); err != nil {
					t.Fatal(err)
				}
				first, second := conversation(t, s.requests()[0].body), conversation(t, s.requests()[1].body)
				if !strings.HasPrefix(second, first) || len(second) <= len(first) {
					t.Errorf("the second request does not begin with the first:\n%s\n%s", first, second)
				}
			})
		})
	}
}

// conversation returns the tools, the instructions and the messages of a request, without the end of the list of
// messages and without marks of the cache.
func conversation(t *testing.T, body string) string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, name := range []string{"tools", "system", "instructions", "systemInstruction", "messages", "input", "contents"} {
		out.Write(all[name])
	}
	text := strings.ReplaceAll(out.String(), `,"cache_control":{"type":"ephemeral"}`, "")
	return strings.TrimSuffix(text, "]")
}

// TestMarksOfTheCache shows that Anthropic's prefix is marked in at most four places: at the last tool, the
// instructions, and the last two messages of the user.
func TestMarksOfTheCache(t *testing.T) {
	raw, err := os.ReadFile("testdata/chat/anthropic.request")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(raw), "\n")
	var body struct {
		Tools, System []struct {
			Cache any `json:"cache_control"`
		}
		Messages []struct {
			Role    string
			Content []struct {
				Cache any `json:"cache_control"`
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	var marked []string
	for i, tool := range body.Tools {
		if tool.Cache != nil && i == len(body.Tools)-1 {
			marked = append(marked, "last tool")
		}
	}
	if body.System[0].Cache != nil {
		marked = append(marked, "instructions")
	}
	for i, m := range body.Messages {
		for j, c := range m.Content {
			if c.Cache != nil && j == len(m.Content)-1 && i >= len(body.Messages)-3 {
				marked = append(marked, m.Role)
			}
		}
	}
	if diff := cmp.Diff([]string{"last tool", "instructions", "user", "user"}, marked); diff != "" ||
		strings.Count(text, "ephemeral") != 4 {
		t.Error(diff, strings.Count(text, "ephemeral"))
	}
}

// TestThinkingLevels shows how much each kind is asked to think at each level.
func TestThinkingLevels(t *testing.T) {
	levels := []drawbridge.ThinkingLevel{"", drawbridge.ThinkingOff, drawbridge.ThinkingMinimal, drawbridge.ThinkingMedium,
		drawbridge.ThinkingXHigh}
	for _, tt := range []struct {
		kind, model string
		want        []string
	}{
		{llm.KindAnthropic, "claude-sonnet-5", []string{"null null", `{"type":"disabled"} null`,
			`{"type":"adaptive","display":"summarized"} {"effort":"low"}`,
			`{"type":"adaptive","display":"summarized"} {"effort":"medium"}`,
			`{"type":"adaptive","display":"summarized"} {"effort":"max"}`}},
		{llm.KindAnthropic, "claude-haiku-4-5", []string{"null null", `{"type":"disabled"} null`,
			`{"type":"enabled","budget_tokens":1024} null`, `{"type":"enabled","budget_tokens":10000} null`,
			`{"type":"enabled","budget_tokens":18048} null`}},
		{llm.KindOpenAI, "gpt-5", []string{`{"summary":"auto"}`, `{"effort":"minimal","summary":"auto"}`,
			`{"effort":"minimal","summary":"auto"}`, `{"effort":"medium","summary":"auto"}`,
			`{"effort":"high","summary":"auto"}`}},
		{llm.KindOpenAI, "gpt-4.1", []string{"null", "null", "null", "null", "null"}},
		{llm.KindOpenAIChat, "qwen3:32b", []string{"null", `"none"`, `"low"`, `"medium"`, `"high"`}},
		{llm.KindGemini, "gemini-3.8-flash", []string{`{"includeThoughts":true}`, `{"thinkingLevel":"minimal"}`,
			`{"includeThoughts":true,"thinkingLevel":"minimal"}`, `{"includeThoughts":true,"thinkingLevel":"medium"}`,
			`{"includeThoughts":true,"thinkingLevel":"high"}`}},
		{llm.KindGemini, "gemini-2.5-flash", []string{`{"includeThoughts":true}`, `{"thinkingBudget":0}`,
			`{"includeThoughts":true,"thinkingBudget":512}`, `{"includeThoughts":true,"thinkingBudget":8192}`,
			`{"includeThoughts":true,"thinkingBudget":24576}`}},
	} {
		t.Run(tt.model, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serveChat(t, tt.kind, streams(chatFiles(t, tt.kind)["text"]))
				m, err := s.models.Find(t.Context(), "p/"+tt.model)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for i, level := range levels {
					r := ask()
					r.Thinking = level
					if _, err := m.Generate(t.Context(), r, nil); err != nil {
						t.Fatal(err)
					}
					got = append(got, thinkingOf(t, tt.kind, s.requests()[i].body))
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// thinkingOf returns the members of a request that say how much the model thinks.
func thinkingOf(t *testing.T, kind, body string) string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	member := func(m map[string]json.RawMessage, name string) string {
		if m[name] == nil {
			return "null"
		}
		return string(m[name])
	}
	switch kind {
	case llm.KindAnthropic:
		return member(all, "thinking") + " " + member(all, "output_config")
	case llm.KindOpenAI:
		return member(all, "reasoning")
	case llm.KindOpenAIChat:
		return member(all, "reasoning_effort")
	}
	var config map[string]json.RawMessage
	_ = json.Unmarshal(all["generationConfig"], &config)
	return member(config, "thinkingConfig")
}
