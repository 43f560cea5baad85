package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// run runs the conversation from a prompt until the model ends. Without parts, it continues an interrupted turn.
func (c *conversation) run(ctx context.Context, parts []drawbridge.MessagePart, id string, events *emitter) (
	RunResult, error) {
	c.start(id, events)
	c.emit(Event{Kind: RunStarted, Text: drawbridge.Message{Parts: parts}.Text()})
	result := RunResult{Run: id}
	err := c.prepare(ctx, parts)
	if err == nil {
		err = c.takeTurns(ctx, &result)
	}
	result.Outcome = outcomeOf(ctx, err)
	done := Event{Kind: RunFinished, Outcome: result.Outcome, Text: result.Text}
	if err != nil {
		done.Err = err.Error()
	}
	c.emit(done)
	return result, err
}

// outcomeOf returns how a run ended that ended with an error.
func outcomeOf(ctx context.Context, err error) Outcome {
	if _, ok := errors.AsType[*BudgetError](err); ok {
		return OverBudget
	}
	switch {
	case err == nil:
		return Completed
	case errors.Is(err, ErrTooManyTurns):
		return TooManyTurns
	case errors.Is(err, ErrLooping):
		return Looping
	case ctx.Err() != nil && isEndOf(ctx, err):
		return Cancelled
	}
	return Failed
}

// prepare records the instructions and the prompt.
func (c *conversation) prepare(ctx context.Context, parts []drawbridge.MessagePart) error {
	if err := c.settle(ctx); err != nil {
		return err
	}
	if err := c.brief(ctx); err != nil {
		return err
	}
	if c.about == "" {
		c.about = c.lastPrompt()
	}
	if err := c.deliverQueue(ctx); err != nil {
		return err
	}
	if len(parts) == 0 {
		return nil
	}
	if c.path == "" {
		parts = append(slices.Clone(parts), c.s.modeNotice()...)
	}
	return c.addPrompt(ctx, parts)
}

// lastPrompt returns the text of the last message of the person.
func (c *conversation) lastPrompt() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, it := range slices.Backward(c.transcript.items) {
		if it.message.Role == drawbridge.UserRole && !it.results {
			return it.message.Text()
		}
	}
	return ""
}

// deliverQueue records the messages that the person added.
func (c *conversation) deliverQueue(ctx context.Context) error {
	if c.path != "" {
		return nil
	}
	queue := c.s.takeQueue()
	for i, parts := range queue {
		if err := c.addPrompt(ctx, parts); err != nil {
			c.s.requeue(queue[i:])
			return err
		}
	}
	return nil
}

// takeTurns asks the model and calls tools until the model ends.
func (c *conversation) takeTurns(ctx context.Context, result *RunResult) error {
	overBudget := false // calls of the last turn were refused because of the budget
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if result.Turns >= c.s.o.MaxTurns {
			return fmt.Errorf("%w: %d", ErrTooManyTurns, c.s.o.MaxTurns)
		}
		if err := c.deliverQueue(ctx); err != nil {
			return err
		}
		result.Turns++
		c.mu.Lock()
		c.turnNumber = result.Turns
		c.mu.Unlock()
		turn, err := c.takeTurn(ctx)
		if err != nil {
			return err
		}
		result.Usage, result.Cost = result.Usage.Add(turn.response.Usage), result.Cost+turn.cost
		result.Stop = turn.response.Stop
		if text := turn.response.Message.Text(); text != "" {
			result.Text = text
		}
		calls := turn.response.Message.ToolCalls()
		if len(calls) == 0 {
			paused := turn.response.Stop == drawbridge.StopPaused && len(turn.response.Message.Parts) > 0
			if paused || c.hasQueue() {
				continue
			}
			return nil
		}
		refused, err := c.callTools(ctx, turn, calls)
		if err != nil {
			return err
		}
		if refused != nil && overBudget {
			return refused
		}
		overBudget = refused != nil
		if c.breaker.endTurn() {
			return ErrLooping
		}
	}
}

// hasQueue reports whether messages of the person wait.
func (c *conversation) hasQueue() bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.path == "" && len(c.s.queue) > 0
}

// A turn is one answer of the model.
type turn struct {
	response drawbridge.ModelResponse
	cost     float64
	// offered are the names of the tools that the model may call.
	offered []drawbridge.CardName
	// provider is the name of the model's provider.
	provider string
}

