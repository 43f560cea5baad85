package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/google/go-cmp/cmp"
)

// taskBox are tools with a tool "task", whose arguments are a TaskRequest without ID. Its result is the answer.
func taskBox(names ...drawbridge.CardName) *box {
	b := &box{names: append(names, "task")}
	b.call = func(ctx context.Context, who agent.Identity, c drawbridge.ToolCall, update func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		if c.Name != "task" {
			return textOutcome("ok"), nil
		}
		var task agent.TaskRequest
		if err := json.Unmarshal(c.Arguments, &task); err != nil {
			return agent.CallOutcome{}, err
		}
		task.ID = who.Agent + ":" + c.ID
		a, err := b.ask(ctx, task.ID, update, agent.CallUpdate{Task: &task})
		return textOutcome(fmt.Sprint(a.Allow, " ", string(a.Content))), err
	}
	return b
}

// of is a model that answers by the first message of a conversation: with the answers that the objective has.
func of(byObjective map[string][]drawbridge.ModelResponse) *script {
	return &script{info: drawbridge.ModelInfo{Provider: "test", Name: "script"}, answer: func(_ context.Context, _ int,
		r drawbridge.ModelRequest, _ func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error) {
		all, n := byObjective[r.Messages[0].Text()], 0
		for _, m := range r.Messages {
			if m.Role == drawbridge.AssistantRole {
				n++
			}
		}
		if n >= len(all) {
			return drawbridge.ModelResponse{}, fmt.Errorf("no answer %d for %q", n, r.Messages[0].Text())
		}
		return all[n], nil
	}}
}

// TestTask has a sub-agent that starts another one: the report returns, and all is on record under their paths.
func TestTask(t *testing.T) {
	model := of(map[string][]drawbridge.ModelResponse{
		"go":   {calls(`task {"objective":"sub","tools":["fs__*","task"]}`), says("end")},
		"sub":  {calls(`fs__read {}`, `github__list {}`, `task {"objective":"deep"}`), says("sub report")},
		"deep": {calls(`fs__read {}`, `github__list {}`), says("deep report")},
	})
	tools, history := taskBox("fs__read", "github__list"), agent.NewMemoryHistory()
	budget := agent.NewBudget(agent.Amount{Calls: 100})
	s := open(t, agent.Options{Model: model, Tools: tools, History: history, Budget: budget, Mode: agent.PlanOnly})
	_, events := run(t, s, "go", agent.Completed)
	if got := lastResults(t, model)[0].Text; got != `true {"report":"sub report","outcome":"completed"}` {
		t.Errorf("the report is %s", got)
	}
	var made []string
	for i, c := range tools.made {
		made = append(made, tools.callers[i].Agent+" "+string(c.Name))
	}
	slices.Sort(made)
	if diff := cmp.Diff([]string{" task", "1 fs__read", "1 task", "1/1 fs__read"}, made); diff != "" {
		t.Error(diff)
	}
	var agents []string
	for _, e := range events {
		if e.Kind == agent.RunStarted || e.Kind == agent.RunFinished {
			agents = append(agents, e.Agent+" "+string(e.Kind))
		}
	}
	if diff := cmp.Diff([]string{" run_started", "1 run_started", "1/1 run_started", "1/1 run_finished", "1 run_finished",
		" run_finished"}, agents); diff != "" {
		t.Error(diff)
	}
	var begun []agent.Entry
	byID := map[string]agent.Entry{}
	for _, e := range entries(t, history) {
		byID[e.ID] = e
		if e.Kind == agent.AgentEntry {
			begun = append(begun, e)
		}
	}
	want := []agent.Rights{{Mode: agent.PlanOnly, Depth: 1, Tools: [][]string{{"fs__*", "task"}}},
		{Mode: agent.PlanOnly, Depth: 2, Tools: [][]string{{"fs__*", "task"}}}}
	if diff := cmp.Diff(want, []agent.Rights{*begun[0].Rights, *begun[1].Rights}); diff != "" {
		t.Error(diff)
	}
	if parent := byID[begun[1].Parent]; parent.Kind != agent.CallEntry || parent.Call.Name != "task" || parent.Agent != "1" {
		t.Errorf("the second sub-agent follows %+v", parent)
	}
	if used := budget.Used(); used.Calls != 4 || used.Turns != 6 || s.Snapshot().Usage.Input != 600 {
		t.Errorf("the budget has used %+v, the session %+v", used, s.Snapshot().Usage)
	}
	// The next sub-agent of a resumed session has the next number.
	tools.made, tools.callers = nil, nil
	run(t, open(t, agent.Options{Model: of(map[string][]drawbridge.ModelResponse{
		"go": {{}, {}, calls(`task {"objective":"again"}`), says("end")}, "again": {calls("fs__read"), says("x")},
	}), Tools: tools, History: history}), "more", agent.Completed)
	if got := tools.callers[1].Agent; got != "2" {
		t.Errorf("the next sub-agent is %s", got)
	}
}

