package agent_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

// A clock is a Tools with one tool, "now".
type clock struct{}

func (clock) Brief(context.Context, agent.Identity, bool) (agent.Briefing, error) {
	return agent.Briefing{Own: []drawbridge.CardName{"now"}}, nil
}

func (clock) Select(context.Context, agent.Identity, string, []drawbridge.CardName) ([]drawbridge.ToolDefinition, error) {
	return []drawbridge.ToolDefinition{{Name: "now", Description: "Returns the time.",
		InputSchema: []byte(`{"type":"object","properties":{}}`)}}, nil
}

func (clock) Call(context.Context, agent.Identity, drawbridge.ToolCall, func(agent.CallUpdate)) (agent.CallOutcome, error) {
	return agent.CallOutcome{Result: drawbridge.Result{Raw: []byte(`{"content":[{"type":"text","text":"12:30"}]}`)}}, nil
}

func (clock) Answer(context.Context, agent.Answer) error { return errors.New("the clock asks nothing") }

// A session with tools of one's own. The model is a script here; package llm has real ones.
func Example() {
	model := answers(calls("now"), says("It is half past twelve."))
	session, err := agent.New(context.Background(), agent.Options{Model: model, Tools: clock{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	question := []drawbridge.MessagePart{{Text: "What time is it?"}}
	result, err := session.Run(context.Background(), question, func(e agent.Event) {
		if e.Kind == agent.ToolFinished {
			fmt.Println(e.Call.Name, "returned", e.Result.Text)
		}
	})
	fmt.Println(result.Text, result.Outcome, err)
	// Output:
	// now returned 12:30
	// It is half past twelve. completed <nil>
}
