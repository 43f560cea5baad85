package agentrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// An acpSession is an open session of an editor.
type acpSession struct {
	server *acpServer
	id     string
	dir    string
	agent  *agent.Session
	log    agent.History
	// ctx ends when the session is to be closed. closed is closed when the host has closed it.
	ctx    context.Context
	stop   context.CancelFunc
	closed <-chan struct{}
	runs   sync.WaitGroup

	// mu guards the fields below. cancelRun cancels the run; nil if none goes on.
	mu        sync.Mutex
	closing   bool
	cancelRun context.CancelFunc
	// request is the ID of the request whose run goes on.
	request json.RawMessage

	// calls are the calls of the run by their agents and IDs, with the IDs that the client knows. count is the number of
	// all calls. One run, or the replay, uses them at a time.
	calls map[[2]string]shownCall
	used  map[string]bool
	count int
}

func newACPSession(ctx context.Context, s *acpServer, o Opened, dir string, closed <-chan struct{}) *acpSession {
	a := &acpSession{server: s, id: o.Session.Snapshot().Session, dir: dir, agent: o.Session, log: o.History,
		closed: closed, calls: map[[2]string]shownCall{}, used: map[string]bool{}}
	a.ctx, a.stop = context.WithCancel(ctx)
	return a
}

// end waits for the runs, after no more can begin.
func (a *acpSession) end() {
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	a.stop()
	a.runs.Wait()
}

// cancel cancels the run that goes on.
func (a *acpSession) cancel() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cancelRun != nil {
		a.cancelRun()
	}
}

// cancelRequest cancels the run of a request, if it goes on.
func (a *acpSession) cancelRequest(id json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cancelRun != nil && len(id) > 0 && bytes.Equal(a.request, id) {
		a.cancelRun()
	}
}

// background runs work that end waits for, unless the session is being closed. It reports whether work runs.
func (a *acpSession) background(work func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closing {
		a.runs.Go(work)
	}
	return !a.closing
}

// update sends a session/update notification.
func (a *acpSession) update(u sessionUpdate) {
	a.server.send(notification{Version: "2.0", Method: "session/update", Params: struct {
		Session string        `json:"sessionId"`
		Update  sessionUpdate `json:"update"`
	}{a.id, u}})
}

// say shows a text as a notice, or as a message of the agent if the client knows no notices.
func (a *acpSession) say(text string) {
	if a.server.abilities().notices {
		a.update(sessionUpdate{Update: "notice", Severity: "info", Title: safetext.Text(text)})
		return
	}
	a.update(sessionUpdate{Update: "agent_message_chunk", Content: textBlock("\n" + safetext.Text(text) + "\n")})
}

// opened returns the result of the request that opened the session.
func (a *acpSession) opened(fresh bool) any {
	id := a.id
	if !fresh {
		id = ""
	}
	return struct {
		ID      string         `json:"sessionId,omitempty"`
		Modes   modeState      `json:"modes"`
		Options []configOption `json:"configOptions"`
	}{id, modeState{a.agent.Snapshot().Mode, modes()}, a.options()}
}

// actions are the commands that a person can type.
var actions = []sessionAction{
	{"compact", "replace old turns by a summary"},
	{"clear", "begin a new conversation; the old one stays in the history"},
}

// sendSessionState sends the commands and the usage of an opened session, and the notices of the host.
func (a *acpSession) sendSessionState(notices []string) {
	a.update(sessionUpdate{Update: "available_commands_update", Commands: actions})
	if a.agent.Snapshot().Messages > 0 {
		a.showUsage()
	}
	for _, text := range notices {
		a.say(text)
	}
}

// showUsage tells the client how full the window of the model is, and the cost so far. It does nothing if the window is
// not known.
func (a *acpSession) showUsage() {
	now := a.agent.Snapshot()
	if now.Window <= 0 || now.Tokens <= 0 {
		return
	}
	u := sessionUpdate{Update: "usage_update", Used: now.Tokens, Size: now.Window}
	if now.Cost > 0 {
		u.Cost = &usedAmount{now.Cost, "USD"}
	}
	a.update(u)
}

