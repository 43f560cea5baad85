package cards

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

const (
	// defaultFoundTools is how many tools a search returns by default, and maxFoundTools the maximum.
	defaultFoundTools, maxFoundTools = 10, 50
)

// A ScriptTools is the deck, as scripts use it. Every method decides for the caller that it is given.
type ScriptTools interface {
	// Call runs a tools/call, with all checks.
	Call(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error)
	// Tools returns the tools that the caller may call.
	Tools(caller drawbridge.Caller) []drawbridge.Spec
	// Find returns the tools that match a query best, the best first.
	Find(ctx context.Context, caller drawbridge.Caller, query string, limit int) []drawbridge.Spec
}

// A scriptHost answers the requests of one script. Its caller has the kind Sandbox and the rights of the caller that
// started the script, narrowed to the requested tools.
type scriptHost struct {
	tools ScriptTools
	// call is the call of run_python, patterns are the requested tools; empty for all.
	call     drawbridge.Call
	patterns []string
}

var _ sandbox.Directory = (*scriptHost)(nil)

func newScriptHost(tools ScriptTools, call drawbridge.Call, patterns []string) *scriptHost {
	call.Caller.StartedBy, call.Caller.Kind = call.Caller.Kind, drawbridge.Sandbox
	return &scriptHost{tools: tools, call: call, patterns: patterns}
}

// isRequested reports whether the script asked for the tool.
func (h *scriptHost) isRequested(name drawbridge.CardName) bool {
	return len(h.patterns) == 0 || slices.ContainsFunc(h.patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, string(name))
		return ok && err == nil
	})
}

// specs returns the tools that the script may call.
func (h *scriptHost) specs() []drawbridge.Spec {
	return slices.DeleteFunc(h.tools.Tools(h.call.Caller), func(s drawbridge.Spec) bool { return !h.isRequested(s.Name) })
}

// find returns the tool that a script means: by its listed name, or by the attributes of the module tools, in which
// characters that Python does not allow are underscores.
func (h *scriptHost) find(name string) (drawbridge.Spec, bool) {
	specs := h.specs()
	for _, s := range specs {
		if string(s.Name) == name {
			return s, true
		}
	}
	want := attributeName(name)
	for _, s := range specs {
		if attributeName(string(s.Name)) == want || s.Server != "" && attributeName(string(s.Server)+"."+s.Tool) == want {
			return s, true
		}
	}
	return drawbridge.Spec{}, false
}

// attributeName returns a name in the form in which names of tools and Python attributes are compared.
func attributeName(name string) string {
	server, tool, ok := strings.Cut(name, ".")
	if !ok {
		if server, tool, ok = strings.Cut(name, "__"); !ok {
			return naming.Canonical(name)
		}
	}
	return naming.Canonical(server) + "." + naming.Canonical(tool)
}

// Call calls a tool for the script.
func (h *scriptHost) Call(ctx context.Context, c sandbox.ToolCall) sandbox.Reply {
	spec, ok := h.find(c.Name)
	if !ok {
		return sandbox.Reply{Err: h.unknownTool(c.Name)}
	}
	call := h.call
	call.Method = mcp.MethodToolsCall
	call.Params = rawjson.Apply(nil, rawjson.Put(rawjson.Quote(string(spec.Name)), "name"),
		rawjson.Put(c.Arguments, "arguments"))
	result, err := h.tools.Call(ctx, call)
	if err != nil {
		return sandbox.Reply{Err: callError(err)}
	}
	return sandbox.Reply{Result: result.Raw}
}

// unknownTool returns the error for a name that the script may not call: the same for names that do not exist.
func (h *scriptHost) unknownTool(name string) error {
	return &sandbox.CallError{Code: string(drawbridge.NotFound), Message: "unknown tool " + name,
		Next: "tools.search finds tools, tools.names lists them"}
}

// callError returns the error of a call for the script.
func callError(err error) error {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok {
		return &sandbox.CallError{Message: "internal error"}
	}
	return &sandbox.CallError{Code: string(f.Code), Message: f.Error(), Next: f.Next}
}

// Search implements [sandbox.Directory].
func (h *scriptHost) Search(ctx context.Context, query string, limit int) (json.RawMessage, error) {
	if limit <= 0 {
		limit = defaultFoundTools
	}
	found := []listedTool{}
	for _, s := range h.tools.Find(ctx, h.call.Caller, query, maxFoundTools) {
		if len(found) < min(limit, maxFoundTools) && h.isRequested(s.Name) {
			found = append(found, listedTool{Name: s.Name, Server: string(s.Server), Title: s.Title, Summary: s.Summary})
		}
	}
	return json.Marshal(map[string]any{"tools": found})
}

// Describe implements [sandbox.Directory].
func (h *scriptHost) Describe(_ context.Context, name string) (json.RawMessage, error) {
	spec, ok := h.find(name)
	if !ok {
		return nil, h.unknownTool(name)
	}
	described := struct {
		Name        drawbridge.CardName `json:"name"`
		Description string              `json:"description"`
		Input       json.RawMessage     `json:"input_schema"`
		Output      json.RawMessage     `json:"output_schema,omitempty"`
	}{
		Name: spec.Name, Description: rawjson.GetString(spec.Definition, "description"),
		Input: rawjson.Get(spec.Definition, "inputSchema"), Output: rawjson.Get(spec.Definition, "outputSchema"),
	}
	return json.Marshal(described)
}

// Names implements [sandbox.Directory].
func (h *scriptHost) Names(context.Context) ([]string, error) {
	var names []string
	for _, s := range h.specs() {
		names = append(names, string(s.Name))
	}
	return names, nil
}
