package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(runChild())
	}
	goleak.VerifyTestMain(m)
}

// A script is a model that answers as a function says. It keeps the requests.
type script struct {
	info   drawbridge.ModelInfo
	answer func(ctx context.Context, n int, r drawbridge.ModelRequest, on func(drawbridge.ModelDelta)) (
		drawbridge.ModelResponse, error)

	mu       sync.Mutex
	requests []drawbridge.ModelRequest
}

func (m *script) Info() drawbridge.ModelInfo {
	if m.info.Name == "" {
		m.info.Provider, m.info.Name = "test", "script"
	}
	return m.info
}

func (m *script) Generate(ctx context.Context, r drawbridge.ModelRequest, on func(drawbridge.ModelDelta)) (
	drawbridge.ModelResponse, error) {
	m.mu.Lock()
	n := len(m.requests)
	m.requests = append(m.requests, r)
	m.mu.Unlock()
	return m.answer(ctx, n, r, on)
}

// answers is a model that returns these answers, one for each request. A further request returns an error.
func answers(all ...drawbridge.ModelResponse) *script {
	return &script{info: drawbridge.ModelInfo{Provider: "test", Name: "script"}, answer: func(_ context.Context, n int,
		_ drawbridge.ModelRequest, on func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error) {
		if n >= len(all) {
			return drawbridge.ModelResponse{}, fmt.Errorf("the script has no answer %d", n)
		}
		if text := all[n].Message.Text(); text != "" {
			on(drawbridge.ModelDelta{Text: text})
		}
		return all[n], nil
	}}
}

// says is an answer with a text.
func says(text string) drawbridge.ModelResponse {
	return drawbridge.ModelResponse{Message: drawbridge.Message{Parts: []drawbridge.MessagePart{{Text: text}}},
		Stop: drawbridge.StopEnd, Usage: drawbridge.ModelUsage{Input: 100, Output: 10}}
}

// calls is an answer with calls. Each is a name and its arguments, with a space in between.
func calls(all ...string) drawbridge.ModelResponse {
	var m drawbridge.Message
	for i, text := range all {
		name, arguments := text, ""
		for j := range text {
			if text[j] == ' ' {
				name, arguments = text[:j], text[j+1:]
				break
			}
		}
		m.Parts = append(m.Parts, drawbridge.MessagePart{ToolCall: &drawbridge.ToolCall{ID: "c" + strconv.Itoa(i),
			Name: drawbridge.CardName(name), Arguments: json.RawMessage(arguments)}})
	}
	return drawbridge.ModelResponse{Message: m, Stop: drawbridge.StopToolCalls,
		Usage: drawbridge.ModelUsage{Input: 100, Output: 10}}
}

// box are tools from functions. The zero value has the tool "echo", which returns its arguments.
type box struct {
	names    []drawbridge.CardName
	briefing agent.Briefing
	choose   func(who agent.Identity, text string, known []drawbridge.CardName) []drawbridge.ToolDefinition
	call     func(ctx context.Context, who agent.Identity, c drawbridge.ToolCall, update func(agent.CallUpdate)) (
		agent.CallOutcome, error)

	mu      sync.Mutex
	made    []drawbridge.ToolCall
	callers []agent.Identity
	waiting map[string]chan agent.Answer
}

func (b *box) Brief(context.Context, agent.Identity, bool) (agent.Briefing, error) {
	return b.briefing, nil
}

func (b *box) Select(_ context.Context, who agent.Identity, text string, known []drawbridge.CardName) (
	[]drawbridge.ToolDefinition, error) {
	if b.choose != nil {
		return b.choose(who, text, known), nil
	}
	if b.names == nil {
		return definitions("echo"), nil
	}
	return definitions(b.names...), nil
}

func (b *box) Call(ctx context.Context, who agent.Identity, c drawbridge.ToolCall, update func(agent.CallUpdate)) (
	agent.CallOutcome, error) {
	b.mu.Lock()
	b.made, b.callers = append(b.made, c), append(b.callers, who)
	b.mu.Unlock()
	if b.call == nil {
		return textOutcome(string(c.Arguments)), nil
	}
	return b.call(ctx, who, c, update)
}

// ask reports an update that waits for an answer, and returns the answer.
func (b *box) ask(ctx context.Context, id string, update func(agent.CallUpdate), u agent.CallUpdate) (agent.Answer, error) {
	answer := make(chan agent.Answer, 1)
	b.mu.Lock()
	if b.waiting == nil {
		b.waiting = map[string]chan agent.Answer{}
	}
	b.waiting[id] = answer
	b.mu.Unlock()
	update(u)
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		return agent.Answer{}, context.Cause(ctx)
	}
}

func (b *box) Answer(_ context.Context, a agent.Answer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting, ok := b.waiting[a.ID]
	if !ok {
		return errors.New("nothing waits for this answer")
	}
	delete(b.waiting, a.ID)
	waiting <- a
	return nil
}

func definitions(names ...drawbridge.CardName) (all []drawbridge.ToolDefinition) {
	for _, name := range names {
		all = append(all, drawbridge.ToolDefinition{Name: name, Description: "does " + string(name),
			InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	return all
}

func textOutcome(text string) agent.CallOutcome {
	raw, _ := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}})
	return agent.CallOutcome{Result: drawbridge.Result{Raw: raw}, Server: "srv", Tool: "tool"}
}

func prompt(text string) []drawbridge.MessagePart { return []drawbridge.MessagePart{{Text: text}} }

// counted returns a function that returns "e1", "e2" and so on.
func counted() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return "e" + strconv.Itoa(n)
	}
}

func open(t *testing.T, o agent.Options) *agent.Session {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	}
	if o.Fence == nil {
		o.Fence = func(source, text string) string { return "<" + source + ">" + text + "</>" }
	}
	s, err := agent.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a prompt that must end with an outcome, and returns the result and the events.
func run(t *testing.T, s *agent.Session, text string, want agent.Outcome) (agent.RunResult, []agent.Event) {
	t.Helper()
	var events []agent.Event
	result, err := s.Run(t.Context(), prompt(text), func(e agent.Event) { events = append(events, e) })
	if result.Outcome != want || (err == nil) != (want == agent.Completed) {
		t.Fatalf("the run ended with %s, %v, want %s", result.Outcome, err, want)
	}
	return result, events
}

// lastResults returns the results in the last message of the last request.
func lastResults(t *testing.T, m *script) []drawbridge.ToolResult {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	messages := m.requests[len(m.requests)-1].Messages
	var all []drawbridge.ToolResult
	for _, message := range slices.Backward(messages) {
		for _, p := range message.Parts {
			if p.ToolResult != nil {
				all = append(all, *p.ToolResult)
			}
		}
		if all != nil {
			return all
		}
	}
	t.Fatal("the model saw no result")
	return nil
}

func entries(t *testing.T, h agent.History) (all []agent.Entry) {
	t.Helper()
	for e, err := range h.Entries(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func kinds(all []agent.Event) (kinds []agent.EventKind) {
	for _, e := range all {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}