// start runs a prompt and responds when it ends.
func (a *acpSession) start(id json.RawMessage, parts []drawbridge.MessagePart) *rpcError {
	ctx, cancel := context.WithCancel(a.ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closing || a.cancelRun != nil {
		cancel()
		if a.closing {
			return sessionNotFound()
		}
		return &rpcError{Code: codeRequest, Message: "a prompt of this session has not ended yet"}
	}
	a.cancelRun, a.request = cancel, id
	a.runs.Go(func() {
		stop, problem := a.run(ctx, cancel, parts)
		a.mu.Lock()
		a.cancelRun, a.request = nil, nil
		a.mu.Unlock()
		a.server.respond(id, struct {
			Stop string `json:"stopReason"`
		}{stop}, problem)
	})
	return nil
}

// run runs a prompt or a command, and returns why it stopped.
func (a *acpSession) run(ctx context.Context, cancel context.CancelFunc, parts []drawbridge.MessagePart) (
	stop string, problem *rpcError) {
	var questions sync.WaitGroup
	defer questions.Wait()
	defer cancel()
	on := func(e agent.Event) { a.event(ctx, e, &questions) }
	var result agent.RunResult
	var err error
	switch strings.TrimSpace(parts[0].Text) {
	case "/compact":
		err = a.agent.Condense(ctx, on)
		result.Outcome = agent.Completed
	case "/clear":
		err = a.agent.Clear(ctx)
		result.Outcome = agent.Completed
		if err == nil {
			a.say("A new conversation begins.")
		}
	default:
		result, err = a.agent.Run(ctx, parts, on)
	}
	clear(a.calls)
	switch {
	case ctx.Err() != nil:
		return "cancelled", nil
	case err == nil:
		return stopReason(result), nil
	case result.Outcome == agent.TooManyTurns || result.Outcome == agent.Looping || result.Outcome == agent.OverBudget:
		a.say("The run stopped: " + err.Error())
		return "max_turn_requests", nil
	}
	return "", &rpcError{codeInternal, "run failed: " + err.Error(), &errorData{Outcome: string(result.Outcome)}}
}

// stopReason returns the stop reason of a run that completed.
func stopReason(r agent.RunResult) string {
	switch r.Stop {
	case drawbridge.StopMaxOutput:
		return "max_tokens"
	case drawbridge.StopRefusal:
		return "refusal"
	}
	return "end_turn"
}

// event tells the client about an event. questions counts the requests for permission that have not ended.
func (a *acpSession) event(ctx context.Context, e agent.Event, questions *sync.WaitGroup) {
	switch e.Kind {
	case agent.TextDelta:
		if e.Agent == "" {
			a.update(sessionUpdate{Update: "agent_message_chunk", Content: textBlock(e.Text)})
		}
	case agent.ThinkingDelta:
		if e.Agent == "" {
			a.update(sessionUpdate{Update: "agent_thought_chunk", Content: textBlock(e.Text)})
		}
	case agent.ModelRetried:
		if e.Agent == "" {
			a.say("(asked again, the text of this answer so far does not count: " + e.Text + ")")
		}
	case agent.ToolStarted:
		a.callStarted(e.Agent, *e.Call)
	case agent.ToolProgress:
		if e.Progress.Message != "" {
			a.update(sessionUpdate{Update: "tool_call_update", Call: a.callID(e.Agent, *e.Call), Status: "in_progress",
				Content: toolText(safetext.Text(e.Progress.Message))})
		}
	case agent.ToolAsked:
		id, q := a.callID(e.Agent, *e.Call), *e.Question
		questions.Go(func() { a.answer(ctx, id, q) })
	case agent.ToolFinished:
		a.callFinished(e.Agent, *e.Call, *e.Result, e.Details)
	case agent.TurnFinished:
		a.showUsage()
	case agent.Condensed:
		a.say("(old turns were replaced by a summary)")
	case agent.ModeChanged:
		a.update(sessionUpdate{Update: "current_mode_update", Mode: string(e.Mode)})
		a.update(sessionUpdate{Update: "config_option_update", Options: a.options()})
	case agent.ServersAwaited:
		a.say("(waiting for the servers " + e.Text + ")")
	case agent.Notice:
		a.say(e.Text)
	}
}

// replay tells the client the conversation so far.
func (a *acpSession) replay(ctx context.Context) error {
	if a.log == nil {
		return errors.New("read the history: there is none")
	}
	path, err := currentPath(ctx, a.log)
	if err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	defer clear(a.calls)
	for _, e := range path {
		switch {
		case e.Kind == agent.PromptEntry && e.Message != nil:
			a.replayMessage("user_message_chunk", *e.Message)
		case e.Kind == agent.ModelEntry && e.Message != nil:
			a.replayMessage("agent_message_chunk", *e.Message)
		case e.Kind == agent.CallEntry && e.Call != nil:
			a.callStarted("", *e.Call)
		case e.Kind == agent.ResultEntry && e.Result != nil:
			a.callFinished("", drawbridge.ToolCall{ID: e.Result.CallID, Name: e.Result.Name}, *e.Result, e.Details)
		}
	}
	return nil
}

// replayMessage tells the client a message of the history.
func (a *acpSession) replayMessage(update string, m drawbridge.Message) {
	for _, p := range m.Parts {
		switch {
		case p.Text != "":
			a.update(sessionUpdate{Update: update, Content: textBlock(p.Text)})
		case p.Thinking != nil && p.Thinking.Text != "":
			a.update(sessionUpdate{Update: "agent_thought_chunk", Content: textBlock(p.Thinking.Text)})
		case p.Image != nil:
			a.update(sessionUpdate{Update: update, Content: imageBlock(*p.Image)})
		}
	}
}
