package cli

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"golang.org/x/sync/errgroup"
)

// An openSession is a session with what it holds open. tools is nil if the session has none. A session that is not held
// any more is closed.
type openSession struct {
	session *agent.Session
	history *agent.FileHistory
	tools   *agentTools
	closed  bool
}

// toolsOrError returns the tools, or the error for a person who needs them.
func (s openSession) toolsOrError() (*agentTools, error) {
	switch {
	case s.closed:
		return nil, errClosed
	case s.tools == nil:
		return nil, errNoTools
	}
	return s.tools, nil
}

// holdSession opens a session and calls work with it. The session is closed when work returns.
func (a *app) holdSession(ctx context.Context, f agentFlags, openTools toolsOpener,
	work func(context.Context, openSession) error) error {
	if err := f.check(); err != nil {
		return usageError{err}
	}
	models, _, err := a.openChatModels(ctx)
	if err != nil {
		return err
	}
	defer models.Close()
	model, err := f.openModel(ctx, models)
	if err != nil {
		return err
	}
	history, err := a.openHistory(f)
	if err != nil {
		return err
	}
	defer history.Close()
	o := agent.Options{Model: model, History: history, Mode: agent.PermissionMode(f.mode), Instructions: f.system,
		AppendInstructions: f.appendSystem, MaxTurns: f.maxTurns, Thinking: drawbridge.ThinkingLevel(f.thinking)}
	if o.Thinking == "" {
		o.Thinking = models.Thinking()
	}
	if f.maxCost > 0 || f.maxCalls > 0 {
		o.Budget = agent.NewBudget(agent.Amount{Dollars: max(f.maxCost, 0), Calls: max(f.maxCalls, 0)})
	}
	return openTools(ctx, history.ID(), gateway.AgentOptions{Dir: a.Dir, OwnTools: f.tools, Elicitation: f.elicitation,
		Sampling: !f.print || f.interactive}, func(ctx context.Context, tools agent.Tools) error {
		o.Tools = tools
		s, err := agent.New(ctx, o)
		if err != nil {
			return err
		}
		own, _ := tools.(*agentTools)
		return work(ctx, openSession{session: s, history: history, tools: own})
	})
}

// check returns an error for a flag with a value that is not one of its values.
func (f agentFlags) check() error {
	levels, modes := textsOf(drawbridge.ThinkingLevels()), textsOf(drawbridge.PermissionModes())
	switch {
	case f.thinking != "" && !slices.Contains(levels, f.thinking):
		return fmt.Errorf("--thinking is %s, not %s", configfile.JoinOr(levels), safetext.Exact(f.thinking))
	case f.mode != "" && !slices.Contains(modes, f.mode):
		return fmt.Errorf("--permission-mode is %s, not %s", configfile.JoinOr(modes), safetext.Exact(f.mode))
	case f.maxTurns < 0:
		return fmt.Errorf("--max-turns is a positive number, not %d", f.maxTurns)
	case f.maxCalls < 0:
		return fmt.Errorf("--max-calls is a positive number, not %d", f.maxCalls)
	case f.maxCost < 0:
		return fmt.Errorf("--max-cost is a positive number, not %v", f.maxCost)
	}
	return nil
}

// textsOf returns values as texts.
func textsOf[T ~string](values []T) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return texts
}

// A sessionHolder holds the sessions of a terminal open: the one that is shown, and for a moment the next one. Each is
// held by a goroutine that closes its tools, its history and its lock when the session is left.
type sessionHolder struct {
	a         *app
	ctx       context.Context // of the terminal; its end leaves all sessions
	flags     agentFlags
	openTools toolsOpener
	shown     atomic.Pointer[agent.Session]

	// mu guards held.
	mu   sync.Mutex
	held map[*agent.Session]heldSession
}

// A heldSession is a session that is open until leave is called.
type heldSession struct {
	openSession
	leave func()
}

// open opens the session that the flags describe, until it is left. The end of ctx only ends the opening.
func (h *sessionHolder) open(ctx context.Context, f agentFlags) (*agent.Session, error) {
	hold, release := context.WithCancel(h.ctx)
	opened, ended := make(chan openSession, 1), make(chan struct{})
	var holding errgroup.Group
	holding.Go(func() error {
		defer close(ended)
		return h.a.holdSession(hold, f, h.openTools, func(ctx context.Context, s openSession) error {
			opened <- s
			<-ctx.Done()
			return nil
		})
	})
	leave := func() {
		release()
		_ = holding.Wait() // the session was cancelled
	}
	select {
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	case <-ended:
		release()
		return nil, holding.Wait()
	case s := <-opened:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.held[s.session] = heldSession{s, leave}
		return s.session, nil
	}
}

// leave closes a session.
func (h *sessionHolder) leave(s *agent.Session) {
	h.mu.Lock()
	held, ok := h.held[s]
	delete(h.held, s)
	h.mu.Unlock()
	if ok {
		held.leave()
	}
}

// close closes all sessions.
func (h *sessionHolder) close() {
	h.mu.Lock()
	all := h.held
	h.held = nil
	h.mu.Unlock()
	for _, s := range all {
		s.leave()
	}
}

// current returns the session that is shown.
func (h *sessionHolder) current() openSession {
	s := h.shown.Load()
	h.mu.Lock()
	defer h.mu.Unlock()
	if held, ok := h.held[s]; ok {
		return held.openSession
	}
	return openSession{session: s, closed: true}
}