// TestTaskEnds holds what a parent reads about a sub-agent that does not complete.
func TestTaskEnds(t *testing.T) {
	down := calls(`task {"objective":"down"}`)
	for _, tt := range []struct {
		name, want string
		sub        []drawbridge.ModelResponse
		limits     agent.Amount
		objective  string
	}{
		{name: "no objective", want: `false {"report":"","error":"the task has no objective"}`, objective: " "},
		{name: "failed", want: `"outcome":"failed","error":"no answer 0`, objective: "sub"},
		{name: "looping", want: `false {"report":"","outcome":"looping"`, objective: "sub",
			sub: slices.Repeat([]drawbridge.ModelResponse{calls("echo")}, 6)},
		{name: "over budget", want: `"outcome":"over_budget","error":"budget: the limit of requests to models is reached: 2`, objective: "sub",
			limits: agent.Amount{Turns: 2}, sub: []drawbridge.ModelResponse{calls("echo"), calls("echo")}},
		{name: "too deep", want: `true {"report":"bottom","outcome":"completed"}`, objective: "down"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			model := of(map[string][]drawbridge.ModelResponse{"sub": tt.sub, "down": {down, says("bottom")},
				"go": {calls(`task {"objective":"` + tt.objective + `"}`), says("end")}})
			tools, history := taskBox("echo"), agent.NewMemoryHistory()
			s := open(t, agent.Options{Model: model, Tools: tools, History: history, Budget: agent.NewBudget(tt.limits)})
			_, err := s.Run(t.Context(), prompt("go"), nil)
			if err != nil && tt.limits == (agent.Amount{}) {
				t.Fatal(err)
			}
			var texts []string
			for _, e := range entries(t, history) {
				if e.Kind == agent.ResultEntry && e.Result.Name == "task" {
					texts = append(texts, e.Result.Text)
				}
			}
			if got := texts[len(texts)-1]; !strings.Contains(got, tt.want) {
				t.Errorf("the report is %s", got)
			}
			if tt.name == "too deep" && (len(texts) != 4 || !strings.Contains(texts[0], "depth 3 cannot start another")) {
				t.Errorf("the reports are %q", texts)
			}
		})
	}
}

// TestCancelReachesSubAgents cancels a run while the tool of a sub-agent runs.
func TestCancelReachesSubAgents(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	tools := taskBox("wait")
	inner := tools.call
	reached := false
	tools.call = func(ctx context.Context, who agent.Identity, c drawbridge.ToolCall, update func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		if c.Name == "wait" {
			cancel(drawbridge.NewCancellation("stop"))
			<-ctx.Done()
			reached = true
			return agent.CallOutcome{}, context.Cause(ctx)
		}
		return inner(ctx, who, c, update)
	}
	model := of(map[string][]drawbridge.ModelResponse{"go": {calls(`task {"objective":"sub"}`)}, "sub": {calls("wait")}})
	result, err := open(t, agent.Options{Model: model, Tools: tools}).Run(ctx, prompt("go"), nil)
	if result.Outcome != agent.Cancelled || err == nil || err.Error() != "stop" || !reached {
		t.Errorf("%s, %v, reached: %t", result.Outcome, err, reached)
	}
}

