package cli

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/command"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"golang.org/x/sync/errgroup"
)

// agentTools are the tools of an agent's session: those of the hub, or of a gateway of this process.
type agentTools struct {
	a       *app
	session string
	// by says in the audit who answers approval requests.
	by string
	// local and gateway, which offers them, are nil for the hub.
	local   *gateway.AgentTools
	gateway *gateway.Gateway

	// mu guards approvals: the IDs of questions that are approval requests.
	mu        sync.Mutex
	approvals map[string]agent.QuestionKind
}

var (
	_ agent.Tools          = (*agentTools)(nil)
	_ agent.PromptReceiver = (*agentTools)(nil)
)

// A toolsOpener opens the tools of a session and calls work with them. They are closed when work returns.
type toolsOpener func(ctx context.Context, session string, o gateway.AgentOptions,
	work func(ctx context.Context, tools agent.Tools) error) error

// withToolsOpener calls work with a function that opens the tools of sessions. They are those of the hub; if no hub
// runs, or the flags ask for it, they are those of one gateway of this process. In the first case work is called again
// if it returns hub.ErrNoHub, which means that it opened no session.
func (a *app) withToolsOpener(ctx context.Context, f agentFlags,
	work func(ctx context.Context, open toolsOpener) error) error {
	if f.noTools {
		return work(ctx, func(ctx context.Context, _ string, _ gateway.AgentOptions,
			work func(context.Context, agent.Tools) error) error {
			return work(ctx, nil)
		})
	}
	if !f.own {
		err := work(ctx, func(ctx context.Context, session string, o gateway.AgentOptions,
			work func(context.Context, agent.Tools) error) error {
			return a.newAgentTools(session, f).atHub(ctx, o, work)
		})
		if !errors.Is(err, hub.ErrNoHub) {
			return err
		}
	}
	g, err := a.openGateway(ctx, func(c *gateway.Config) {
		c.LeaveStatus = a.hubRuns()
		if a.session != nil {
			c.Logger = a.newLogger(slog.LevelError) // the person is told what waits for them
		}
	})
	if err != nil {
		return err
	}
	defer g.Close()
	return a.withRunningGateway(ctx, g, func(ctx context.Context) error {
		return work(ctx, func(ctx context.Context, session string, o gateway.AgentOptions,
			work func(context.Context, agent.Tools) error) error {
			t := a.newAgentTools(session, f)
			t.gateway, t.local = g, g.AgentTools(session, o)
			defer t.local.Close()
			return work(ctx, t)
		})
	})
}

func (a *app) newAgentTools(session string, f agentFlags) *agentTools {
	by := gateway.CurrentUser() + ", in a session of the agent"
	if f.print && !f.interactive {
		by = "drawbridge -p, which asks no person"
	}
	return &agentTools{a: a, session: session, by: by, approvals: map[string]agent.QuestionKind{}}
}

// atHub opens the session at the hub and calls work. The error is hub.ErrNoHub if work was not called.
func (t *agentTools) atHub(ctx context.Context, o gateway.AgentOptions, work func(context.Context, agent.Tools) error) error {
	request, err := command.NewRequest(command.MethodAgentOpen, command.AgentParams{Session: t.session, Options: o})
	if err != nil {
		return err
	}
	hold, release := context.WithCancel(ctx)
	defer release()
	opened := make(chan struct{})
	var holding errgroup.Group
	ended := make(chan struct{})
	holding.Go(func() error {
		defer close(ended)
		_, err := hub.Call(hold, t.a.hubOptions(), request, func(e command.Event) {
			if e.Kind == command.AgentOpenEvent {
				close(opened)
			}
		})
		return err
	})
	select {
	case <-ended:
		return holding.Wait()
	case <-opened:
	}
	err = work(ctx, t)
	release()
	_ = holding.Wait() // the session was cancelled
	return err
}

// do sends a request of the session to the hub.
func (t *agentTools) do(ctx context.Context, method string, p command.AgentParams, update func(agent.CallUpdate),
	result any) error {
	p.Session = t.session
	request, err := command.NewRequest(method, p)
	if err != nil {
		return err
	}
	raw, err := hub.Call(ctx, t.a.hubOptions(), request, func(e command.Event) {
		if e.Update != nil && update != nil {
			update(*e.Update)
		}
	})
	if err != nil {
		if errors.Is(err, hub.ErrNoHub) {
			return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.Transient, Step: "reach the hub",
				Err: errors.New("the hub has ended"), Next: "start the session again; it goes on where it was"}
		}
		return err
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(raw, result)
}

// Brief implements [agent.Tools].
func (t *agentTools) Brief(ctx context.Context, who agent.Identity, wait bool) (b agent.Briefing, err error) {
	if t.local != nil {
		return t.local.Brief(ctx, who, wait)
	}
	err = t.do(ctx, command.MethodAgentBrief, command.AgentParams{Who: who, Wait: wait}, nil, &b)
	return b, err
}

