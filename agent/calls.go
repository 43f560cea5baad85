package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// callTools makes the calls of a turn, several at a time, and records their results. refused is not nil if the budget
// did not allow all of them. An error means that the run cannot go on.
func (c *conversation) callTools(ctx context.Context, t turn, calls []drawbridge.ToolCall) (refused, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	slots := make(chan struct{}, parallelCalls)
	for _, call := range calls {
		var over error
		if over, err = c.startCall(ctx, t, call, slots, func(sent drawbridge.ToolCall, entry string) {
			running.Go(func() {
				defer func() { <-slots }()
				if err := c.callTool(ctx, t, sent, entry); err != nil {
					stop(fmt.Errorf("%w: %w", errHistory, err))
				}
			})
		}); err != nil {
			stop(err)
			break
		}
		if over != nil {
			refused = over
		}
	}
	running.Wait()
	if cause := context.Cause(ctx); err == nil && errors.Is(cause, errHistory) {
		err = cause
	}
	stop(nil)
	return refused, err
}

// startCall records a call and starts it, if it is right, if the budget allows it and if ctx has not ended. Else it
// records why it was not made. over is the refusal of the budget.
func (c *conversation) startCall(ctx context.Context, t turn, call drawbridge.ToolCall, slots chan struct{},
	start func(sent drawbridge.ToolCall, entry string)) (over, err error) {
	sent, problem := c.check(call, t.offered)
	if problem != "" {
		return nil, c.refuseWrong(ctx, t, sent, problem)
	}
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, c.refuse(ctx, call, fmt.Sprintf(cancelledBeforeText, call.Name),
			CallDetails{Provider: t.provider, Cancelled: true})
	}
	reservation, over := c.s.budget.Reserve(Amount{Calls: 1})
	if over != nil {
		<-slots
		return over, c.refuse(ctx, call, "This call was not made: "+over.Error()+". Answer without it.",
			CallDetails{Provider: t.provider})
	}
	entry, err := c.append(ctx, Entry{Kind: CallEntry, Call: &sent})
	if err != nil {
		reservation.Release()
		return nil, err
	}
	reservation.Commit(Amount{Calls: 1})
	c.emit(Event{Kind: ToolStarted, Call: &sent})
	start(sent, entry.ID)
	return nil, nil
}

// errHistory ends the calls of a turn if the history cannot be written.
var errHistory = errors.New("record a result")

// callTool makes one call and records its result. entry is the ID of the call's entry.
func (c *conversation) callTool(ctx context.Context, t turn, call drawbridge.ToolCall, entry string) error {
	began := c.s.now()
	updates := &callUpdates{c: c, call: drawbridge.ToolCall{ID: call.ID, Name: call.Name}, entry: entry, events: c.events}
	updates.ctx, updates.cancel = context.WithCancel(ctx)
	outcome, err := c.s.tools.Call(ctx, c.identity(), call, updates.receive)
	updates.close()
	c.s.budget.Add(Amount{Calls: outcome.ScriptCalls})
	result, details, plain := c.s.maker.make(ctx, call, outcome, err)
	details.Provider = t.provider
	c.s.addLabel(details.Label)
	if n := c.breaker.count(call, plain); n >= warnRepeats {
		result.Text += repeatNotice(n)
	}
	if _, err := c.append(ctx, Entry{Kind: ResultEntry, Result: result, Details: details}); err != nil {
		return err
	}
	c.emit(Event{Kind: ToolFinished, Call: &updates.call, Result: result, Details: details,
		Elapsed: c.s.now().Sub(began)})
	return nil
}

// refuseWrong records an error for a call that the model wrote wrongly.
func (c *conversation) refuseWrong(ctx context.Context, t turn, call drawbridge.ToolCall, problem string) error {
	if n := c.breaker.count(call, problem); n >= warnRepeats {
		problem += repeatNotice(n)
	}
	return c.refuse(ctx, call, problem, CallDetails{Provider: t.provider})
}

