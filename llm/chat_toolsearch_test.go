package llm_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/llm"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestToolSearch compares requests with the documented form: those with the provider's own search for tools, and those
// of a provider that has none, or whose search is turned off.
func TestToolSearch(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/chat/toolsearch.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	on, off := true, false
	for _, tt := range []struct {
		kind     string
		wish     *bool
		searches bool
	}{
		{llm.KindAnthropic, &on, true},
		{llm.KindOpenAI, &on, true},
		{llm.KindAnthropic, &off, false},
		{llm.KindOpenAI, &off, false},
		{llm.KindAnthropic, nil, false}, // another address
		{llm.KindOpenAI, nil, false},
		{llm.KindOpenAIChat, &on, false},
		{llm.KindGemini, &on, false},
	} {
		stream := files[tt.kind+".stream"]
		if stream == "" {
			stream = chatFiles(t, tt.kind)["calls"]
		}
		s := serveChatWith(t, tt.kind, tt.wish, streams(stream), streams(chatFiles(t, tt.kind)["text"]))
		m := s.model()
		if m.Info().DeferredTools != tt.searches {
			t.Errorf("%s: the model searches: %t", tt.kind, m.Info().DeferredTools)
		}
		r := drawbridge.ModelRequest{Messages: []drawbridge.Message{drawbridge.NewUserMessage("The weather?")}, Tools: []drawbridge.ToolDefinition{
			{Name: "read", Description: "Reads.", InputSchema: json.RawMessage(`{"type":"object"}`)},
			{Name: "get_weather", Description: "The weather.", Deferred: true, InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)},
		}}
		var seen strings.Builder
		answer, err := m.Generate(t.Context(), r, func(d drawbridge.ModelDelta) { seen.WriteString(d.Text + d.Thinking) })
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(answer.Message) // it survives being stored
		if err != nil {
			t.Fatal(err)
		}
		var stored drawbridge.Message
		if err := json.Unmarshal(raw, &stored); err != nil {
			t.Fatal(err)
		}
		call := answer.Message.ToolCalls()[0]
		r.Messages = append(r.Messages, stored, drawbridge.Message{Role: drawbridge.UserRole, Parts: []drawbridge.MessagePart{
			{ToolResult: &drawbridge.ToolResult{CallID: call.ID, Name: call.Name, Text: "rain"}}}})
		if _, err := m.Generate(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		body := s.requests()[1].body
		if !tt.searches {
			if strings.Contains(body, "tool_search") || strings.Contains(body, "defer_loading") || strings.Contains(body, "The weather.") {
				t.Errorf("%s without a search: %s", tt.kind, body)
			}
			continue
		}
		checkToolSearch(t, tt.kind, s.requests()[1].body, files)
		if strings.Contains(seen.String(), "query") || call.Name != "get_weather" {
			t.Errorf("%s: shown %q, called %s", tt.kind, &seen, call.Name)
		}
		// A request without deferred tools has no search, and so nothing of an earlier one.
		r.Tools = r.Tools[:1]
		if _, err := m.Generate(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		if last := s.requests()[2].body; strings.Contains(last, "search_tool") || strings.Contains(last, "tool_search") {
			t.Errorf("%s without deferred tools: %s", tt.kind, last)
		}
	}
}

// checkToolSearch compares the tools and the answer of the model in a request with those of the documented form.
func checkToolSearch(t *testing.T, kind, body string, files map[string]string) {
	t.Helper()
	var sent map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &sent); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(indented(t, files[kind+".tools"]), indented(t, string(sent["tools"]))); diff != "" {
		t.Errorf("%s: tools (-want +got):\n%s", kind, diff)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(slices.Concat(sent["messages"], sent["input"]), &items); err != nil {
		t.Fatal(err)
	}
	got := items[1 : len(items)-1]
	if kind == llm.KindAnthropic {
		var message struct{ Content []json.RawMessage }
		if err := json.Unmarshal(items[1], &message); err != nil {
			t.Fatal(err)
		}
		got = message.Content
	}
	list, _ := json.Marshal(got)
	if diff := cmp.Diff(indented(t, files[kind+".answer"]), indented(t, string(list))); diff != "" {
		t.Errorf("%s: the answer is sent back as (-want +got):\n%s", kind, diff)
	}
}

// TestToolSearchByName holds for which models a provider's search is used without a setting.
func TestToolSearchByName(t *testing.T) {
	network := hosts{}
	for _, host := range []string{"api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "example.com"} {
		network[host] = func(*http.Request) (int, string) { return 500, "" }
	}
	models := openChat(t, map[string]string{"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "GEMINI_API_KEY": "g"}, llm.ChatOptions{
		Transport: network, Providers: []config.ModelProvider{{Name: "proxy", Kind: "anthropic", BaseURL: "https://example.com"}}})
	var got []string
	for _, name := range []string{"anthropic/claude-opus-4-5", "anthropic/claude-sonnet-5", "anthropic/claude-opus-4-1", "anthropic/claude-sonnet-4-20250514",
		"anthropic/claude-haiku-4-5", "anthropic/claude-3-7-sonnet", "openai/gpt-5.4", "openai/gpt-5.3", "openai/gpt-5", "openai/gpt-6-sol", "openai/o3",
		"openai/gpt-4.1", "gemini/gemini-3.8-flash", "proxy/claude-sonnet-5"} {
		m, err := models.Find(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Info().DeferredTools {
			got = append(got, name)
		}
	}
	if want := []string{"anthropic/claude-opus-4-5", "anthropic/claude-sonnet-5", "openai/gpt-5.4", "openai/gpt-6-sol"}; !slices.Equal(got, want) {
		t.Errorf("the models that search are %q", got)
	}
}
