package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/google/go-cmp/cmp"
)

func TestRun(t *testing.T) {
	model := answers(calls(`echo {"a":1}`), says("done"))
	s := open(t, agent.Options{Model: model, Tools: &box{}})
	result, events := run(t, s, "hello", agent.Completed)
	want := []agent.EventKind{agent.RunStarted, agent.TurnStarted, agent.TurnFinished, agent.ToolStarted, agent.ToolFinished,
		agent.TurnStarted, agent.TextDelta, agent.TurnFinished, agent.RunFinished}
	if diff := cmp.Diff(want, kinds(events)); diff != "" {
		t.Error(diff)
	}
	if result.Text != "done" || result.Turns != 2 || result.Usage != (drawbridge.ModelUsage{Input: 200, Output: 20}) {
		t.Errorf("the result is %+v", result)
	}
	snapshot := s.Snapshot()
	if snapshot.Messages != 4 || snapshot.Usage.Input != 200 || snapshot.Streaming || snapshot.Running {
		t.Errorf("the snapshot is %+v", snapshot)
	}
	for _, e := range events {
		if e.Session != snapshot.Session || e.Time.IsZero() {
			t.Errorf("an event has no session or time: %+v", e)
		}
		if _, err := json.Marshal(e); err != nil {
			t.Error(err)
		}
	}
}

// TestParallelCalls has two calls that wait for each other, and three results in the order of the calls.
func TestParallelCalls(t *testing.T) {
	var meet sync.WaitGroup
	meet.Add(2)
	tools := &box{names: []drawbridge.CardName{"a", "b", "c"}, call: func(_ context.Context, _ agent.Identity,
		c drawbridge.ToolCall, _ func(agent.CallUpdate)) (agent.CallOutcome, error) {
		if c.Name != "c" {
			meet.Done()
			meet.Wait()
		}
		return textOutcome("result of " + string(c.Name)), nil
	}}
	model := answers(calls("a", "b", "c"), says("done"))
	run(t, open(t, agent.Options{Model: model, Tools: tools}), "x", agent.Completed)
	var texts []string
	for _, r := range lastResults(t, model) {
		texts = append(texts, r.CallID+" "+r.Text)
	}
	if diff := cmp.Diff([]string{"c0 result of a", "c1 result of b", "c2 result of c"}, texts); diff != "" {
		t.Error(diff)
	}
}

// TestWrongCalls has calls that a model wrote wrongly: they are not made, and the model reads what is wrong.
func TestWrongCalls(t *testing.T) {
	for _, tt := range []struct{ call, want string }{
		{"github__lst_issues {}", `Error: This session exposes no tool called "github__lst_issues". ` +
			"The nearest names are: github__list_issues, echo, fs__read."},
		{"list_issues {}", "The nearest names are: github__list_issues"},
		{`echo {"a":`, "Error: The arguments of echo are not valid JSON (unexpected end of JSON input). The call was not made"},
		{`echo [1]`, "are not a JSON object"},
		{`echo "text"`, "are not a JSON object"},
	} {
		tools := &box{names: []drawbridge.CardName{"echo", "github__list_issues", "fs__read"}}
		model := answers(calls(tt.call), says("done"))
		run(t, open(t, agent.Options{Model: model, Tools: tools}), "x", agent.Completed)
		got := lastResults(t, model)[0]
		if !got.IsError || !strings.Contains(got.Text, tt.want) || len(tools.made) > 0 {
			t.Errorf("%s: %+v, calls: %v", tt.call, got, tools.made)
		}
	}
}

// TestMendedArguments has arguments that are sent as an object.
func TestMendedArguments(t *testing.T) {
	for _, tt := range []struct{ call, want string }{
		{"echo", "{}"},
		{"echo null", "{}"},
		{`echo "{\"a\": 1}"`, `{"a":1}`},
		{`echo {"a": 9007199254740993}`, `{"a":9007199254740993}`},
	} {
		tools := &box{}
		_, events := run(t, open(t, agent.Options{Model: answers(calls(tt.call), says("done")), Tools: tools}), "x",
			agent.Completed)
		if got := string(tools.made[0].Arguments); got != tt.want {
			t.Errorf("%s is sent with %s", tt.call, got)
		}
		for _, e := range events {
			if e.Kind == agent.ToolStarted && string(e.Call.Arguments) != tt.want {
				t.Errorf("%s is shown with %s", tt.call, e.Call.Arguments)
			}
		}
	}
}

