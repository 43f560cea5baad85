package llm

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// recordedAnswer returns a recorded stream of a kind.
func recordedAnswer(t testing.TB, kind, name string) string {
	t.Helper()
	a, err := txtar.ParseFile("testdata/chat/" + kind + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	t.Fatal(kind, "has no", name)
	return ""
}

// readAnswer reads a stream. shown is what was emitted.
func readAnswer(kind, stream string) (r drawbridge.ModelResponse, shown drawbridge.ModelDelta, err error) {
	api, _ := chatAPIOf(kind)
	reader := api.reader(&answer{model: "p/m", usedIDs: map[string]bool{"used": true},
		emit: func(d drawbridge.ModelDelta) {
			shown.Text += d.Text
			shown.Thinking += d.Thinking
		},
		cardName: func(wire string) drawbridge.CardName { return drawbridge.CardName(wire) }})
	if err = readEvents(strings.NewReader(stream), reader); err != nil {
		return r, shown, err
	}
	r, err = reader.finish()
	return r, shown, err
}

var allKinds = []string{KindAnthropic, KindOpenAI, KindOpenAIChat, KindGemini}

// TestEveryCutIsAnError cuts each recorded stream at every byte. The rest is an error, or it is the whole answer: a cut
// behind its end loses nothing but the count of tokens.
func TestEveryCutIsAnError(t *testing.T) {
	for _, kind := range allKinds {
		for _, name := range []string{"text", "calls"} {
			stream := recordedAnswer(t, kind, name)
			whole, _, err := readAnswer(kind, stream)
			if err != nil {
				t.Fatal(kind, name, err)
			}
			for i := range len(stream) {
				part, _, err := readAnswer(kind, stream[:i])
				if err != nil {
					continue
				}
				if diff := cmp.Diff(withoutIDs(whole), withoutIDs(part)); diff != "" {
					t.Errorf("%s %s cut at %d is a success: %s", kind, name, i, diff)
				}
			}
		}
	}
}

// withoutIDs returns the message and the stop reason of an answer, without the IDs of its calls, which may be new ones.
func withoutIDs(r drawbridge.ModelResponse) (out struct {
	Parts []drawbridge.MessagePart
	Stop  drawbridge.StopReason
}) {
	out.Stop = r.Stop
	for _, p := range r.Message.Parts {
		if p.ToolCall != nil {
			call := *p.ToolCall
			call.ID = ""
			p.ToolCall = &call
		}
		out.Parts = append(out.Parts, p)
	}
	return out
}

// TestReadersOfOddEndpoints reads what endpoints send that differ from the one that defined the API.
func TestReadersOfOddEndpoints(t *testing.T) {
	whole := recordedAnswer(t, KindOpenAIChat, "whole")
	r, _, err := readAnswer(KindOpenAIChat, whole)
	calls := r.Message.ToolCalls()
	if err != nil || r.Stop != drawbridge.StopToolCalls || len(calls) != 2 ||
		string(calls[0].Arguments)+string(calls[1].Arguments) != `{"path":"a.txt"}{"path":"b.txt"}` {
		t.Error("whole calls with one index:", r, err)
	}
	for _, tt := range []struct{ name, kind, stream, text string }{
		{"no [DONE] and no last line end", KindOpenAIChat,
			`data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}`, "Hi"},
		{"a whole message", KindOpenAIChat,
			`data: {"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n\n", "Hi"},
		{"content in parts", KindOpenAIChat,
			`data: {"choices":[{"delta":{"content":[{"type":"text","text":"Hi"}]},"finish_reason":"stop"}]}` + "\n\n", "Hi"},
		{"another choice", KindOpenAIChat, `data: {"choices":[{"index":1,"delta":{"content":"No"}},` +
			`{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n\n", "Hi"},
		{"only the last event", KindOpenAI, `data: {"type":"response.completed","response":{"output":[` +
			`{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}}` + "\n\n", "Hi"},
		{"no announced items", KindOpenAI, `data: {"type":"response.output_text.delta","delta":"Hi"}` + "\n\n" +
			`data: {"type":"response.completed","response":{}}` + "\n\n", "Hi"},
		{"unknown events", KindAnthropic, "event: x\ndata: {\"type\":\"x\"}\n\n" + recordedAnswer(t, KindAnthropic, "text"),
			"Hello, wörld."},
	} {
		r, shown, err := readAnswer(tt.kind, tt.stream)
		if err != nil || r.Message.Text() != tt.text || shown.Text != tt.text {
			t.Errorf("%s: %+v %v", tt.name, r, err)
		}
	}
	for _, tt := range []struct{ kind, stream string }{
		{KindGemini, recordedAnswer(t, KindGemini, "badcall")},
		{KindGemini, `data: {"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]},"finishReason":"STOP"}]}`},
		{KindOpenAIChat, `data: [DONE]`},
		{KindOpenAIChat, `data: {"choices":[{"delta":{"content":"x"},"finish_reason":"error"}]}`},
		{KindOpenAI, `data: {"type":"response.failed","response":{}}`},
		{KindOpenAI, `data: {"type":"error","code":"rate_limit_exceeded","message":"m"}`},
	} {
		if r, _, err := readAnswer(tt.kind, tt.stream+"\n\n"); err == nil {
			t.Errorf("%s: %s is a success: %+v", tt.kind, tt.stream, r)
		}
	}
}

// TestIDsOfCallsAreUnique shows that an ID that the conversation has already, or that is missing, is replaced.
func TestIDsOfCallsAreUnique(t *testing.T) {
	stream := `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"used","function":{"name":"a","arguments":"{}"}},` +
		`{"index":1,"id":"","function":{"name":"b","arguments":"{}"}},{"index":2,"id":"new","function":{"name":"c","arguments":"{}"}}]},` +
		`"finish_reason":"tool_calls"}]}` + "\n\n"
	r, _, err := readAnswer(KindOpenAIChat, stream)
	calls := r.Message.ToolCalls()
	if err != nil || len(calls) != 3 || !strings.HasPrefix(calls[0].ID, "call_") || !strings.HasPrefix(calls[1].ID, "call_") ||
		calls[0].ID == calls[1].ID || calls[2].ID != "new" {
		t.Errorf("%+v %v", calls, err)
	}
}

// FuzzStreams reads whatever a provider streams: it ends, and an answer without an error has content that was shown.
func FuzzStreams(f *testing.F) {
	for i, kind := range allKinds {
		for _, name := range []string{"text", "calls", "error", "length", "refusal"} {
			f.Add(i, recordedAnswer(f, kind, name))
		}
	}
	f.Fuzz(func(t *testing.T, i int, stream string) {
		if i < 0 || i >= len(allKinds) {
			return
		}
		r, shown, err := readAnswer(allKinds[i], stream)
		if err != nil {
			_ = explain(err, classify(err).code, []string{"key"}, drawbridge.ModelRequest{}).Error()
			return
		}
		if r.Stop == "" || r.Model != "p/m" || len(r.Message.Parts) == 0 && r.Usage.Output == 0 && r.Stop == drawbridge.StopEnd {
			t.Errorf("%+v", r)
		}
		text, ids := "", map[string]bool{}
		for _, p := range r.Message.Parts {
			text += p.Text
			switch {
			case p.ToolCall != nil && (p.ToolCall.ID == "" || p.ToolCall.ID == "used" || ids[p.ToolCall.ID]):
				t.Errorf("the ID %q", p.ToolCall.ID)
			case p.ToolCall != nil:
				ids[p.ToolCall.ID] = true
				checkJSON(t, p.ToolCall.Provider)
				checkJSON(t, argumentsObject(p.ToolCall.Arguments))
			case p.Thinking != nil:
				checkJSON(t, p.Thinking.Provider)
			}
		}
		if text != shown.Text {
			t.Errorf("%q was shown, the answer is %q", shown.Text, text)
		}
	})
}

func checkJSON(t *testing.T, raw json.RawMessage) {
	t.Helper()
	if len(raw) > 0 && !json.Valid(raw) {
		t.Errorf("not JSON: %q", raw)
	}
}

// FuzzSchema normalises whatever a server declares: the result is an object's schema, small, and normal.
func FuzzSchema(f *testing.F) {
	a, err := os.ReadFile("testdata/chat/schemas.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range txtar.Parse(a).Files {
		f.Add(string(file.Data))
	}
	f.Fuzz(func(t *testing.T, schema string) {
		for _, d := range []schemaDialect{{}, chatSchema, geminiSchema} {
			out := normaliseSchema(json.RawMessage(schema), d)
			if !json.Valid(out) || len(out) > maxSchemaBytes || rawjson.GetString(out, "type") != "object" ||
				len(rawjson.Get(out, "properties")) == 0 {
				t.Fatalf("%s", out)
			}
			if again := normaliseSchema(out, d); string(again) != string(out) {
				t.Errorf("normalised again:\n%s\n%s", out, again)
			}
		}
	})
}
