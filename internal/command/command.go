// Package command carries out the requests of the command line, such as listing and calling tools, on a gateway. The
// hub is the process that runs the servers for all clients. If a hub runs, its gateway is used; otherwise the command
// opens a gateway in its own process. Both return the same results, so a command prints the same output.
//
// The caller of a request is the user of the operating system. A tool call passes through the deck, as the call of a
// client does: rules, approvals and the audit apply. While a request waits, events report the reason: a server starts,
// a tool reports progress, or a person must approve the call. The package prints nothing and reads no configuration
// file.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/boundary"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// The request methods that Drawbridge defines. A request may also have one of the MCP methods tools/call, prompts/get
// and resources/read.
const (
	// MethodTools lists the tools. Params are ToolsParams, the result is a ToolList.
	MethodTools = "drawbridge/tools"
	// MethodTool finds one tool by its name. Params are ToolParams, the result is a Tool.
	MethodTool = "drawbridge/tool"
	// MethodMount mounts a server: it connects to the server and requests its lists. Params are ServerParams, the
	// result is a MountResult.
	MethodMount = "drawbridge/mount"
	// MethodItems lists the items of one server. Params are ServerParams, the result is a list of Tool.
	MethodItems = "drawbridge/items"
	// MethodSearch finds tools that match a query. Params are SearchParams, the result is a SearchResult.
	MethodSearch = "drawbridge/search"
)

// A Request is one request of the command line.
type Request struct {
	// Method is a method of MCP or of Drawbridge. Params are the params of the method, as JSON.
	Method string  `json:"method"`
	Params RawText `json:"params,omitempty"`
}

// NewRequest returns a request with params encoded as JSON. If params is a json.RawMessage, its bytes are used
// unchanged.
func NewRequest(method string, params any) (Request, error) {
	if raw, ok := params.(json.RawMessage); ok {
		return Request{Method: method, Params: RawText(raw)}, nil
	}
	text, err := json.Marshal(params)
	return Request{Method: method, Params: text}, err
}

// Name returns the member "name" of the params, which names the tool or prompt; "" if there is none.
func (r Request) Name() string { return rawjson.GetString(json.RawMessage(r.Params), "name") }

// Caller returns the caller of the command line: the user at the terminal.
func Caller(g *gateway.Gateway) drawbridge.Caller {
	c := g.Owner()
	c.Kind = drawbridge.Author
	c.Era, c.Protocol = drawbridge.Modern, mcp.Version20260728
	return boundary.Prove(c)
}

// Run carries out a request on a running gateway and returns the result as JSON. dir is the working directory of the
// command. While the request waits, Run calls event with the reasons; event may be nil. Calls of event do not overlap,
// and none is made after Run returns. The error is a *drawbridge.Fault, or the error of ctx.
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

// call sends an MCP call to the deck and returns the result. For tools/call it first finds the tool, which may mount a
// server, and checks the arguments. If the arguments are invalid, call returns a fault, and the deck does not receive
// the call. A call that the rules deny goes to the deck in any case, because the deck writes the denial to the audit.
func (c runner) call(ctx context.Context, r Request) (json.RawMessage, error) {
	name := ""
	if r.Method == mcp.MethodToolsCall {
		name = r.Name()
		if spec, err := c.findTool(ctx, name); err == nil {
			err := checkArguments(spec, rawjson.Get(r.Params, "arguments"))
			if _, denied := c.denial(name, json.RawMessage(r.Params)); err != nil && !denied { // the deck records denied calls
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

// progressToken is the progress token of every call: it requests progress notifications from the server.
const progressToken = `"drawbridge-command"`

func isUnknown(err error) bool {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	return ok && f.Kind == drawbridge.UnknownCapability
}

// findTool returns the tool with a name. If the name is unknown, findTool mounts the server whose ID is the prefix of
// the name, and looks for the tool again. If no server has such an ID, it mounts the servers that were never listed,
// and waits for them at most defaultWait. The error is a fault if a rule hides the tool, if the name is still unknown,
// or if the server cannot be mounted.
func (c runner) findTool(ctx context.Context, name string) (drawbridge.Spec, error) {
	if spec, ok := c.g.Deck().FindCard(c.caller, drawbridge.CardName(name)); ok {
		return spec, nil
	}
	if _, _, hidden := c.g.Deck().FindUnfiltered(name); hidden {
		return drawbridge.Spec{}, c.unknownToolFault(name, nil)
	}
	if !c.g.HasWorkspace() && cards.IsWorkspaceTool(name) {
		return drawbridge.Spec{}, noWorkspaceFault()
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

// serverOfTool returns the ID that is the prefix of a qualified name. Only servers that may be started are considered.
// It returns false if none of them has such an ID.
func (c runner) serverOfTool(name string) (drawbridge.ServerID, bool) {
	set := c.g.Config()
	for _, s := range set.Mountable() {
		if strings.HasPrefix(name, string(s.ID)+drawbridge.NameSeparator) {
			return s.ID, true
		}
	}
	return "", false
}

// mount mounts a server, and sends StartingEvents while the server starts.
func (c runner) mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error) {
	defer c.wait.watchStarts(id)()
	return c.g.Mount(ctx, id)
}