// check returns the call as it is sent, or what is wrong with it.
func (c *conversation) check(call drawbridge.ToolCall, offered []drawbridge.CardName) (
	sent drawbridge.ToolCall, problem string) {
	known := false
	for _, name := range offered {
		known = known || name == call.Name
	}
	if !known {
		problem = fmt.Sprintf("Error: This session exposes no tool called %q.", oneLine(string(call.Name)))
		if near := nearestNames(call.Name, offered); len(near) > 0 {
			problem += " The nearest names are: " + strings.Join(near, ", ") + "."
		}
		return call, problem
	}
	arguments, err := objectOf(call.Arguments)
	if err != nil {
		return call, fmt.Sprintf("Error: The arguments of %s %v. The call was not made: send them again as one JSON object.",
			call.Name, err)
	}
	// The provider's own object is for the provider only.
	return drawbridge.ToolCall{ID: call.ID, Name: call.Name, Arguments: arguments}, ""
}

// objectOf returns the arguments of a call as a JSON object. Absent arguments and null are an empty object. A string
// that contains an object is that object: some models encode it twice.
func objectOf(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}"), nil
	}
	if err := json.Unmarshal(raw, new(json.RawMessage)); err != nil {
		return nil, fmt.Errorf("are not valid JSON (%w)", err)
	}
	var text string
	if json.Unmarshal(raw, &text) == nil && strings.HasPrefix(strings.TrimSpace(text), "{") && json.Valid([]byte(text)) {
		return compacted(json.RawMessage(text)), nil
	}
	if raw[0] != '{' {
		return nil, errors.New("are not a JSON object")
	}
	return raw, nil
}

// callUpdates receives what a tool tells while a call runs, until the call ends.
type callUpdates struct {
	c      *conversation
	call   drawbridge.ToolCall // without arguments
	entry  string
	events *emitter
	// ctx ends with the call, and with it the sub-agents that the call started. tasks counts those.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	// mu guards ended and questions.
	mu        sync.Mutex
	ended     bool
	questions []string
}

// receive handles one update. What comes after the end of the call is dropped.
func (u *callUpdates) receive(update CallUpdate) {
	u.mu.Lock()
	if u.ended {
		u.mu.Unlock()
		return
	}
	if update.Task != nil {
		task := *update.Task
		u.tasks.Go(func() { u.c.runTask(u.ctx, u.entry, task) })
	}
	if r := update.Reserve; r != nil {
		reservation := *r
		u.tasks.Go(func() { u.reserve(reservation) })
	}
	if q := update.Question; q != nil && (q.Kind == AskSampling || q.Kind == AskPlan) {
		if q.Kind == AskPlan {
			asked := *q
			asked.Reason = "a yes ends the plan mode; the mode is then " + string(u.c.s.modeAfterPlan())
			q, update.Question = &asked, &asked
		}
		u.questions = append(u.questions, q.ID)
		u.c.s.keepQuestion(keptQuestion{*q, u.c, u.events})
	}
	u.mu.Unlock()
	if update.Progress != nil {
		u.c.emit(Event{Kind: ToolProgress, Call: &u.call, Progress: update.Progress})
	}
	if update.Question != nil {
		u.c.emit(Event{Kind: ToolAsked, Call: &u.call, Question: update.Question})
	}
}

// reserve takes one call from the budget for a call that this call makes, and answers whether it may be made.
func (u *callUpdates) reserve(r CallReservation) {
	answer := Answer{ID: r.ID}
	reservation, err := u.c.s.budget.Reserve(Amount{Calls: 1})
	if err == nil {
		_, err = u.c.append(u.ctx, Entry{Kind: ScriptCallEntry, Call: &u.call, Names: []drawbridge.CardName{r.Tool}})
		if err == nil {
			reservation.Commit(Amount{Calls: 1})
		}
		reservation.Release() // does nothing after Commit
	}
	if answer.Allow = err == nil; err != nil {
		answer.Reason = err.Error()
	}
	if err := u.c.s.tools.Answer(u.ctx, answer); err != nil && u.ctx.Err() == nil {
		u.c.emitTo(u.events, Event{Kind: Notice, Text: fmt.Sprintf("answer a call of a script: %v", err)})
	}
}

// close ends the sub-agents of the call and waits for them.
func (u *callUpdates) close() {
	u.mu.Lock()
	u.ended = true
	u.mu.Unlock()
	u.cancel()
	u.tasks.Wait()
	u.c.s.dropQuestions(u.questions)
}
