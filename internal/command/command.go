// Package command carries out the requests of the command line on a gateway: that of the hub, where one runs, or one of
// the process's own. The answers are the same in both, so a command prints the same.
//
// A request is made by the user of the operating system. It passes the deck like every other call: rules, approvals and
// the audit apply. While it runs, events report what it waits for: a server that starts, the progress of a tool, a
// person's approval. The package prints nothing and reads no configuration.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// The methods of Drawbridge's own. The methods of MCP that a request may have are tools/call, prompts/get and
// resources/read.
const (
	// MethodTools lists the tools. Params are ToolsParams, the result is a ToolList.
	MethodTools = "drawbridge/tools"
	// MethodTool finds one tool by its name. Params are ToolParams, the result is a Tool.
	MethodTool = "drawbridge/tool"
	// MethodMount mounts a server. Params are ServerParams, the result is a MountResult.
	MethodMount = "drawbridge/mount"
	// MethodItems lists the items of one server. Params are ServerParams, the result is a list of Tool.
	MethodItems = "drawbridge/items"
	// MethodSearch finds tools for a question. Params are SearchParams, the result is a SearchResult.
	MethodSearch = "drawbridge/search"
)

// A Request is one request of the command line.
type Request struct {
	// Method is a method of MCP or of Drawbridge, and Params its params.
	Method string  `json:"method"`
	Params RawText `json:"params,omitempty"`
}

// NewRequest returns a request with params, which must be encodable as JSON. The bytes of a json.RawMessage stay.
func NewRequest(method string, params any) (Request, error) {
	if raw, ok := params.(json.RawMessage); ok {
		return Request{Method: method, Params: RawText(raw)}, nil
	}
	text, err := json.Marshal(params)
	return Request{Method: method, Params: text}, err
}

// Name returns the name of the tool or prompt that a call names; empty for every other request.
func (r Request) Name() string { return rawjson.GetString(json.RawMessage(r.Params), "name") }

// Caller returns the caller of the command line: the user at the terminal.
func Caller(g *gateway.Gateway) drawbridge.Caller {
	c := g.Owner()
	c.Kind = drawbridge.Author
	c.Era, c.Protocol = drawbridge.Modern, mcp.Version20260728
	return c
}

// Run carries out a request of a command that was started in dir, on a gateway that runs, and returns the result. It
// calls event with what the request waits for, from one goroutine at a time and not after it has returned. The error is
// a *drawbridge.Fault, or ctx's.
func Run(ctx context.Context, g *gateway.Gateway, dir string, r Request, event func(Event)) (json.RawMessage, error) {
	w := newWaitReporter(g, event)
	defer w.close()
	c := runner{g: g, caller: Caller(g), wait: w}
	c.caller.Dir = dir
	switch r.Method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead:
		return c.call(ctx, r)
	case MethodTools:
		return answer(ctx, r, c.listTools)
	case MethodTool:
		return answer(ctx, r, c.showTool)
	case MethodMount:
		return answer(ctx, r, c.mountServer)
	case MethodItems:
		return answer(ctx, r, c.listItems)
	case MethodSearch:
		return answer(ctx, r, c.search)
	}
	return nil, invalidRequest(fmt.Errorf("unknown method %.40q: use the version of drawbridge that runs the hub",
		r.Method))
}

// answer decodes the params of a request, calls do, and encodes its result.
func answer[P, R any](ctx context.Context, r Request, do func(context.Context, P) (R, error)) (json.RawMessage, error) {
	var params P
	if err := json.Unmarshal(r.Params, &params); err != nil {
		return nil, invalidRequest(fmt.Errorf("invalid params of %s", r.Method))
	}
	result, err := do(ctx, params)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

func invalidRequest(err error) error {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "read the request", Err: err}
}

// A runner carries out one request.
type runner struct {
	g      *gateway.Gateway
	caller drawbridge.Caller
	wait   *waitReporter
}

// call makes a call of MCP. For an unknown tool it mounts the server that could have it first.
func (c runner) call(ctx context.Context, r Request) (json.RawMessage, error) {
	name := ""
	if r.Method == mcp.MethodToolsCall {
		name = r.Name()
		if spec, err := c.findTool(ctx, name); err == nil {
			err := checkArguments(spec, rawjson.Get(r.Params, "arguments"))
			if _, denied := c.denial(name, json.RawMessage(r.Params)); err != nil && !denied { // a denied call goes on record
				return nil, err
			}
			defer c.wait.watchStarts(spec.Server)()
		} else if !isUnknown(err) {
			return nil, err
		}
	}
	params := rawjson.Apply(json.RawMessage(r.Params), rawjson.Put(json.RawMessage(progressToken), "_meta", mcp.MetaProgressToken))
	result, err := c.g.Deck().Do(ctx, drawbridge.Call{Caller: c.caller, Method: r.Method, Params: params, Peer: c.wait})
	switch {
	case name == "":
	case isUnknown(err):
		err = c.unknownToolFault(name, json.RawMessage(r.Params))
	default:
		err = c.explainDenial(name, json.RawMessage(r.Params), err)
	}
	return result.Raw, err
}

// progressToken is the token under which a call asks its server for progress.
const progressToken = `"drawbridge-command"`

func isUnknown(err error) bool {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	return ok && f.Kind == drawbridge.UnknownCapability
}

// findTool returns the tool with a name. For an unknown name it mounts the server that the name begins with. If no such
// server is configured, it waits for the servers that were never listed.
func (c runner) findTool(ctx context.Context, name string) (drawbridge.Spec, error) {
	if spec, ok := c.g.Deck().FindCard(c.caller, drawbridge.CardName(name)); ok {
		return spec, nil
	}
	if _, _, hidden := c.g.Deck().FindUnfiltered(name); hidden {
		return drawbridge.Spec{}, c.unknownToolFault(name, nil)
	}
	if id, ok := c.serverOfTool(name); ok {
		if _, err := c.mount(ctx, id); err != nil {
			return drawbridge.Spec{}, err
		}
	} else {
		c.mountNew(ctx, defaultWait)
	}
	spec, ok := c.g.Deck().FindCard(c.caller, drawbridge.CardName(name))
	if !ok {
		return spec, c.unknownToolFault(name, nil)
	}
	return spec, nil
}

// serverOfTool returns the configured server that a qualified name begins with.
func (c runner) serverOfTool(name string) (drawbridge.ServerID, bool) {
	set := c.g.Config()
	for _, s := range set.Mountable() {
		if strings.HasPrefix(name, string(s.ID)+drawbridge.NameSeparator) {
			return s.ID, true
		}
	}
	return "", false
}

// mount mounts a server and reports its start.
func (c runner) mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error) {
	defer c.wait.watchStarts(id)()
	return c.g.Mount(ctx, id)
}