// TestRightsOnlyNarrow lets random trees of sub-agents try every tool. No call is made that the patterns of an agent
// above do not allow, although these tools would allow each. The patterns are checked by another matcher.
func TestRightsOnlyNarrow(t *testing.T) {
	names := []drawbridge.CardName{"fs__read", "fs__write", "github__list", "github__close", "echo"}
	patterns := []string{"*", "fs__*", "*__read", "g*b__l*t", "echo", "task", "github__close", "nothing", "*_*", "f*e", ""}
	refusals := 0
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		chains := map[string][][]string{} // of each objective: the patterns of the agents down to it
		n := 0
		model := &script{info: drawbridge.ModelInfo{Provider: "test", Name: "script"}}
		model.answer = func(_ context.Context, _ int, r drawbridge.ModelRequest, _ func(drawbridge.ModelDelta)) (
			drawbridge.ModelResponse, error) {
			mu.Lock()
			defer mu.Unlock()
			if len(r.Messages) > 1 {
				return says("end"), nil
			}
			me := r.Messages[0].Text()
			var all []string
			for _, name := range names {
				all = append(all, string(name)+` {"by":"`+me+`"}`)
			}
			for range 1 + random.IntN(2) {
				n++
				task := map[string]any{"objective": fmt.Sprint("agent ", n)}
				chain := slices.Clone(chains[me])
				if k := random.IntN(4); k > 0 {
					own := []string{"task"}[:random.IntN(2)]
					for range k - 1 {
						own = append(own, patterns[random.IntN(len(patterns))])
					}
					task["tools"] = own
					chain = append(chain, own)
				}
				chains[fmt.Sprint("agent ", n)] = chain
				arguments, _ := json.Marshal(task)
				all = append(all, "task "+string(arguments))
			}
			return calls(all...), nil
		}
		tools := taskBox(names...)
		history := agent.NewMemoryHistory()
		run(t, open(t, agent.Options{Model: model, Tools: tools, History: history}), "root", agent.Completed)
		for i, c := range tools.made {
			var by struct{ By string }
			if err := json.Unmarshal(c.Arguments, &by); err != nil {
				t.Fatal(err)
			}
			chain := chains[by.By]
			if c.Name == "task" {
				chain = tools.callers[i].Tools
			}
			if !allowedByAll(t, chain, string(c.Name)) {
				t.Errorf("seed %d: %q called %s with the rights %q", seed, by.By, c.Name, chain)
			}
		}
		for _, e := range entries(t, history) {
			if e.Kind == agent.ResultEntry && strings.Contains(e.Result.Text, "exposes no tool") {
				refusals++
			}
			if e.Kind == agent.AgentEntry {
				if diff := cmp.Diff(len(chains[e.Text]), len(e.Rights.Tools)); diff != "" {
					t.Errorf("seed %d: the rights of %q on record: %s", seed, e.Text, diff)
				}
			}
		}
	}
	t.Logf("%d calls were refused", refusals)
	if refusals < 100 {
		t.Error("the trees try too little")
	}
}

// allowedByAll reports whether a name matches a pattern of each element.
func allowedByAll(t *testing.T, chain [][]string, name string) bool {
	t.Helper()
	for _, own := range chain {
		if !slices.ContainsFunc(own, func(pattern string) bool {
			ok, err := path.Match(pattern, name)
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}) {
			return false
		}
	}
	return true
}

