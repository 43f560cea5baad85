package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/tui"
)

// jobs lists the commands in the background, or stops one, with the tool process. A poll is left to the model: it would
// miss what a person had polled.
func (c sessionCommands) jobs(ctx context.Context, args string) (tui.Output, error) {
	verb, id, _ := strings.Cut(args, " ")
	input := map[string]string{"action": "list"}
	switch {
	case verb == "" || verb == "list":
	case verb == "stop" && strings.TrimSpace(id) != "":
		input = map[string]string{"action": "stop", "id": strings.TrimSpace(id)}
	case verb == "stop":
		return tui.Output{}, errors.New("/jobs stop: the ID of the job is missing; /jobs lists them")
	default:
		return tui.Output{}, badVerb("jobs", verb, "list (show the commands in the background)", "stop ID (end one)")
	}
	return c.callOwn(ctx, "process", input)
}

// callOwn calls one of Drawbridge's own tools for the person, who chose exactly this call: only a rule can require a
// further answer. The call goes the way of all calls of the session.
func (c sessionCommands) callOwn(ctx context.Context, tool drawbridge.CardName, input map[string]string) (tui.Output, error) {
	tools, err := c.h.current().toolsOrError()
	if err != nil {
		return tui.Output{}, err
	}
	arguments, err := json.Marshal(input)
	if err != nil {
		return tui.Output{}, err
	}
	who := c.identity()
	who.Mode = agent.Bypass
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out, err := tools.Call(ctx, who, drawbridge.ToolCall{ID: "command", Name: tool, Arguments: arguments}, func(u agent.CallUpdate) {
		if u.Question != nil {
			cancel(errors.New("a rule requires an approval: ask the model to do it, and answer its question"))
		}
	})
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	if err != nil {
		return tui.Output{}, err
	}
	if out.Result.IsError() {
		return tui.Output{}, errors.New(safetext.Text(out.Result.Text()))
	}
	return tui.Output{Text: fenced(out.Result.Text())}, nil
}
