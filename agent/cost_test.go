package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

// noHistory keeps nothing, so that a test sees the memory of the session alone.
type noHistory struct{}

func (noHistory) ID() string                                { return "s" }
func (noHistory) Append(context.Context, agent.Entry) error { return nil }
func (noHistory) Entries(context.Context) iter.Seq2[agent.Entry, error] {
	return func(func(agent.Entry, error) bool) {}
}

// TestMemoryIsFlat has a session of 1,000 turns: after turn 1,000 it has the memory that it had after turn 200, within
// 5 %. Both are measured after a summary, when the conversation is as short as it becomes.
func TestMemoryIsFlat(t *testing.T) {
	const early, late = 200, 1000
	summary := strings.Repeat("summary ", 200)
	turns, n := 0, 0
	heap := map[int]uint64{}
	model := &script{info: drawbridge.ModelInfo{Provider: "test", Name: "script", Window: 64_000}}
	model.answer = func(_ context.Context, _ int, r drawbridge.ModelRequest, _ func(drawbridge.ModelDelta)) (
		drawbridge.ModelResponse, error) {
		model.requests = nil
		if strings.HasPrefix(r.Instructions, "You write the summary") {
			n = 0
			return drawbridge.ModelResponse{Message: says(summary).Message}, nil
		}
		turns++
		if n++; n == 1 && (turns > early && heap[early] == 0 || turns > late && heap[late] == 0) {
			at := early
			if turns > late {
				at = late
			}
			heap[at] = usedHeap()
		}
		if heap[late] > 0 {
			return drawbridge.ModelResponse{Message: says("end").Message}, nil
		}
		return drawbridge.ModelResponse{Message: calls(fmt.Sprintf(`echo {"turn":%6d}`, turns)).Message}, nil
	}
	tools := &box{call: func(_ context.Context, _ agent.Identity, c drawbridge.ToolCall, _ func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		return textOutcome(string(c.Arguments) + strings.Repeat("result ", 500)), nil
	}}
	tools.choose = func(agent.Identity, string, []drawbridge.CardName) []drawbridge.ToolDefinition {
		tools.made, tools.callers = nil, nil
		return definitions("echo")
	}
	s := open(t, agent.Options{Model: model, Tools: tools, History: noHistory{}, MaxTurns: 2 * late})
	if _, err := s.Run(t.Context(), prompt("x"), func(agent.Event) {}); err != nil {
		t.Fatal(err)
	}
	growth := float64(heap[late])/float64(heap[early]) - 1
	t.Logf("the heap is %d KiB after %d turns and %d KiB after %d", heap[early]>>10, early, heap[late]>>10, late)
	if growth > 0.05 || growth < -0.05 {
		t.Errorf("the heap grew by %.1f %%", 100*growth)
	}
}

func usedHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// manyTools are 200 tools with schemas of usual size.
func manyTools() *box {
	names := make([]drawbridge.CardName, 200)
	for i := range names {
		names[i] = drawbridge.CardName(fmt.Sprintf("server%d__tool_with_a_name_%d", i/20, i))
	}
	all := definitions(names...)
	for i := range all {
		all[i].Description = strings.Repeat("describes the tool ", 20)
		all[i].InputSchema = json.RawMessage(`{"type":"object","properties":{` +
			strings.Repeat(`"member":{"type":"string"},`, 20) + `"last":{}}}`)
	}
	b := &box{choose: func(agent.Identity, string, []drawbridge.CardName) []drawbridge.ToolDefinition { return all }}
	b.names = names
	return b
}

// BenchmarkTurn is what a turn costs the session itself: 200 tools, one call, a conversation that is condensed now and
// then, and a history that is not written to a disk.
func BenchmarkTurn(b *testing.B) {
	tools := manyTools()
	n := 0
	model := &script{info: drawbridge.ModelInfo{Provider: "test", Name: "script", Window: 200_000}}
	model.answer = func(_ context.Context, _ int, r drawbridge.ModelRequest, _ func(drawbridge.ModelDelta)) (
		drawbridge.ModelResponse, error) {
		model.requests = nil
		if strings.HasPrefix(r.Instructions, "You write the summary") {
			return drawbridge.ModelResponse{Message: says("summary").Message}, nil
		}
		if n++; n > b.N {
			return drawbridge.ModelResponse{Message: says("end").Message}, nil
		}
		return drawbridge.ModelResponse{Message: calls(fmt.Sprintf(`%s {"turn":%d}`, tools.names[n%200], n)).Message}, nil
	}
	outcome := textOutcome(strings.Repeat("result ", 300))
	outcome.Fenced = true
	tools.call = func(context.Context, agent.Identity, drawbridge.ToolCall, func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		tools.made, tools.callers = nil, nil
		return outcome, nil
	}
	s, err := agent.New(b.Context(), agent.Options{Model: model, Tools: tools, History: noHistory{}, MaxTurns: b.N + 1})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if _, err := s.Run(b.Context(), prompt("x"), func(agent.Event) {}); err != nil {
		b.Fatal(err)
	}
}