// Select implements [agent.Tools].
func (t *agentTools) Select(ctx context.Context, who agent.Identity, text string, known []drawbridge.CardName) (
	all []drawbridge.ToolDefinition, err error) {
	if t.local != nil {
		return t.local.Select(ctx, who, text, known)
	}
	err = t.do(ctx, command.MethodAgentSelect, command.AgentParams{Who: who, Text: text, Known: known}, nil, &all)
	return all, err
}

// Call implements [agent.Tools].
func (t *agentTools) Call(ctx context.Context, who agent.Identity, call drawbridge.ToolCall,
	update func(agent.CallUpdate)) (out agent.CallOutcome, err error) {
	noted := func(u agent.CallUpdate) {
		if q := u.Question; q != nil && (q.Kind == agent.AskApproval || q.Kind == agent.AskScript) {
			t.mu.Lock()
			t.approvals[q.ID] = q.Kind
			t.mu.Unlock()
		}
		update(u)
	}
	if t.local != nil {
		return t.local.Call(ctx, who, call, noted)
	}
	err = t.do(ctx, command.MethodAgentCall, command.AgentParams{Who: who, Call: call}, noted, &out)
	return out, err
}

// Answer implements [agent.Tools].
func (t *agentTools) Answer(ctx context.Context, answer agent.Answer) error {
	t.mu.Lock()
	kind := t.approvals[answer.ID]
	delete(t.approvals, answer.ID)
	t.mu.Unlock()
	switch {
	case kind != "":
		var scope admin.GrantScope
		if answer.Allow && answer.Always {
			scope = admin.GrantScope{Session: true, AnyArguments: kind == agent.AskApproval}
		}
		return t.a.adminService().AnswerApproval(ctx, answer.ID, answer.Allow, scope, t.by)
	case t.local != nil:
		return t.local.Answer(ctx, answer)
	}
	return t.do(ctx, command.MethodAgentAnswer, command.AgentParams{Answer: answer}, nil, nil)
}

// Prompted implements [agent.PromptReceiver].
func (t *agentTools) Prompted(ctx context.Context, who agent.Identity, parts []drawbridge.MessagePart) error {
	if t.local != nil {
		return t.local.Prompted(ctx, who, parts)
	}
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Image = nil // only texts matter
	}
	return t.do(ctx, command.MethodAgentPrompted, command.AgentParams{Who: who, Parts: parts}, nil, nil)
}

// items returns the prompts or the skills of servers, for the method prompts/list or skills/list.
func (t *agentTools) items(ctx context.Context, who agent.Identity, method string) (all []gateway.AgentItem, err error) {
	if t.local != nil {
		return t.local.Items(ctx, who, method)
	}
	err = t.do(ctx, command.MethodAgentItems, command.AgentParams{Who: who, Method: method}, nil, &all)
	return all, err
}

// fetch returns the result of prompts/get or resources/read.
func (t *agentTools) fetch(ctx context.Context, who agent.Identity, method string, params json.RawMessage) (
	result json.RawMessage, err error) {
	if t.local != nil {
		return t.local.Fetch(ctx, who, method, params)
	}
	err = t.do(ctx, command.MethodAgentFetch, command.AgentParams{Who: who, Method: method, Params: params}, nil, &result)
	return result, err
}

// refreshTimeout limits how long a reload waits for servers.
const refreshTimeout = 20 * time.Second

// reload reads the configuration again, and requests the lists of the named servers again, or of all connected servers
// if none is named. It mounts servers that are new or changed, and named servers that are not connected, so that the
// next prompt has their tools. It returns what changed, or only an error.
func (t *agentTools) reload(ctx context.Context, named ...drawbridge.ServerID) (string, error) {
	if t.local == nil {
		text, err := t.a.relistHub(named...)
		if err != nil {
			text = ""
		}
		return text, err
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	changes, err := t.gateway.Reload(ctx)
	if err != nil {
		return "", err
	}
	fresh := slices.Concat(changes.Added, changes.Changed)
	var known []drawbridge.ServerID
	for _, row := range t.gateway.Config().Mountable() {
		if !slices.Contains(fresh, row.ID) && (len(named) == 0 || slices.Contains(named, row.ID)) {
			known = append(known, row.ID)
		}
	}
	r := hub.ReloadReport{Changes: changes}
	if len(known) > 0 { // none would mean all
		if r.Listed, r.Away, err = t.gateway.Relist(ctx, known...); err != nil {
			return "", err
		}
	}
	if len(named) > 0 {
		fresh, r.Away = append(fresh, r.Away...), nil
	}
	var mounts sync.WaitGroup
	for _, id := range fresh {
		mounts.Go(func() { _, _ = t.gateway.Mount(ctx, id) }) // the status has the outcome
	}
	mounts.Wait()
	return formatReload("this session", r), nil
}
