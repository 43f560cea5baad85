package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/boundary"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// AgentOptions are the options of [Gateway.AgentTools].
type AgentOptions struct {
	// Dir is the working directory of the agent; empty means the directory of the gateway.
	Dir string
	// Elicitation passes the questions of servers to the session's person, and Sampling their requests for an answer of
	// a model. Without them, servers learn that the client does not answer.
	Elicitation, Sampling bool
	// OwnTools are the names of Drawbridge's own tools that may be called; see [drawbridge.AgentRights].
	OwnTools []string
}

// AgentTools are the tools of a gateway for one session of an agent. All calls go through the deck, as those of clients
// do.
type AgentTools struct {
	g      *Gateway
	o      AgentOptions
	caller drawbridge.Caller

	mu      sync.Mutex
	waiting map[string]chan agent.Answer // by the ID of a question that the session answers itself
}

var (
	_ agent.Tools          = (*AgentTools)(nil)
	_ agent.PromptReceiver = (*AgentTools)(nil)
)

// agentSession is the prefix of the key of an agent's session.
const agentSession = "agent:"

// AgentTools returns the tools for the session of an agent. Close ends what was opened for the session.
func (g *Gateway) AgentTools(session string, o AgentOptions) *AgentTools {
	c := g.owner
	c.Kind, c.Era, c.Protocol = drawbridge.Agent, drawbridge.Legacy, mcp.Version20251125
	c.Session, c.Thread = agentSession+session, session
	c.Dir = cmp.Or(o.Dir, c.Dir, g.config.Dir)
	capabilities := map[string]any{}
	if o.Elicitation {
		capabilities["elicitation"] = map[string]any{"form": map[string]any{}, "url": map[string]any{}}
	}
	if o.Sampling {
		capabilities["sampling"] = map[string]any{}
	}
	c.Capabilities, _ = json.Marshal(capabilities) // a map of maps always has a JSON text
	c.Client = json.RawMessage(`{"name":"drawbridge","version":` + string(rawjson.Quote(g.config.Version)) + `}`)
	return &AgentTools{g: g, o: o, caller: c, waiting: map[string]chan agent.Answer{}}
}

// Close ends the sessions with servers that were opened for the agent.
func (t *AgentTools) Close() {
	t.g.deck.EndSession(t.caller)
	t.g.shared.results.EndSession(t.caller)
}

// callerOf returns the caller for an agent of the session.
func (t *AgentTools) callerOf(who agent.Identity) drawbridge.Caller {
	c := t.caller
	c.Run = who.Session
	if who.Agent != "" {
		c.Run += "/" + who.Agent
	}
	c.Agent = &drawbridge.AgentRights{Mode: who.Mode, Tools: who.Tools, OwnTools: t.o.OwnTools}
	return boundary.Prove(c)
}

// Brief implements [agent.Tools].
func (t *AgentTools) Brief(ctx context.Context, who agent.Identity, wait bool) (agent.Briefing, error) {
	caller := t.callerOf(who)
	rows := t.visibleRows(caller)
	t.g.starter.startAll()
	if wait {
		var starting []drawbridge.ServerID
		for _, row := range rows {
			if t.g.starter.isStarting(ctx, row.ID) {
				starting = append(starting, row.ID)
			}
		}
		t.g.starter.awaitFirstAttempts(ctx, starting)
		if ctx.Err() != nil {
			return agent.Briefing{}, context.Cause(ctx)
		}
	}
	b := agent.Briefing{Dir: caller.Dir, Notes: t.g.workspaceNotes()}
	counts := map[drawbridge.ServerID]int{}
	for _, spec := range t.g.deck.Items(caller, mcp.MethodToolsList) {
		counts[spec.Server]++
	}
	status := map[drawbridge.ServerID]drawbridge.ServerStatus{}
	for _, s := range t.g.Status() {
		status[s.Server] = s
	}
	for _, row := range rows {
		s := agent.ServerBriefing{Name: string(row.ID), Tools: counts[row.ID]}
		if l, ok := t.g.deck.LastListing(row.ID); ok {
			s.Instructions = l.Instructions
		} else {
			s.Problem, s.Waiting = "it is not connected yet", t.g.starter.isStarting(ctx, row.ID)
			if status[row.ID].Phase == drawbridge.Faulted {
				s.Problem = "it could not be connected"
			}
		}
		b.Servers = append(b.Servers, s)
	}
	return b, nil
}

