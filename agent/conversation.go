package agent

import (
	"context"
	"fmt"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// A conversation is that of the session's own agent, or of one sub-agent. One goroutine runs it; calls of tools append
// their results from theirs.
type conversation struct {
	s *Session
	// path and depth are those of the agent, and tools the patterns that narrow its rights; see [Identity].
	path  string
	depth int
	tools [][]string

	// The fields below belong to the goroutine that runs the conversation. about is the text that tools are selected
	// for, known are the names of the tools that the model has seen, and deferred those that it can search for itself.
	events       *emitter
	about        string
	instructions string
	known        []drawbridge.CardName
	deferred     []drawbridge.CardName
	breaker      loopBreaker

	// mu guards the fields below. head is the last entry. digest says what the recorded instructions were made of.
	// fixed is the size of the instructions and of the tools.
	mu         sync.Mutex
	runID      string
	turnNumber int
	head       string
	digest     string
	recorded   string
	transcript transcript
	children   int
	fixed      int
	measured   measurement
}

// start prepares the conversation for a run.
func (c *conversation) start(run string, events *emitter) {
	c.events = events
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runID, c.turnNumber = run, 0
}

// append writes an entry to the history and then follows it. The end of ctx does not keep it from being written.
func (c *conversation) append(ctx context.Context, e Entry) (Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head == "" && c.path == "" && e.Kind != SessionEntry {
		if err := c.appendNext(ctx, &Entry{Kind: SessionEntry, Version: historyVersion}); err != nil {
			return e, err
		}
	}
	if e.Message != nil {
		m := normalised(*e.Message)
		e.Message = &m
	}
	err := c.appendNext(ctx, &e)
	return e, err
}

// appendNext appends an entry after the head. The caller holds mu.
func (c *conversation) appendNext(ctx context.Context, e *Entry) error {
	e.ID, e.Time, e.Agent, e.Run = c.s.newID(), c.s.now().UTC().Round(0), c.path, c.runID
	if e.Kind != HeadEntry {
		e.Parent = c.head
	}
	if err := c.s.history.Append(context.WithoutCancel(ctx), *e); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	c.head = e.ID
	c.follow(*e)
	return nil
}

// follow changes the state of the conversation by an entry that is in the history.
func (c *conversation) follow(e Entry) {
	if e.Kind == InstructionsEntry {
		c.digest, c.recorded = e.Digest, e.Text
	}
	c.transcript.add(e)
}

// identity returns who calls tools.
func (c *conversation) identity() Identity {
	c.mu.Lock()
	run := c.runID
	c.mu.Unlock()
	return Identity{Session: c.s.history.ID(), Agent: c.path, Run: run, Mode: c.s.mode(), Tools: c.tools, Depth: c.depth,
		CallsLimited: c.s.budget.Limits().Calls > 0}
}

// emit passes on an event of this conversation.
func (c *conversation) emit(e Event) { c.emitTo(c.events, e) }

// emitTo passes on an event of this conversation to the events of a run.
func (c *conversation) emitTo(events *emitter, e Event) {
	if events == nil || events.on == nil {
		return
	}
	c.mu.Lock()
	e.Turn = c.turnNumber
	c.mu.Unlock()
	e.Time, e.Session, e.Agent = c.s.now(), c.s.history.ID(), c.path
	events.emit(e)
}

// size returns the number of messages and an estimate of their tokens.
func (c *conversation) size() (messages int, tokens int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.transcript.items), estimateTokens(c.requestSize(), c.measured)
}

// requestSize returns the size of the next request in bytes. The caller holds mu.
func (c *conversation) requestSize() int {
	size := c.fixed
	for _, it := range c.transcript.items {
		size += it.size
	}
	return size
}

// awaitsModel reports whether the next message is the model's: a run was interrupted.
func (c *conversation) awaitsModel() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	items := c.transcript.items
	return len(items) > 0 && items[len(items)-1].message.Role == drawbridge.UserRole
}

// settle records a result for each open call: that its outcome is unknown, or that it was not made.
func (c *conversation) settle(ctx context.Context) error {
	c.mu.Lock()
	open := append([]openCall(nil), c.transcript.open...)
	c.mu.Unlock()
	for _, call := range open {
		text, details := notSentText, CallDetails{}
		if call.sent {
			text, details = interruptedText, CallDetails{Unknown: true}
		}
		if call.result != nil {
			continue
		}
		if err := c.refuse(ctx, call.call, text, details); err != nil {
			return err
		}
	}
	return nil
}

// refuse records an error as the result of a call.
func (c *conversation) refuse(ctx context.Context, call drawbridge.ToolCall, text string, d CallDetails) error {
	result := &drawbridge.ToolResult{CallID: call.ID, Name: call.Name, Text: text, IsError: true}
	if _, err := c.append(ctx, Entry{Kind: ResultEntry, Result: result, Details: &d}); err != nil {
		return err
	}
	c.emit(Event{Kind: ToolFinished, Call: &drawbridge.ToolCall{ID: call.ID, Name: call.Name}, Result: result, Details: &d})
	return nil
}

// tellPrompt tells the tools what the person has typed, at first also in earlier runs of the session. The objective of
// a sub-agent is not typed by a person.
func (c *conversation) tellPrompt(ctx context.Context, parts []drawbridge.MessagePart) error {
	receiver, ok := c.s.o.Tools.(PromptReceiver)
	if c.path != "" || !ok {
		return nil
	}
	c.s.mu.Lock()
	parts = append(c.s.earlier, parts...)
	c.s.earlier = nil
	c.s.mu.Unlock()
	return receiver.Prompted(ctx, c.identity(), parts)
}

// addPrompt records a message of the person.
func (c *conversation) addPrompt(ctx context.Context, parts []drawbridge.MessagePart) error {
	if err := c.tellPrompt(ctx, parts); err != nil {
		return err
	}
	message := drawbridge.Message{Role: drawbridge.UserRole, Parts: parts}
	if _, err := c.append(ctx, Entry{Kind: PromptEntry, Message: &message}); err != nil {
		return err
	}
	c.about = message.Text()
	c.breaker.reset()
	return nil
}
