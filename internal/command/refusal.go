package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// The faults in this file name the rule that hides a tool or denies a call, or the reason why the deck omits a tool.
// Only the user at the command line may receive this information, because that user wrote the rules.

// unknownToolFault returns the fault for a tool name that the caller cannot use. If a rule hides the tool, the fault
// names the rule. If the deck omits the tool, the fault states the reason. Otherwise it suggests the listed tool with
// the most similar name, if there is one. params are the params of the call, or nil.
func (c runner) unknownToolFault(name string, params json.RawMessage) error {
	f := &drawbridge.Fault{Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound, Step: "unknown tool " + name,
		Next: "drawbridge tools list"}
	if e, err := c.g.Explain(c.caller, name, rawjson.Get(params, "arguments")); err == nil && e.Hidden {
		f.Code, f.Step, f.Err = drawbridge.PolicyBlocked, "tool "+name+" is hidden", errors.New(withPosition(e.Why, e.At))
		f.Next = "drawbridge policy explain " + name
		return f
	}
	if why := c.omissionReason(name); why != "" {
		f.Step, f.Err = "tool "+name+" is left out", errors.New(why)
		return f
	}
	if near := c.nearestTool(name); near != "" {
		f.Err = fmt.Errorf("did you mean %s?", near)
	}
	return f
}

// noWorkspaceFault returns the fault for a tool of the workspace, if there is no workspace.
func noWorkspaceFault() error {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.NotFound, Step: "there is no workspace yet",
		Next: "drawbridge workspace init"}
}

// explainDenial adds the rule that denies a call to err, the fault of the call, and returns the result. If no rule
// denies the call, it returns err unchanged.
func (c runner) explainDenial(name string, params json.RawMessage, err error) error {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Code != drawbridge.PolicyBlocked {
		return err
	}
	e, denied := c.denial(name, params)
	if !denied {
		return err // another guard refused the call
	}
	told := *f
	told.Err, told.Next = fmt.Errorf("%w: %s", f.Err, withPosition(e.Why, e.At)), "drawbridge policy explain "+name
	return &told
}

// denial returns the verdict of the rules on a call, and reports whether the rules deny the call.
func (c runner) denial(name string, params json.RawMessage) (e gateway.Explanation, denied bool) {
	e, err := c.g.Explain(c.caller, name, rawjson.Get(params, "arguments"))
	return e, err == nil && e.Effect == drawbridge.Deny.String()
}

// withPosition returns a reason, followed by the position of the rule in parentheses unless the position is empty.
func withPosition(why, position string) string {
	if position == "" {
		return why
	}
	return fmt.Sprintf("%s (%s)", why, position)
}

// omissionReason returns the reason why the deck omits a tool that its server lists. It returns "" for any other name.
func (c runner) omissionReason(name string) string {
	for _, m := range c.g.Deck().ServerSummaries() {
		own, ok := strings.CutPrefix(name, string(m.Server)+drawbridge.NameSeparator)
		if !ok {
			continue
		}
		for _, l := range m.Omitted {
			if l.Kind == "tool" && l.Name == own {
				return l.Reason
			}
		}
	}
	return ""
}

// nearestTool returns the listed tool with the most similar name, or "" if no name is similar. If the name begins with
// the ID of a server, only the tools of that server are compared.
func (c runner) nearestTool(name string) string {
	id, ok := c.serverOfTool(name)
	prefix := ""
	if ok {
		prefix = string(id) + drawbridge.NameSeparator
	}
	var known []string
	for _, spec := range c.g.Deck().Items(c.caller, mcp.MethodToolsList) {
		if own, ok := strings.CutPrefix(string(spec.Name), prefix); ok {
			known = append(known, own)
		}
	}
	if near := configfile.Nearest(strings.TrimPrefix(name, prefix), known); near != "" {
		return prefix + near
	}
	return ""
}

// checkArguments returns a fault if the arguments of a call lack a required argument, or have one that the tool's input
// schema forbids. Such a call is refused without a request to the server. If an argument is missing, the fault also
// names the given arguments that the schema does not list.
func checkArguments(spec drawbridge.Spec, arguments json.RawMessage) error {
	schema := rawjson.Get(spec.Definition, "inputSchema")
	var missing, unknown []string
	known := memberNames(rawjson.Get(schema, "properties"))
	for raw := range rawjson.Elements(rawjson.Get(schema, "required")) {
		if name, ok := rawjson.DecodeString(raw); ok && rawjson.Get(arguments, name) == nil {
			missing = append(missing, name)
		}
	}
	closed := string(rawjson.Get(schema, "additionalProperties")) == "false"
	open := rawjson.Get(schema, "patternProperties") != nil
	for _, name := range memberNames(arguments) {
		if (closed || len(missing) > 0) && !open && !slices.Contains(known, name) {
			unknown = append(unknown, fmt.Sprintf("%q", name))
		}
	}
	var wrong []string
	if len(unknown) > 0 {
		wrong = append(wrong, fmt.Sprintf("it does not take %s", strings.Join(unknown, ", ")))
	}
	if len(missing) > 0 {
		wrong = append(wrong, "it requires "+strings.Join(missing, ", "))
	}
	if len(wrong) == 0 {
		return nil
	}
	if len(known) > 0 {
		wrong = append(wrong, "its arguments are "+strings.Join(known, ", "))
	}
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput,
		Step: fmt.Sprintf("arguments of %s", spec.Name), Err: errors.New(strings.Join(wrong, "; ")),
		Next: "drawbridge tools show " + string(spec.Name)}
}

// memberNames returns the names of the members of a JSON object.
func memberNames(object json.RawMessage) (names []string) {
	for m := range rawjson.Members(object) {
		if name, ok := rawjson.DecodeString(m.Name); ok {
			names = append(names, name)
		}
	}
	return names
}