// TestApprovalShowsTheArguments has a call that waits for a person, who is shown what the tool asks about.
func TestApprovalShowsTheArguments(t *testing.T) {
	question := agent.Question{ID: "q1", Kind: agent.AskApproval, Server: "fs", Tool: "write",
		Arguments: json.RawMessage(`{"path":"a.txt","content":"<b>"}`)}
	tools := &box{}
	tools.call = func(ctx context.Context, _ agent.Identity, _ drawbridge.ToolCall, update func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		a, err := tools.ask(ctx, "q1", update, agent.CallUpdate{Question: &question})
		return textOutcome(fmt.Sprint(a.Allow, a.Always)), err
	}
	model := answers(calls("echo"), says("done"))
	s := open(t, agent.Options{Model: model, Tools: tools})
	var asked agent.Event
	_, err := s.Run(t.Context(), prompt("x"), func(e agent.Event) {
		if e.Kind == agent.ToolAsked {
			asked = e
			if err := s.Answer(t.Context(), agent.Answer{ID: e.Question.ID, Allow: true, Always: true}); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&question, asked.Question); diff != "" || asked.Call.ID != "c0" {
		t.Errorf("asked %+v: %s", asked.Call, diff)
	}
	if got := lastResults(t, model)[0].Text; got != "true true" {
		t.Errorf("the tool was answered %s", got)
	}
}

// strictHistory writes nothing after the end of a context.
type strictHistory struct{ agent.History }

func (h strictHistory) Append(ctx context.Context, e agent.Entry) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return h.History.Append(ctx, e)
}

// TestCancelReachesTheTool cancels a run while one call runs and another waits for it.
func TestCancelReachesTheTool(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	began := make(chan struct{}, 20)
	var cause error
	tools := &box{call: func(ctx context.Context, _ agent.Identity, c drawbridge.ToolCall, _ func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		began <- struct{}{}
		<-ctx.Done()
		if c.ID == "c0" {
			cause = context.Cause(ctx)
		}
		return agent.CallOutcome{}, context.Cause(ctx)
	}}
	nine := slices.Repeat([]string{"echo"}, 9) // one more than run at the same time
	model := answers(calls(nine...), says("later"))
	history := strictHistory{agent.NewMemoryHistory()}
	s := open(t, agent.Options{Model: model, Tools: tools, History: history})
	go func() {
		for range 8 {
			<-began
		}
		cancel(drawbridge.NewCancellation("enough"))
	}()
	result, err := s.Run(ctx, prompt("x"), nil)
	if result.Outcome != agent.Cancelled || err == nil || err.Error() != "enough" || cause != err {
		t.Fatalf("the run ended with %s, %v; the tool's cause is %v", result.Outcome, err, cause)
	}
	var texts []string
	for _, e := range entries(t, history) {
		if e.Kind == agent.ResultEntry {
			texts = append(texts, e.Result.Text)
			if !e.Details.Cancelled || e.Details.Unknown != (e.Result.CallID != "c8") || !e.Result.IsError {
				t.Errorf("%s: details %+v", e.Result.CallID, e.Details)
			}
		}
	}
	slices.Sort(texts)
	unknown := "This call was cancelled. Its outcome is unknown: it may have taken effect."
	want := append([]string{"Cancelled before echo could begin."}, slices.Repeat([]string{unknown}, 8)...)
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
	run(t, s, "go on", agent.Completed) // the session goes on
}

// TestCancelOfTheModel cancels while an answer arrives: the answer is not in the history, and Run without a prompt asks
// again.
func TestCancelOfTheModel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	model := &script{answer: func(ctx context.Context, n int, _ drawbridge.ModelRequest, on func(drawbridge.ModelDelta)) (
		drawbridge.ModelResponse, error) {
		if n > 0 {
			return says("whole"), nil
		}
		on(drawbridge.ModelDelta{Text: "half"})
		cancel()
		<-ctx.Done()
		return drawbridge.ModelResponse{}, context.Cause(ctx)
	}}
	s := open(t, agent.Options{Model: model})
	result, err := s.Run(ctx, prompt("x"), nil)
	if result.Outcome != agent.Cancelled || !errors.Is(err, context.Canceled) {
		t.Fatalf("%+v, %v", result, err)
	}
	if n := s.Snapshot().Messages; n != 1 {
		t.Errorf("there are %d messages", n)
	}
	if result, err = s.Run(t.Context(), nil, nil); err != nil || result.Text != "whole" {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := s.Run(t.Context(), nil, nil); !errors.Is(err, agent.ErrNoPrompt) {
		t.Errorf("without a prompt: %v", err)
	}
}

// TestQueue adds messages while the first turn runs, and while the last does.
func TestQueue(t *testing.T) {
	var s *agent.Session
	model := answers(calls("echo"), says("first"), says("second"))
	inner := model.answer
	model.answer = func(ctx context.Context, n int, r drawbridge.ModelRequest, on func(drawbridge.ModelDelta)) (
		drawbridge.ModelResponse, error) {
		if n < 2 {
			s.Queue(prompt(fmt.Sprint("more ", n)))
			s.Queue(prompt("and more"))
		}
		return inner(ctx, n, r, on)
	}
	s = open(t, agent.Options{Model: model, Tools: &box{}})
	run(t, s, "x", agent.Completed)
	var seen []string
	for _, m := range model.requests[2].Messages {
		seen = append(seen, string(m.Role)+" "+m.Text())
	}
	want := []string{"user x", "assistant ", "user ", "user more 0", "user and more", "assistant first",
		"user more 1", "user and more"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

// TestLoopBreaker repeats one call: the model is told after three, and the run ends after five.
func TestLoopBreaker(t *testing.T) {
	for name, tt := range map[string]struct {
		result  func(n int) string
		call    string
		outcome agent.Outcome
		turns   int
	}{
		"same":         {func(int) string { return "same" }, "echo", agent.Looping, 5},
		"other result": {func(n int) string { return fmt.Sprint(n) }, "echo", agent.TooManyTurns, 12},
		"wrong call":   {nil, "unknown", agent.Looping, 5},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			tools := &box{call: func(context.Context, agent.Identity, drawbridge.ToolCall, func(agent.CallUpdate)) (
				agent.CallOutcome, error) {
				n++
				o := textOutcome(tt.result(n))
				o.Fenced = true
				return o, nil
			}}
			model := answers(slices.Repeat([]drawbridge.ModelResponse{calls(tt.call)}, 20)...)
			fences := 0
			s := open(t, agent.Options{Model: model, Tools: tools, MaxTurns: 12, Fence: func(_, text string) string {
				fences++
				return fmt.Sprint(fences, text) // differs each time, as a random word does
			}})
			result, _ := run(t, s, "x", tt.outcome)
			if result.Turns != tt.turns {
				t.Errorf("the run had %d turns, want %d", result.Turns, tt.turns)
			}
			for i, r := range model.requests[1:] {
				told := strings.Contains(r.Messages[len(r.Messages)-1].Parts[0].ToolResult.Text, "times in a row")
				if told != (tt.outcome == agent.Looping && i >= 2) {
					t.Errorf("after %d calls, told: %t", i+1, told)
				}
			}
		})
	}
}

func TestModes(t *testing.T) {
	tools := &box{}
	model := answers(calls("echo"), says("a"), calls("echo"), says("b"))
	s := open(t, agent.Options{Model: model, Tools: tools, Mode: agent.PlanOnly})
	run(t, s, "one", agent.Completed)
	if err := s.SetMode(t.Context(), agent.AcceptEdits); err != nil {
		t.Fatal(err)
	}
	run(t, s, "two", agent.Completed)
	if got := []agent.PermissionMode{tools.callers[0].Mode, tools.callers[1].Mode}; got[0] != agent.PlanOnly ||
		got[1] != agent.AcceptEdits {
		t.Errorf("the calls were made in the modes %v", got)
	}
	if r := model.requests; r[0].Instructions != r[3].Instructions || !strings.Contains(r[0].Instructions, "mode: plan") ||
		!strings.Contains(r[3].Messages[4].Text(), "you may edit files") {
		t.Errorf("the model was told %s, %s", r[0].Instructions, r[3].Messages[4].Text())
	}
	if err := s.SetMode(t.Context(), "root"); err == nil {
		t.Error("there is a mode root")
	}
	if _, err := agent.New(t.Context(), agent.Options{Model: model, Mode: "root"}); err == nil {
		t.Error("a session starts in a mode root")
	}
}

// TestRetry has a provider that retries: what arrived before is void.
func TestRetry(t *testing.T) {
	model := &script{answer: func(_ context.Context, _ int, _ drawbridge.ModelRequest, on func(drawbridge.ModelDelta)) (
		drawbridge.ModelResponse, error) {
		on(drawbridge.ModelDelta{Thinking: "hm"})
		on(drawbridge.ModelDelta{Retry: &drawbridge.ModelRetry{Attempt: 2, After: time.Second, Err: errors.New("busy")}})
		r := says("cut")
		r.Stop = drawbridge.StopMaxOutput
		return r, nil
	}}
	_, events := run(t, open(t, agent.Options{Model: model}), "x", agent.Completed)
	want := []agent.EventKind{agent.RunStarted, agent.TurnStarted, agent.ThinkingDelta, agent.ModelRetried, agent.TurnFinished,
		agent.Notice, agent.RunFinished}
	if diff := cmp.Diff(want, kinds(events)); diff != "" {
		t.Error(diff)
	}
	if events[3].Text != "attempt 2 follows in 1s: busy" {
		t.Errorf("the reason is %s", events[3].Text)
	}
}

// TestProgress has a tool that reports progress, also after its end.
func TestProgress(t *testing.T) {
	late := make(chan func(agent.CallUpdate), 1)
	tools := &box{call: func(_ context.Context, _ agent.Identity, _ drawbridge.ToolCall, update func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		update(agent.CallUpdate{Progress: &agent.Progress{Progress: 1, Total: 2, Message: "half"}})
		late <- update
		return textOutcome("x"), nil
	}}
	s := open(t, agent.Options{Model: answers(calls("echo"), says("done")), Tools: tools})
	var got []agent.Progress
	_, err := s.Run(t.Context(), prompt("x"), func(e agent.Event) {
		if e.Kind == agent.ToolProgress {
			got = append(got, *e.Progress)
		}
		if e.Kind == agent.ToolFinished {
			(<-late)(agent.CallUpdate{Progress: &agent.Progress{Progress: 2}})
		}
	})
	if diff := cmp.Diff([]agent.Progress{{Progress: 1, Total: 2, Message: "half"}}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestEventsComeOneAtATime has calls that report progress at the same time, and a receiver that uses the session.
func TestEventsComeOneAtATime(t *testing.T) {
	tools := &box{call: func(_ context.Context, _ agent.Identity, _ drawbridge.ToolCall, update func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		for n := range 100 {
			update(agent.CallUpdate{Progress: &agent.Progress{Progress: float64(n)}})
		}
		return textOutcome("x"), nil
	}}
	model := answers(calls(slices.Repeat([]string{"echo"}, 8)...), says("done"))
	s := open(t, agent.Options{Model: model, Tools: tools})
	var inside atomic.Int32
	last := map[string]float64{}
	_, err := s.Run(t.Context(), prompt("x"), func(e agent.Event) {
		if inside.Add(1) != 1 {
			t.Error("two events at the same time")
		}
		runtime.Gosched()
		s.Snapshot()
		if e.Kind == agent.ToolProgress {
			if before, ok := last[e.Call.ID]; ok && e.Progress.Progress <= before {
				t.Errorf("the progress %v follows %v", e.Progress.Progress, before)
			}
			last[e.Call.ID] = e.Progress.Progress
		}
		inside.Add(-1)
	})
	if err != nil || len(last) != 8 {
		t.Error(err, last)
	}
}

func TestOneRunAtATime(t *testing.T) {
	var s *agent.Session
	s = open(t, agent.Options{Model: &script{answer: func(context.Context, int, drawbridge.ModelRequest,
		func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error) {
		if _, err := s.Run(t.Context(), prompt("y"), nil); !errors.Is(err, agent.ErrRunning) {
			t.Errorf("a second run: %v", err)
		}
		if snapshot := s.Snapshot(); !snapshot.Streaming || !snapshot.Running {
			t.Errorf("the snapshot is %+v", snapshot)
		}
		return says("x"), nil
	}}})
	run(t, s, "x", agent.Completed)
}

func TestFailedModel(t *testing.T) {
	fault := &drawbridge.ModelError{Code: drawbridge.ModelQuota, Model: "test/script", Next: "pay"}
	s := open(t, agent.Options{Model: &script{answer: func(context.Context, int, drawbridge.ModelRequest,
		func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error) {
		return drawbridge.ModelResponse{}, fault
	}}})
	_, err := s.Run(t.Context(), prompt("x"), nil)
	if !errors.Is(err, fault) || !s.Snapshot().Faulted {
		t.Errorf("%v, %+v", err, s.Snapshot())
	}
}

// TestPausedAnswer: when a model pauses its answer, the session sends the request again with the text that it has.
func TestPausedAnswer(t *testing.T) {
	paused := says("one ")
	paused.Stop = drawbridge.StopPaused
	model := answers(paused, says("two"))
	s := open(t, agent.Options{Model: model, Tools: &box{}})
	result, _ := run(t, s, "count", agent.Completed)
	if result.Turns != 2 || result.Text != "two" {
		t.Errorf("%+v", result)
	}
}
