package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A printedAnswer is the output of a prompt in the format json.
type printedAnswer struct {
	Session string                `json:"sessionId"`
	Outcome agent.Outcome         `json:"outcome"`
	Text    string                `json:"text"`
	Turns   int                   `json:"turns"`
	Usage   drawbridge.ModelUsage `json:"usage"`
	// Cost is in US dollars; absent if the price of the model is not known.
	Cost  float64 `json:"cost,omitempty"`
	Error string  `json:"error,omitempty"`
}

// printAnswer runs one prompt. In the format text it prints the whole answer at the end; in stream-json it prints each
// event as a line. No person is asked: questions are answered with no.
func (a *app) printAnswer(ctx context.Context, s *agent.Session, prompt []drawbridge.MessagePart, format string) error {
	if format != "text" && format != "json" && format != "stream-json" {
		return usageError{fmt.Errorf("--output-format is text, json or stream-json, not %s", safetext.Exact(format))}
	}
	var text strings.Builder
	result, err := s.Run(ctx, prompt, func(e agent.Event) {
		switch {
		case format == "stream-json":
			line, marshalErr := json.Marshal(e)
			if marshalErr == nil {
				fmt.Fprintf(a.Out, "%s\n", line)
			}
		case e.Kind == agent.TextDelta && e.Agent == "":
			text.WriteString(e.Text)
		case e.Kind == agent.ModelRetried && e.Agent == "":
			text.Reset()
		case e.Kind == agent.TurnFinished && e.Agent == "" && text.Len() > 0:
			text.WriteString("\n\n")
		case e.Kind == agent.Notice:
			fmt.Fprintln(a.Err, safetext.Text(e.Text))
		}
		if e.Kind == agent.ToolAsked && e.Question != nil {
			a.denyUnasked(ctx, s, *e.Question)
		}
	})
	if format == "json" {
		out := printedAnswer{Session: s.Snapshot().Session, Outcome: result.Outcome, Text: result.Text, Turns: result.Turns,
			Usage: result.Usage, Cost: result.Cost}
		if err != nil {
			out.Error = err.Error()
		}
		if printErr := PrintJSON(a.Out, out); printErr != nil {
			return printErr
		}
	}
	if format == "text" {
		whole := strings.TrimSpace(text.String())
		if whole == "" {
			whole = strings.TrimSpace(result.Text)
		}
		if whole != "" {
			fmt.Fprintln(a.Out, safetext.Text(whole))
		}
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(a.Err, "run failed: %s\n", safetext.Text(err.Error()))
		return errAlreadyPrinted
	}
	return err
}

// denyUnasked answers a question that no person can be asked with no.
func (a *app) denyUnasked(ctx context.Context, s *agent.Session, q agent.Question) {
	if q.Kind == agent.AskPlan {
		safetext.Fprintf(a.Err, "the plan was not approved: with --print, no person is asked. --permission-mode default, acceptEdits or bypass lets the model act.\n")
		if err := s.Answer(ctx, agent.Answer{ID: q.ID, Reason: "with --print, no person can be asked"}); err != nil {
			safetext.Fprintf(a.Err, "answer the question: %v\n", err)
		}
		return
	}
	what := q.Tool
	switch {
	case q.Kind != agent.AskApproval && q.Kind != agent.AskScript:
		what = "the question of " + q.Server
	case q.Server != "" && q.Server != string(drawbridge.OwnServer):
		what += " of the server " + q.Server
	}
	if flow.AsksForValues(q.Reason) {
		safetext.Fprintf(a.Err, "%s was refused: with --print, no person is asked who could endorse its values:\n", safetext.Exact(what))
		for _, value := range flow.ReasonValues(q.Reason) {
			safetext.Fprintf(a.Err, "  %s\n", value)
		}
		safetext.Fprintf(a.Err, "Values in the prompt and of servers with \"trust\": \"trusted\" need no endorsement. docs/information-flow.md says more.\n")
	} else {
		safetext.Fprintf(a.Err, "%s was refused: with --print, no person is asked. --permission-mode acceptEdits or bypass, or a rule in [tools.policy], allows it.\n",
			safetext.Exact(what))
	}
	if err := s.Answer(ctx, agent.Answer{ID: q.ID}); err != nil {
		safetext.Fprintf(a.Err, "answer the question: %v\n", err)
	}
}
