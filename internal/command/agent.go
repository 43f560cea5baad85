package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/gateway"
)

// The request methods of an agent's session. Params are AgentParams.
const (
	// MethodAgentOpen opens the tools for a session. It has no result: the tools are closed when the request is
	// cancelled. Until then the servers of the gateway stay mounted. The first event, of the kind AgentOpenEvent, means
	// that the other methods can be called.
	MethodAgentOpen = "drawbridge/agent/open"
	// MethodAgentBrief, MethodAgentSelect, MethodAgentCall and MethodAgentAnswer are the methods of agent.Tools. Their
	// results are agent.Briefing, a list of drawbridge.ToolDefinition, agent.CallOutcome and null. A call sends events
	// of the kind AgentCallEvent.
	MethodAgentBrief  = "drawbridge/agent/brief"
	MethodAgentSelect = "drawbridge/agent/select"
	MethodAgentCall   = "drawbridge/agent/call"
	MethodAgentAnswer = "drawbridge/agent/answer"
	// MethodAgentPrompted is the method of agent.PromptReceiver.
	MethodAgentPrompted = "drawbridge/agent/prompted"
	// MethodAgentItems and MethodAgentFetch are the methods of gateway.AgentTools for what a person chooses. Their
	// results are a list of gateway.AgentItem, and the result of the MCP method.
	MethodAgentItems = "drawbridge/agent/items"
	MethodAgentFetch = "drawbridge/agent/fetch"
)

// AgentParams are the params of the methods of an agent's session. Each method uses Session and the fields that its
// method in agent.Tools has as parameters.
type AgentParams struct {
	Session string
	Options gateway.AgentOptions
	Who     agent.Identity
	Text    string
	Known   []drawbridge.CardName
	Call    drawbridge.ToolCall
	Answer  agent.Answer
	Wait    bool
	Parts   []drawbridge.MessagePart
	// Method and Params are those of MCP, for MethodAgentItems and MethodAgentFetch.
	Method string
	Params json.RawMessage
}

// AgentSessions are the open sessions of agents at one process. The zero value is ready to use.
type AgentSessions struct {
	mu  sync.Mutex
	all map[string]*gateway.AgentTools
}

// open opens the tools of a session, and closes them when ctx ends.
func (s *AgentSessions) open(ctx context.Context, g *gateway.Gateway, p AgentParams, opened func()) error {
	tools := g.AgentTools(p.Session, p.Options)
	defer tools.Close()
	s.mu.Lock()
	if s.all[p.Session] != nil {
		s.mu.Unlock()
		return invalidRequest(fmt.Errorf("the session %.40q is open already", p.Session))
	}
	if s.all == nil {
		s.all = map[string]*gateway.AgentTools{}
	}
	s.all[p.Session] = tools
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, p.Session)
	}()
	opened()
	<-ctx.Done()
	return context.Cause(ctx)
}

// find returns the tools of an open session.
func (s *AgentSessions) find(session string) (*gateway.AgentTools, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tools := s.all[session]; tools != nil {
		return tools, nil
	}
	return nil, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.NotFound, Step: "find the agent's session",
		Err: errors.New("it is not open at this process")}
}

// Run carries out a request of an agent's session on a running gateway, as [Run] does for other requests. ok is false
// for another method.
func (s *AgentSessions) Run(ctx context.Context, g *gateway.Gateway, r Request, event func(Event)) (
	result json.RawMessage, ok bool, err error) {
	var p AgentParams
	switch r.Method {
	case MethodAgentOpen, MethodAgentBrief, MethodAgentSelect, MethodAgentCall, MethodAgentAnswer, MethodAgentPrompted, MethodAgentItems,
		MethodAgentFetch:
		if json.Unmarshal(r.Params, &p) != nil {
			return nil, true, invalidRequest(fmt.Errorf("invalid params of %s", r.Method))
		}
	default:
		return nil, false, nil
	}
	if r.Method == MethodAgentOpen {
		return nil, true, s.open(ctx, g, p, func() { event(Event{Kind: AgentOpenEvent}) })
	}
	tools, err := s.find(p.Session)
	if err != nil {
		return nil, true, err
	}
	var value any
	switch r.Method {
	case MethodAgentBrief:
		value, err = tools.Brief(ctx, p.Who, p.Wait)
	case MethodAgentSelect:
		value, err = tools.Select(ctx, p.Who, p.Text, p.Known)
	case MethodAgentCall:
		value, err = tools.Call(ctx, p.Who, p.Call, func(u agent.CallUpdate) { event(Event{Kind: AgentCallEvent, Update: &u}) })
	case MethodAgentAnswer:
		err = tools.Answer(ctx, p.Answer)
	case MethodAgentPrompted:
		err = tools.Prompted(ctx, p.Who, p.Parts)
	case MethodAgentItems:
		value, err = tools.Items(ctx, p.Who, p.Method)
	case MethodAgentFetch:
		value, err = tools.Fetch(ctx, p.Who, p.Method, p.Params)
	}
	if err != nil {
		return nil, true, err
	}
	result, err = json.Marshal(value)
	return result, true, err
}
