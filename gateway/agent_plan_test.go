//go:build !nomcp

package gateway

import (
	"errors"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// TestAgentPlan presents plans through the card exit_plan_mode.
func TestAgentPlan(t *testing.T) {
	g := agentGateway(t, t.TempDir())
	tools := g.AgentTools("s1", AgentOptions{})
	defer tools.Close()
	const plan = "1. Read.\n2. Write.\n"
	for _, c := range []struct {
		name        string
		who         agent.Identity
		answer      agent.Answer
		asked       bool
		fails       bool
		want        string
		tool, input string
	}{
		{"yes", agent.Identity{Mode: agent.PlanOnly}, agent.Answer{Allow: true, Content: []byte(`{"mode":"default","note":"Ask first."}`)},
			true, false, "has ended. Carry out the plan.\nAsk first.", "", ""},
		{"no", agent.Identity{Mode: agent.PlanOnly}, agent.Answer{}, true, true, "not approved: the person said no. The plan mode goes on", "", ""},
		{"no person", agent.Identity{Mode: agent.PlanOnly}, agent.Answer{Reason: "with --print, no person can be asked"}, true, true,
			"not approved: with --print, no person can be asked.", "", ""},
		{"not planning", agent.Identity{Mode: agent.AskFirst}, agent.Answer{Allow: true}, false, true, "not in the plan mode", "", ""},
		{"sub-agent", agent.Identity{Mode: agent.PlanOnly, Agent: "1"}, agent.Answer{Allow: true}, false, true, "Only the session's own agent", "", ""},
		{"script", agent.Identity{Mode: agent.PlanOnly}, agent.Answer{Allow: true}, false, true, "Only the session's own agent", "run_python",
			`{"code":"tools.call('exit_plan_mode', plan='x')"}`},
	} {
		call := toolCall("exit_plan_mode", `{"plan":"1. Read.\n2. Write.\n"}`)
		if c.tool != "" {
			call = toolCall(c.tool, c.input)
		}
		asked := false
		c.who.Session = "s1"
		out, err := tools.Call(t.Context(), c.who, call, func(u agent.CallUpdate) {
			if u.Question == nil {
				return
			}
			asked = true
			if u.Question.Kind != agent.AskPlan || u.Question.Message != plan {
				t.Errorf("%s: the question is %+v", c.name, u.Question)
			}
			c.answer.ID = u.Question.ID
			if err := tools.Answer(t.Context(), c.answer); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
		if errors.Is(err, sandbox.ErrNoInterpreter) {
			continue
		}
		if err != nil || asked != c.asked || out.Result.IsError() != c.fails || !strings.Contains(out.Result.Text(), c.want) {
			t.Errorf("%s: asked %t, %s, %v", c.name, asked, out.Result.Raw, err)
		}
	}
}