// visibleRows returns the servers that the rules do not hide from a caller.
func (t *AgentTools) visibleRows(caller drawbridge.Caller) []config.Server {
	return slices.DeleteFunc(slices.Clone(t.g.Config().Mountable()), func(row config.Server) bool {
		return t.g.ruleGuard.Hides(caller, "", drawbridge.Spec{Server: row.ID})
	})
}

// Select implements [agent.Tools].
func (t *AgentTools) Select(ctx context.Context, who agent.Identity, text string, known []drawbridge.CardName) (
	[]drawbridge.ToolDefinition, error) {
	caller := t.callerOf(who)
	recent := make([]string, len(known))
	for i, name := range known {
		recent[i] = string(name)
	}
	t.g.flow.NoteDescriptions() // those that the model is about to see, also if a server changes them later
	chosen := t.g.ToolsForTurn(ctx, caller, deck.ModelTurn{Query: text, Recent: recent})
	all := t.g.deck.Items(caller, mcp.MethodToolsList)
	selected := map[drawbridge.CardName]bool{}
	var specs []drawbridge.Spec
	add := func(spec drawbridge.Spec) {
		if !selected[spec.Name] && !spec.AppOnly && caller.Agent.Permits(spec) {
			selected[spec.Name] = true
			specs = append(specs, spec)
		}
	}
	for _, spec := range all {
		if spec.Server == "" {
			add(spec)
		}
	}
	for _, spec := range chosen.Cards {
		add(spec)
	}
	here := len(specs)
	for _, spec := range all {
		add(spec)
	}
	definitions := make([]drawbridge.ToolDefinition, len(specs))
	for i, spec := range specs {
		definitions[i] = drawbridge.ToolDefinition{Name: spec.Name, Deferred: i >= here,
			Description: rawjson.GetString(spec.Definition, "description"),
			InputSchema: rawjson.Get(spec.Definition, "inputSchema")}
	}
	place := map[drawbridge.CardName]int{}
	for i, name := range known {
		place[name] = i + 1
	}
	slices.SortStableFunc(definitions, func(a, b drawbridge.ToolDefinition) int {
		last := len(known) + 1
		return cmp.Compare(cmp.Or(place[a.Name], last), cmp.Or(place[b.Name], last))
	})
	return definitions, nil
}

// Call implements [agent.Tools].
func (t *AgentTools) Call(ctx context.Context, who agent.Identity, call drawbridge.ToolCall,
	update func(agent.CallUpdate)) (agent.CallOutcome, error) {
	caller := t.callerOf(who)
	peer := &agentPeer{tools: t, who: who, call: call, update: update}
	params := rawjson.Apply(nil, rawjson.Put(rawjson.Quote(string(call.Name)), "name"),
		rawjson.Put(call.Arguments, "arguments"), rawjson.Put(rawjson.Quote(call.ID), "_meta", mcp.MetaProgressToken))
	out := agent.CallOutcome{Tool: string(call.Name)}
	if spec, ok := t.g.deck.FindCard(caller, call.Name); ok {
		out.Server, out.Tool = string(cmp.Or(spec.Server, drawbridge.OwnServer)), spec.Tool
	}
	peer.server = out.Server
	result, err := t.g.deck.Call(ctx, drawbridge.Call{Caller: caller, Params: params, Peer: peer})
	out.Result, out.ScriptCalls, out.Label = result, peer.scriptCalls.Load(), t.labelOf(ctx, caller)
	return out, err
}

// labelOf returns the label of a run for the person; nil if it is trusted and not private, or if it cannot be read:
// then the next call is refused.
func (t *AgentTools) labelOf(ctx context.Context, caller drawbridge.Caller) *agent.RunLabel {
	label, origins, err := t.g.flow.LabelOfRun(context.WithoutCancel(ctx), caller)
	if err != nil || !label.Taints() {
		return nil
	}
	l := &agent.RunLabel{Integrity: label.Integrity.String(), Private: label.Confidentiality == flow.Private}
	if first := flow.First(label, origins); first != nil {
		l.Kind, l.Name, l.More = first.Kind, first.Name, len(origins)-1
	}
	return l
}

