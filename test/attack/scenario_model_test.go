//go:build !nomcp

package attack

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// An obedientModel makes the calls of a run, one after the other. It obeys every text: it makes the calls that an
// attacker asks for too. A sub-agent's steps are those of the step that started it, and its report is its last result.
type obedientModel struct {
	mu sync.Mutex
	// threads are the conversations, by their first text.
	threads map[string]*modelThread
	calls   int
	// current is the step whose call was made last.
	current step
}

type modelThread struct {
	steps   []step
	next    int
	results []string
}

func newObedientModel(r scenarioRun) *obedientModel {
	m := &obedientModel{threads: map[string]*modelThread{}}
	m.threads[r.Task] = &modelThread{steps: r.Steps}
	return m
}

// Info implements [drawbridge.Model].
func (m *obedientModel) Info() drawbridge.ModelInfo {
	return drawbridge.ModelInfo{Provider: "test", Name: "obedient"}
}

// Generate implements [drawbridge.Model].
func (m *obedientModel) Generate(_ context.Context, r drawbridge.ModelRequest, _ func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.threads[firstText(r.Messages)]
	if t == nil {
		return drawbridge.ModelResponse{Stop: drawbridge.StopEnd, Message: textMessage("no such task")}, nil
	}
	for _, p := range r.Messages[len(r.Messages)-1].Parts {
		if p.ToolResult != nil {
			t.results = append(t.results, withoutFence(p.ToolResult.Text))
		}
	}
	if t.next == len(t.steps) {
		return drawbridge.ModelResponse{Stop: drawbridge.StopEnd, Message: textMessage("done: " + t.last())}, nil
	}
	s := t.steps[t.next]
	t.next++
	m.calls++
	m.current = s
	with, _ := t.fill(s.With).(map[string]any)
	if s.Call == "task" {
		m.threads[argumentText(with["objective"])] = &modelThread{steps: s.Steps}
	}
	arguments, err := json.Marshal(with)
	if err != nil {
		return drawbridge.ModelResponse{}, err
	}
	return drawbridge.ModelResponse{Stop: drawbridge.StopToolCalls, Message: drawbridge.Message{Parts: []drawbridge.MessagePart{{
		ToolCall: &drawbridge.ToolCall{ID: "c" + strconv.Itoa(m.calls), Name: drawbridge.CardName(s.Call), Arguments: arguments}}}}}, nil
}

// obeys reports whether the model has made its last call only because the attacker asks for it.
func (m *obedientModel) obeys() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current.Obeys
}

func textMessage(text string) drawbridge.Message {
	return drawbridge.Message{Parts: []drawbridge.MessagePart{{Text: text}}}
}

// firstText returns the first text of a conversation that begins a known thread: the prompt or the objective.
func firstText(messages []drawbridge.Message) string {
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Text != "" {
				return p.Text
			}
		}
	}
	return ""
}

func (t *modelThread) last() string {
	if len(t.results) == 0 {
		return ""
	}
	return t.results[len(t.results)-1]
}

var reference = regexp.MustCompile(`\{\{(\d+)(?::(.+?))?\}\}`)

// fill returns a value of the arguments with the results of earlier steps in the place of references.
func (t *modelThread) fill(value any) any {
	switch v := value.(type) {
	case map[string]any:
		filled := map[string]any{}
		for name, element := range v {
			filled[name] = t.fill(element)
		}
		return filled
	case []any:
		filled := make([]any, len(v))
		for i, element := range v {
			filled[i] = t.fill(element)
		}
		return filled
	case string:
		return reference.ReplaceAllStringFunc(v, t.referred)
	}
	return value
}

func (t *modelThread) referred(text string) string {
	parts := reference.FindStringSubmatch(text)
	n, err := strconv.Atoi(parts[1])
	if err != nil || n < 1 || n > len(t.results) {
		return text
	}
	result := t.results[n-1]
	if parts[2] == "" {
		return result
	}
	if found := regexp.MustCompile(parts[2]).FindStringSubmatch(result); len(found) > 1 {
		return found[1]
	}
	return ""
}

var fenceLine = regexp.MustCompile(`(?m)^\[TOOL_OUTPUT::[A-Z0-9]+::(BEGIN|END).*\]\n?`)

// withoutFence returns a result without the lines that mark it as foreign.
func withoutFence(text string) string { return strings.TrimSpace(fenceLine.ReplaceAllString(text, "")) }