func TestMayCall(t *testing.T) {
	for _, tt := range []struct {
		patterns [][]string
		name     drawbridge.CardName
		want     bool
	}{
		{nil, "a", true},
		{[][]string{{}}, "a", false},
		{[][]string{{"*"}}, "a", true},
		{[][]string{{"a*"}, {"*b"}}, "ab", true},
		{[][]string{{"a*"}, {"*b"}}, "ac", false},
		{[][]string{{"a*a"}}, "a", false},
		{[][]string{{"a*b*c"}}, "abbc", true},
		{[][]string{{"a*b*c"}}, "acb", false},
		{[][]string{{"**"}}, "", true},
		{[][]string{{"[a]"}}, "a", true},
		{[][]string{{"[a"}}, "[a", false},
		{[][]string{{"a"}, nil}, "a", false},
	} {
		if got := (agent.Identity{Tools: tt.patterns}).MayCall(tt.name); got != tt.want {
			t.Errorf("%v allow %q: %t", tt.patterns, tt.name, got)
		}
	}
}

// TestSampling has a server that asks for an answer of the model: it is written when the person allows it, within the
// budget, and is on record.
func TestSampling(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer agent.Answer
		limits agent.Amount
		want   string
	}{
		{"allowed", agent.Answer{Allow: true}, agent.Amount{}, `true {"content":{"text":"a haiku","type":"text"},` +
			`"model":"test/script","role":"assistant","stopReason":"endTurn"}`},
		{"refused", agent.Answer{}, agent.Amount{}, "false "},
		{"written by the person", agent.Answer{Allow: true, Content: json.RawMessage(`{"own":1}`)}, agent.Amount{},
			`true {"own":1}`},
		{"over budget", agent.Answer{Allow: true}, agent.Amount{Turns: 1}, "false "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tools := &box{}
			tools.call = func(ctx context.Context, _ agent.Identity, _ drawbridge.ToolCall, update func(agent.CallUpdate)) (
				agent.CallOutcome, error) {
				a, err := tools.ask(ctx, "s1", update, agent.CallUpdate{Question: &agent.Question{ID: "s1",
					Kind: agent.AskSampling, Server: "srv", Arguments: json.RawMessage(`{"systemPrompt":"poet","maxTokens":9,` +
						`"messages":[{"role":"user","content":{"type":"text","text":"write"}}]}`)}})
				return textOutcome(fmt.Sprint(a.Allow, " ", string(a.Content))), err
			}
			model := &script{info: drawbridge.ModelInfo{Provider: "test", Name: "script"}, answer: func(_ context.Context, _ int,
				r drawbridge.ModelRequest, _ func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error) {
				switch {
				case r.Instructions == "poet":
					if r.MaxOutput != 9 || len(r.Messages) != 1 || r.Messages[0].Text() != "write" || r.Tools != nil {
						t.Errorf("the model is asked %+v", r)
					}
					return says("a haiku"), nil
				case len(r.Messages) == 1:
					return calls("echo"), nil
				}
				return says("end"), nil
			}}
			history := agent.NewMemoryHistory()
			s := open(t, agent.Options{Model: model, Tools: tools, History: history, Budget: agent.NewBudget(tt.limits)})
			tt.answer.ID = "s1"
			_, _ = s.Run(t.Context(), prompt("x"), func(e agent.Event) {
				if e.Kind == agent.ToolAsked {
					err := s.Answer(t.Context(), tt.answer)
					if _, over := errors.AsType[*agent.BudgetError](err); over != (tt.limits.Turns > 0) {
						t.Error(err)
					}
				}
			})
			for _, e := range entries(t, history) {
				if e.Kind == agent.ResultEntry && e.Result.Text != tt.want {
					t.Errorf("the server is answered %s", e.Result.Text)
				}
				if e.Kind == agent.AnswerEntry && (tt.name != "allowed" || e.Text != "a haiku" || e.Usage.Output != 10) {
					t.Errorf("on record: %+v", e)
				}
			}
		})
	}
}