// Prompted implements [agent.PromptReceiver]: values that the person has typed are trusted, and files that the person
// has attached have their labels.
func (t *AgentTools) Prompted(ctx context.Context, who agent.Identity, parts []drawbridge.MessagePart) error {
	caller := t.callerOf(who)
	for _, p := range parts {
		typed := p.Text
		if p.Typed != nil {
			typed = *p.Typed
		}
		if err := t.g.flow.Typed(ctx, caller, typed); err != nil {
			return err
		}
		for _, name := range p.Attached {
			if err := t.g.flow.Attached(ctx, caller, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Answer implements [agent.Tools].
func (t *AgentTools) Answer(ctx context.Context, a agent.Answer) error {
	t.mu.Lock()
	wait := t.waiting[a.ID]
	delete(t.waiting, a.ID)
	t.mu.Unlock()
	if wait != nil {
		wait <- a // it has room for one answer
		return nil
	}
	return t.answerApproval(ctx, a)
}

// answerApproval stores a person's answer to an approval request, for the one call.
func (t *AgentTools) answerApproval(ctx context.Context, a agent.Answer) error {
	answer := store.AnswerDenied
	if a.Allow {
		answer = store.AnswerAllowed
	}
	by := CurrentUser() + ", in a session of the agent"
	if err := t.g.shared.db.AnswerPendingApproval(ctx, a.ID, answer, by, nil, 0); err != nil {
		return storeFault("store the answer", err)
	}
	return nil
}

// newQuestionID returns an ID for a question that the session answers itself.
func newQuestionID() string { return strings.ToLower(rand.Text()[:8]) }

// ask sends a question to the session and waits for its answer.
func (t *AgentTools) ask(ctx context.Context, id string, send func()) (agent.Answer, error) {
	wait := make(chan agent.Answer, 1)
	t.mu.Lock()
	t.waiting[id] = wait
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.waiting, id)
		t.mu.Unlock()
	}()
	send()
	select {
	case a := <-wait:
		return a, nil
	case <-ctx.Done():
		return agent.Answer{}, context.Cause(ctx)
	}
}

// An agentPeer receives the messages that come during a call of the agent.
type agentPeer struct {
	tools  *AgentTools
	who    agent.Identity
	call   drawbridge.ToolCall
	server string // that offers the tool
	update func(agent.CallUpdate)
	// scriptCalls counts the calls of a script that were made without a reservation.
	scriptCalls atomic.Int64
}

var (
	_ drawbridge.Peer  = (*agentPeer)(nil)
	_ ApprovalObserver = (*agentPeer)(nil)
)

// ApprovalPending implements [ApprovalObserver].
func (p *agentPeer) ApprovalPending(id string, _ time.Time, details ApprovalDetails) {
	q := agent.Question{ID: id, Kind: agent.AskApproval, Server: details.Server, Tool: details.Tool,
		Reason: details.Reason, Arguments: details.Arguments}
	if len(details.Effects) > 0 {
		q.Kind = agent.AskScript
		q.Arguments, _ = json.Marshal(details.Effects) // it was JSON in the store
		q.Message = details.Script
	}
	p.update(agent.CallUpdate{Question: &q})
}

// Notify implements [drawbridge.Peer].
func (p *agentPeer) Notify(_ context.Context, method string, params json.RawMessage) error {
	var progress struct {
		Progress, Total float64
		Message         string
	}
	if method == mcp.NoteProgress && json.Unmarshal(params, &progress) == nil {
		p.update(agent.CallUpdate{Progress: &agent.Progress{Progress: progress.Progress, Total: progress.Total,
			Message: progress.Message}})
	}
	return nil
}

// Request implements [drawbridge.Peer].
func (p *agentPeer) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	id := newQuestionID()
	q := agent.Question{ID: id, Server: cmp.Or(rawjson.GetString(params, "_meta", interop.MetaServer), p.server), Tool: string(p.call.Name),
		Arguments: params, Message: rawjson.GetString(params, "message")}
	switch method {
	case mcp.MethodElicitation:
		if q.Kind = agent.AskForm; rawjson.GetString(params, "mode") == "url" {
			q.Kind, q.URL = agent.AskURL, rawjson.GetString(params, "url")
		}
	case mcp.MethodSampling:
		q.Kind = agent.AskSampling
	default:
		return nil, &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: method,
			Err: errors.New("the agent does not answer it")}
	}
	answer, err := p.tools.ask(ctx, id, func() { p.update(agent.CallUpdate{Question: &q}) })
	switch {
	case err != nil:
		return nil, err
	case method == mcp.MethodElicitation && !answer.Allow:
		return json.RawMessage(`{"action":"decline"}`), nil
	case method == mcp.MethodElicitation:
		accept := []rawjson.Edit{rawjson.Put(rawjson.Quote("accept"), "action")}
		if answer.Content != nil {
			accept = append(accept, rawjson.Put(answer.Content, "content"))
		}
		return rawjson.Apply(nil, accept...), nil
	case method == mcp.MethodSampling && (!answer.Allow || answer.Content == nil):
		return nil, &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: method,
			Err: errors.New("a person said no")}
	}
	return answer.Content, nil
}
