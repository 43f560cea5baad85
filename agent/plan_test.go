package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

// planBox are tools that present a plan. The result is the decision.
func planBox() *box {
	tools := taskBox("exit_plan_mode")
	other := tools.call
	tools.call = func(ctx context.Context, who agent.Identity, c drawbridge.ToolCall, update func(agent.CallUpdate)) (agent.CallOutcome, error) {
		if c.Name != "exit_plan_mode" {
			return other(ctx, who, c, update)
		}
		a, err := tools.ask(ctx, "plan", update, agent.CallUpdate{Question: &agent.Question{ID: "plan", Kind: agent.AskPlan, Message: "1. x"}})
		text, _ := json.Marshal(a)
		return textOutcome(string(text)), err
	}
	return tools
}

// TestPlan has a person decide on a plan: a yes returns to the mode of before, and never to a wider one.
func TestPlan(t *testing.T) {
	const note = "Permission mode: the person is asked before calls that may change something."
	for _, tt := range []struct {
		name    string
		options agent.PermissionMode   // with which the session starts
		modes   []agent.PermissionMode // that the person sets, in order
		resumed bool
		during  agent.PermissionMode // that the person sets while the plan waits
		allow   bool
		want    agent.PermissionMode
		event   agent.PermissionMode
	}{
		{"yes", "", []agent.PermissionMode{agent.PlanOnly}, false, "", true, agent.AskFirst, agent.AskFirst},
		{"no", "", []agent.PermissionMode{agent.PlanOnly}, false, "", false, agent.PlanOnly, ""},
		{"started with plan", agent.PlanOnly, nil, false, "", true, agent.AskFirst, agent.AskFirst},
		{"edits before", "", []agent.PermissionMode{agent.AcceptEdits, agent.PlanOnly, agent.PlanOnly}, false, "", true, agent.AcceptEdits, agent.AcceptEdits},
		{"bypass before", agent.Bypass, []agent.PermissionMode{agent.PlanOnly}, false, "", true, agent.Bypass, agent.Bypass},
		{"resumed", "", []agent.PermissionMode{agent.AcceptEdits, agent.PlanOnly}, true, "", true, agent.AcceptEdits, agent.AcceptEdits},
		{"resumed after bypass", "", []agent.PermissionMode{agent.Bypass, agent.PlanOnly}, true, "", true, agent.AskFirst, agent.AskFirst},
		{"resumed with plan", agent.PlanOnly, []agent.PermissionMode{agent.Bypass}, true, "", true, agent.AskFirst, agent.AskFirst},
		{"changed meanwhile", "", []agent.PermissionMode{agent.AcceptEdits, agent.PlanOnly}, false, agent.AskFirst, true, agent.AskFirst, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			history := agent.NewMemoryHistory()
			model := answers(says("first"), calls(`exit_plan_mode {"plan":"1. x"}`), says("done"))
			o := agent.Options{Model: model, Tools: planBox(), History: history, Mode: tt.options}
			s := open(t, o)
			run(t, s, "x", agent.Completed)
			for _, mode := range tt.modes {
				if err := s.SetMode(t.Context(), mode); err != nil {
					t.Fatal(err)
				}
			}
			if tt.resumed {
				s = open(t, o)
			}
			var changed []agent.PermissionMode
			_, err := s.Run(t.Context(), prompt("plan"), func(e agent.Event) {
				switch e.Kind {
				case agent.ModeChanged:
					changed = append(changed, e.Mode)
				case agent.ToolAsked:
					if tt.during != "" {
						if err := s.SetMode(t.Context(), tt.during); err != nil {
							t.Error(err)
						}
					}
					if err := s.Answer(t.Context(), agent.Answer{ID: e.Question.ID, Allow: tt.allow, Always: true, Reason: "too short"}); err != nil {
						t.Error(err)
					}
				}
			})
			if got := s.Snapshot().Mode; err != nil || got != tt.want {
				t.Errorf("the mode is %s, %v", got, err)
			}
			if want := slices.DeleteFunc([]agent.PermissionMode{tt.event}, func(m agent.PermissionMode) bool { return m == "" }); !slices.Equal(changed, want) {
				t.Errorf("events say %v, want %v", changed, want)
			}
			want := `{"id":"plan","allow":false,"reason":"too short"}`
			if tt.allow {
				want = fmt.Sprintf(`{"id":"plan","allow":true,"content":{"mode":%q,"note":`, tt.want)
			}
			if tt.want == agent.AskFirst {
				want += `"` + note + `"}}`
			}
			if got := lastResults(t, model)[0].Text; !strings.HasPrefix(got, want) {
				t.Errorf("the call gets %s, want %s", got, want)
			}
		})
	}
}

// TestPlanOfASubAgent has a sub-agent present a plan: a person's yes does not change the mode of the session.
func TestPlanOfASubAgent(t *testing.T) {
	model := of(map[string][]drawbridge.ModelResponse{
		"go":  {calls(`task {"objective":"sub"}`), says("end")},
		"sub": {calls(`exit_plan_mode {}`), says("report")},
	})
	s := open(t, agent.Options{Model: model, Tools: planBox(), Mode: agent.PlanOnly})
	if _, err := s.Run(t.Context(), prompt("go"), func(e agent.Event) {
		if e.Kind == agent.ToolAsked {
			if err := s.Answer(t.Context(), agent.Answer{ID: "plan", Allow: true}); err != nil {
				t.Error(err)
			}
		}
		if e.Kind == agent.ToolFinished && e.Call.Name == "exit_plan_mode" && e.Result.Text !=
			`{"id":"plan","allow":false,"reason":"only the session's own agent can present a plan"}` {
			t.Error(e.Result.Text)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if mode := s.Snapshot().Mode; mode != agent.PlanOnly {
		t.Errorf("the mode is %s", mode)
	}
	// Nothing waits any more: a late answer changes nothing.
	if err := s.Answer(t.Context(), agent.Answer{ID: "plan", Allow: true}); err == nil || s.Snapshot().Mode != agent.PlanOnly {
		t.Errorf("a late answer: %v, %s", err, s.Snapshot().Mode)
	}
}

// TestModelKnowsOfTheSecondPlan begins to plan again after a plan was approved: the model is told with the next prompt.
func TestModelKnowsOfTheSecondPlan(t *testing.T) {
	model := answers(calls(`exit_plan_mode {"plan":"1. x"}`), says("done"), says("planned"))
	s := open(t, agent.Options{Model: model, Tools: planBox(), Mode: agent.PlanOnly})
	if _, err := s.Run(t.Context(), prompt("plan"), func(e agent.Event) {
		if e.Kind == agent.ToolAsked {
			if !strings.Contains(e.Question.Reason, "default") {
				t.Errorf("the question does not name the mode: %q", e.Question.Reason)
			}
			if err := s.Answer(t.Context(), agent.Answer{ID: "plan", Allow: true}); err != nil {
				t.Error(err)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetMode(t.Context(), agent.PlanOnly); err != nil {
		t.Fatal(err)
	}
	run(t, s, "again", agent.Completed)
	last := model.requests[len(model.requests)-1]
	if text := last.Messages[len(last.Messages)-1].Text(); !strings.Contains(text, "Permission mode: plan") {
		t.Errorf("the model got %q", text)
	}
}
