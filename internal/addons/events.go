package addons

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Client describes the client of a call or of a session.
type Client struct {
	Principal string `json:"principal,omitempty"`
	Name      string `json:"name,omitempty"`
	Session   string `json:"session,omitempty"`
	// Dir is the working directory of a client that is connected by standard input.
	Dir string `json:"dir,omitempty"`
}

// A Call describes a call of a tool in an event for an addon.
type Call struct {
	// Tool is the public name of the tool. Server is the server of the tool; empty for Drawbridge's own tools.
	Tool   string `json:"tool"`
	Server string `json:"server,omitempty"`
	// Run is the key of the agent's run that the call belongs to.
	Run       string          `json:"run,omitempty"`
	Client    Client          `json:"client"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Result and Error are the outcome of the call, for tool:after. Exactly one of them is set.
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// A ShellCommand describes a command in an event for an addon, before the command is started.
type ShellCommand struct {
	Command string `json:"command"`
	Dir     string `json:"dir"`
	Client  Client `json:"client"`
}

// Wants reports whether the addon must be called for an event: it has a handler for the event, or, for tool:before, a
// gate. The handler or gate must match the tool; tool is "" for events without a tool.
func (a *Addon) Wants(event, tool string) bool {
	return len(a.handlers(event, tool)) > 0 || event == ToolBefore && a.gate(tool) != nil
}

// gate returns the first gate of the manifest that matches a tool, or nil.
func (a *Addon) gate(tool string) *Gate {
	for i, g := range a.found.Gates {
		if matches(g.MatchTool, tool) {
			return &a.found.Gates[i]
		}
	}
	return nil
}

// BeforeTool sends tool:before to the handlers in their order. It returns new arguments for the call, or nil if the
// arguments stay the same. blocked is the reason why the call is blocked, or "". If a gate of the manifest matches, the
// call is blocked without sending an event. BeforeTool returns an error if a handler failed and OnError is not
// "continue".
func (a *Addon) BeforeTool(ctx context.Context, c Call) (arguments json.RawMessage, blocked string, err error) {
	if g := a.gate(c.Tool); g != nil {
		return nil, clip(g.Reason), nil
	}
	for _, h := range a.handlers(ToolBefore, c.Tool) {
		answer, err := a.handle(ctx, h, c, map[string]string{Transform: "arguments", Block: "block"}[h.Kind])
		if err != nil {
			return nil, "", err
		}
		switch {
		case answer == nil:
		case h.Kind == Block:
			reason, ok := rawjson.DecodeString(answer)
			if reason = clip(reason); !ok || reason == "" {
				reason = "it gave no reason"
			}
			return nil, reason, nil
		default:
			c.Arguments, arguments = answer, answer
		}
	}
	return arguments, "", nil
}

// AfterTool sends tool:after to the handlers in their order. It returns a new result for the call, or nil if the result
// stays the same. It returns an error if a handler failed and OnError is not "continue".
func (a *Addon) AfterTool(ctx context.Context, c Call) (result json.RawMessage, err error) {
	for _, h := range a.handlers(ToolAfter, c.Tool) {
		answer, err := a.handle(ctx, h, c, "result")
		if err != nil {
			return nil, err
		}
		if answer != nil && c.Result != nil {
			c.Result, result = answer, answer
		}
	}
	return result, nil
}

// ShellEnv sends shell:env to the handlers in their order. It returns variables for the environment of the command, as
// "name=value". It returns an error if a handler failed and OnError is not "continue".
func (a *Addon) ShellEnv(ctx context.Context, c ShellCommand) (env []string, err error) {
	for _, h := range a.handlers(ShellEnv, "") {
		answer, err := a.handle(ctx, h, c, "env")
		if err != nil {
			return nil, err
		}
		var variables map[string]string
		if answer != nil && json.Unmarshal(answer, &variables) != nil {
			return nil, a.tolerate(h, errors.New("env must be an object of texts"))
		}
		for name, value := range variables {
			if !isVariable(name) || strings.ContainsRune(value, 0) {
				return nil, a.tolerate(h, fmt.Errorf("%q is not the name of a variable", clip(name)))
			}
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return env, nil
}

func isVariable(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '=' || r >= 0x7f })
}

// Session sends the event session:start or session:end to each handler for it. It does not wait for answers.
func (a *Addon) Session(ctx context.Context, event string, c Client) {
	for range a.handlers(event, "") {
		a.tell(ctx, event, map[string]any{"client": c})
	}
}

// CallTool sends a call of one of the addon's own tools, and returns an MCP result. The program answers with a text, or
// with content in the format of MCP.
func (a *Addon) CallTool(ctx context.Context, c Call) (json.RawMessage, error) {
	answer, err := a.ask(ctx, toolCall, c)
	if err != nil {
		return nil, err
	}
	if text, ok := rawjson.DecodeString(rawjson.Get(answer, "text")); ok {
		return json.Marshal(map[string]any{"content": []map[string]string{{"type": "text", "text": text}},
			"isError": string(rawjson.Get(answer, "isError")) == "true"})
	}
	if content := rawjson.Get(answer, "content"); len(content) == 0 || content[0] != '[' {
		return nil, errors.New("its answer has neither text nor content")
	}
	return answer, nil
}

func (a *Addon) handlers(event, tool string) (all []Handler) {
	for _, h := range a.found.Handlers {
		if h.Event == event && matches(h.MatchTool, tool) {
			all = append(all, h)
		}
	}
	return all
}

// handle sends an event to a handler, and returns the member of the answer with the given name, or nil. If the answer
// contains a member that only other kinds of handlers may set, handle returns an error: for example, a gate must not
// set arguments.
func (a *Addon) handle(ctx context.Context, h Handler, params any, member string) (json.RawMessage, error) {
	if h.Kind == Observe {
		a.tell(ctx, h.Event, params)
		return nil, nil
	}
	answer, err := a.ask(ctx, h.Event, params)
	if err != nil {
		return nil, a.tolerate(h, err)
	}
	for _, other := range []string{"arguments", "block", "result", "env"} {
		if other != member && rawjson.Get(answer, other) != nil {
			return nil, a.tolerate(h, fmt.Errorf("a handler of the kind %s for %s must not answer with %q", h.Kind, h.Event, other))
		}
	}
	value := bytes.TrimSpace(rawjson.Get(answer, member))
	switch {
	case len(value) == 0 || string(value) == "null", member == "block" && string(value) == "false":
		return nil, nil
	case member != "block" && value[0] != '{':
		return nil, a.tolerate(h, fmt.Errorf("%q must be an object", member))
	}
	return value, nil
}

// tolerate logs the failure of a handler. It returns the failure, or nil if OnError is "continue".
func (a *Addon) tolerate(h Handler, err error) error {
	a.log.Warn("an addon failed", "event", h.Event, "err", err)
	if a.found.OnError == "continue" {
		return nil
	}
	return err
}

// Try sends a sample event for each handler that may change or block a call, and writes the answers to out. It is for
// authors of addons.
func (a *Addon) Try(ctx context.Context, out io.Writer) error {
	var errs []error
	for _, h := range a.found.Handlers {
		if !Fires(h.Event) || h.Kind == Observe {
			continue
		}
		sample := Call{Tool: "read", Client: Client{Name: "addon-check"}, Arguments: json.RawMessage(`{"path":"README.md"}`)}
		if h.Event == ToolAfter {
			sample.Result = json.RawMessage(`{"content":[{"type":"text","text":"hello"}]}`)
		}
		var params any = sample
		if h.Event == ShellEnv {
			params = ShellCommand{Command: "env", Dir: a.found.Dir, Client: sample.Client}
		}
		answer, err := a.ask(ctx, h.Event, params)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", h.Event, err))
			continue
		}
		safetext.Fprintf(out, "%s (%s): %s\n", h.Event, h.Kind, clip(string(answer)))
	}
	return errors.Join(errs...)
}
