package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/cards"
)

// An agentDelegate passes what Drawbridge's own cards want from the session of an agent on to it. Servers and scripts
// cannot reach it: only a direct call of the agent has an agentPeer.
type agentDelegate struct{}

var (
	_ cards.Delegate     = agentDelegate{}
	_ cards.PlanApprover = agentDelegate{}
)

// RunTask implements [cards.Delegate].
func (agentDelegate) RunTask(ctx context.Context, call drawbridge.Call, t cards.Task) (string, error) {
	peer, ok := call.Peer.(*agentPeer)
	if !ok {
		return "", &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: "delegate the task",
			Err: errors.New("only an agent of Drawbridge can delegate a task")}
	}
	task := agent.TaskRequest{ID: newQuestionID(), Objective: t.Objective, Tools: t.Tools}
	answer, err := peer.tools.ask(ctx, task.ID, func() { peer.update(agent.CallUpdate{Task: &task}) })
	if err != nil {
		return "", err
	}
	var report agent.TaskReport
	if err := json.Unmarshal(answer.Content, &report); err != nil {
		return "", fmt.Errorf("read the report of the task: %w", err)
	}
	if report.Error != "" {
		return "", cards.ToolError("The task was not completed: " + report.Error + "\n" + report.Report)
	}
	return report.Report, nil
}

// ApprovePlan implements [cards.PlanApprover].
func (agentDelegate) ApprovePlan(ctx context.Context, call drawbridge.Call, plan string) (bool, string, error) {
	peer, ok := call.Peer.(*agentPeer)
	switch {
	case !ok || peer.who.Agent != "":
		return false, "", cards.ToolError("Only the session's own agent can present a plan. Put the plan into your report.")
	case call.Caller.Agent.Mode != drawbridge.PlanOnly:
		return false, "", cards.ToolError("The session is not in the plan mode, so the plan needs no approval.")
	}
	q := agent.Question{ID: newQuestionID(), Kind: agent.AskPlan, Tool: string(peer.call.Name), Message: plan}
	answer, err := peer.tools.ask(ctx, q.ID, func() { peer.update(agent.CallUpdate{Question: &q}) })
	if err != nil {
		return false, "", err
	}
	if !answer.Allow {
		reason := cmp.Or(answer.Reason, "the person said no")
		return false, "The plan was not approved: " + reason + ". The plan mode goes on: change the plan, or end your answer.", nil
	}
	var report agent.PlanReport
	if err := json.Unmarshal(answer.Content, &report); err != nil {
		return false, "", fmt.Errorf("read the answer to the plan: %w", err)
	}
	return true, "The person approved the plan, and the plan mode has ended. Carry out the plan.\n" + report.Note, nil
}

var _ cards.CallCounter = (*agentPeer)(nil)

// CountCall implements [cards.CallCounter]. If the session limits calls, it is asked first.
func (p *agentPeer) CountCall(ctx context.Context, tool drawbridge.CardName) error {
	if !p.who.CallsLimited {
		p.scriptCalls.Add(1)
		return nil
	}
	r := agent.CallReservation{ID: newQuestionID(), Tool: tool}
	answer, err := p.tools.ask(ctx, r.ID, func() { p.update(agent.CallUpdate{Reserve: &r}) })
	switch {
	case err != nil:
		return err
	case !answer.Allow:
		return errors.New(cmp.Or(answer.Reason, "the session refused it"))
	}
	return nil
}
