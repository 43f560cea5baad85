package agentrpc

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

// A signal tells the client of the link what happens, beside the responses.
type signal struct {
	Type string     `json:"type"`
	Name string     `json:"name"`
	Body signalBody `json:"body"`
}

// signalNames are the names of signals. Events that are not in the map are not signalled.
var signalNames = map[agent.EventKind]string{
	agent.RunStarted: "start", agent.TurnStarted: "turn_start", agent.TextDelta: "text", agent.ThinkingDelta: "thinking",
	agent.ModelRetried: "retry", agent.ToolStarted: "tool_start", agent.ToolProgress: "tool_progress",
	agent.ToolAsked: "ask", agent.ToolFinished: "tool_end", agent.TurnFinished: "turn_end", agent.Condensed: "condensed",
	agent.ModeChanged: "mode", agent.ServersAwaited: "servers_awaited", agent.Notice: "notice", agent.RunFinished: "end",
}

// A signalBody has the facts of one signal.
type signalBody struct {
	Session   string                 `json:"sessionId"`
	Agent     string                 `json:"agent,omitempty"`
	Turn      int                    `json:"turn,omitempty"`
	Text      string                 `json:"text,omitempty"`
	Model     string                 `json:"model,omitempty"`
	Call      string                 `json:"callId,omitempty"`
	Tool      string                 `json:"tool,omitempty"`
	Arguments json.RawMessage        `json:"arguments,omitempty"`
	Progress  *agent.Progress        `json:"progress,omitempty"`
	Question  *agent.Question        `json:"question,omitempty"`
	IsError   bool                   `json:"isError,omitempty"`
	Elapsed   int64                  `json:"elapsedMs,omitempty"`
	Usage     *drawbridge.ModelUsage `json:"usage,omitempty"`
	Outcome   agent.Outcome          `json:"outcome,omitempty"`
	Mode      agent.PermissionMode   `json:"mode,omitempty"`
	Err       string                 `json:"error,omitempty"`
}

// signal sends an event. questions counts the questions that have not ended.
func (l *link) signal(ctx context.Context, e agent.Event, s *agent.Session, questions *sync.WaitGroup) {
	name := signalNames[e.Kind]
	if name == "" {
		return
	}
	body := signalBody{Session: e.Session, Agent: e.Agent, Turn: e.Turn, Text: e.Text, Model: e.Model,
		Progress: e.Progress, Question: e.Question, Elapsed: e.Elapsed.Milliseconds(), Usage: e.Usage, Outcome: e.Outcome,
		Mode: e.Mode, Err: e.Err}
	if e.Call != nil {
		body.Call, body.Tool = e.Call.ID, string(e.Call.Name)
		if raw, ok := inputOf(e.Call.Arguments).(json.RawMessage); ok {
			body.Arguments = raw
		}
	}
	if e.Result != nil {
		body.Text, body.IsError = e.Result.Text, e.Result.IsError
	}
	if e.Question != nil { // it can be answered as soon as the client has read it
		answer := l.expectAnswer(e.Question.ID)
		questions.Go(func() { l.ask(ctx, s, *e.Question, answer) })
	}
	l.send(signal{"signal", name, body})
}

// expectAnswer returns the channel that gets the answer to a question. It is closed if no answer can come.
func (l *link) expectAnswer(id string) chan agent.Answer {
	answer := make(chan agent.Answer, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deaf {
		close(answer)
		return answer
	}
	l.questions[id] = answer
	return answer
}

// ask waits for the answer to a question and passes it on. Without an answer in time, the answer is no.
func (l *link) ask(ctx context.Context, s *agent.Session, q agent.Question, answer chan agent.Answer) {
	timer := time.NewTimer(answerTime)
	defer timer.Stop()
	reply := agent.Answer{}
	select {
	case reply = <-answer:
	case <-timer.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	delete(l.questions, q.ID)
	l.mu.Unlock()
	if ctx.Err() != nil {
		return // the call was cancelled
	}
	reply.ID = q.ID
	if err := s.Answer(ctx, reply); err != nil && ctx.Err() == nil {
		l.send(signal{"signal", "notice", signalBody{Session: s.Snapshot().Session,
			Text: "the answer was not accepted: " + err.Error()}})
	}
}

// answer handles the method answer.
func (l *link) answer(id json.RawMessage, a agent.Answer) *rpcError {
	l.mu.Lock()
	waiting := l.questions[a.ID]
	delete(l.questions, a.ID)
	l.mu.Unlock()
	if waiting == nil {
		return invalidParams("no question with this id waits for an answer")
	}
	waiting <- a
	l.respond(id, struct{}{}, nil)
	return nil
}

// endInput answers all questions with no: the client cannot answer any more.
func (l *link) endInput() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deaf = true
	for id, waiting := range l.questions {
		delete(l.questions, id)
		close(waiting)
	}
}