// takeTurn asks the model for its next message and records it.
func (c *conversation) takeTurn(ctx context.Context) (turn, error) {
	model, thinking := c.s.current()
	info := model.Info()
	tools, offered, err := c.selectTools(ctx, info)
	if err != nil {
		return turn{}, err
	}
	c.mu.Lock()
	c.fixed = len(c.instructions) + toolsSize(tools)
	c.mu.Unlock()
	if !c.s.o.ManualCondense && c.mustCondense(info) {
		// A conversation without old turns is sent as it is: the model decides whether it is too long. Few old turns are
		// not worth a summary in each turn.
		if err := c.condense(ctx, reserveTokens); err != nil && !errors.Is(err, ErrTooShort) {
			return turn{}, err
		}
	}
	c.emit(Event{Kind: TurnStarted, Model: info.String()})
	request := func() drawbridge.ModelRequest {
		c.mu.Lock()
		defer c.mu.Unlock()
		return drawbridge.ModelRequest{Instructions: c.instructions, Messages: c.transcript.messages(info.Images),
			Tools: tools, MaxOutput: c.s.o.MaxOutput, Thinking: thinking, CacheKey: c.cacheKey()}
	}
	response, cost, err := c.ask(ctx, model, request(), true)
	if e, ok := errors.AsType[*drawbridge.ModelError](err); ok && e.Code == drawbridge.ModelContextTooLong {
		if short := c.condense(ctx, 0); short != nil {
			return turn{}, errors.Join(err, short)
		}
		response, cost, err = c.ask(ctx, model, request(), true)
	}
	if err != nil {
		return turn{}, err
	}
	t := turn{response: response, cost: cost, offered: offered, provider: info.Provider}
	return t, c.record(ctx, &t)
}

// cacheKey identifies the conversation for the provider's cache.
func (c *conversation) cacheKey() string {
	if c.path == "" {
		return c.s.history.ID()
	}
	return c.s.history.ID() + "/" + c.path
}

// record writes the model's message to the history.
func (c *conversation) record(ctx context.Context, t *turn) error {
	r := &t.response
	r.Message.Role = drawbridge.AssistantRole
	r.Message = c.withCallIDs(r.Message)
	e, err := c.append(ctx, Entry{Kind: ModelEntry, Message: &r.Message, Model: r.Model, Stop: r.Stop, Usage: &r.Usage,
		Cost: t.cost})
	if err != nil {
		return err
	}
	r.Message = *e.Message
	c.mu.Lock()
	c.measured = measurement{tokens: r.Usage.Input + r.Usage.Output, size: c.requestSize()}
	c.mu.Unlock()
	c.emit(Event{Kind: TurnFinished, Message: &r.Message, Usage: &r.Usage, Model: r.Model})
	switch {
	case r.Stop == drawbridge.StopMaxOutput:
		c.emit(Event{Kind: Notice, Text: "the answer was cut off: it reached the limit of tokens"})
	case r.Stop == drawbridge.StopRefusal:
		c.emit(Event{Kind: Notice, Text: "the model refused to answer"})
	case len(r.Message.Parts) == 0:
		c.emit(Event{Kind: Notice, Text: "the model answered with an empty message"})
	}
	return nil
}

// withCallIDs returns m with an ID for each call that has none, or that of an earlier call in m.
func (c *conversation) withCallIDs(m drawbridge.Message) drawbridge.Message {
	m.Parts = slices.Clone(m.Parts)
	seen := map[string]bool{}
	for i, p := range m.Parts {
		if p.ToolCall == nil {
			continue
		}
		call := *p.ToolCall
		if call.ID == "" || seen[call.ID] {
			call.ID = "call_" + c.s.newID()
		}
		seen[call.ID] = true
		m.Parts[i].ToolCall = &call
	}
	return m
}

// selectTools returns the tools of the next turn and the names that the model may call. Tools that the model has seen
// come first, in the order in which it saw them.
func (c *conversation) selectTools(ctx context.Context, info drawbridge.ModelInfo) (
	tools []drawbridge.ToolDefinition, offered []drawbridge.CardName, err error) {
	who := c.identity()
	selected, err := c.s.tools.Select(ctx, who, c.about, slices.Clone(c.known))
	if err != nil {
		return nil, nil, fmt.Errorf("select the tools: %w", err)
	}
	// A model that searches for tools itself sees the tools of the first turn; later ones are found, so that the request
	// begins with the bytes of the request before.
	finds := info.DeferredTools && len(c.known) > 0
	byName := make(map[drawbridge.CardName]drawbridge.ToolDefinition, len(selected))
	var fresh []drawbridge.CardName
	seen := make(map[drawbridge.CardName]bool, len(c.known))
	for _, name := range c.known {
		seen[name] = true
	}
	for _, t := range selected {
		if _, twice := byName[t.Name]; twice || !who.MayCall(t.Name) {
			continue
		}
		if info.DeferredTools {
			t.Deferred = !seen[t.Name] && (t.Deferred || finds)
		}
		byName[t.Name] = t
		offered = append(offered, t.Name)
		switch {
		case !t.Deferred && !seen[t.Name]:
			fresh = append(fresh, t.Name)
		case t.Deferred && info.DeferredTools && !slices.Contains(c.deferred, t.Name):
			c.deferred = append(c.deferred, t.Name)
		}
	}
	if len(fresh) > 0 {
		if _, err := c.append(ctx, Entry{Kind: ToolsEntry, Names: fresh}); err != nil {
			return nil, nil, err
		}
		c.known = append(c.known, fresh...)
	}
	for _, name := range slices.Concat(c.known, c.deferred) {
		if t, ok := byName[name]; ok && (info.DeferredTools || !t.Deferred) {
			tools = append(tools, t)
			delete(byName, name) // one that was deferred may be known now
		}
	}
	return tools, offered, nil
}
