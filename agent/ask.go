package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// usualOutput is how many tokens of an answer are reserved if neither the options nor the model limit it, and
	// leastOutput is the smallest limit of an answer that is worth a request.
	usualOutput = 8192
	leastOutput = 256
)

// ask sends a request to a model within the budget. stream passes on what arrives as events.
func (c *conversation) ask(ctx context.Context, model Model, r drawbridge.ModelRequest, stream bool) (
	response drawbridge.ModelResponse, cost float64, err error) {
	info := model.Info()
	input := c.inputTokens(r)
	reservation, err := c.reserve(info, &r, input)
	if err != nil {
		return response, 0, err
	}
	c.s.mu.Lock()
	c.s.asking++
	c.s.mu.Unlock()
	received := 0 // bytes of the answer
	response, err = model.Generate(ctx, r, func(d drawbridge.ModelDelta) {
		received += len(d.Text) + len(d.Thinking)
		if stream {
			c.emitDelta(d)
		}
	})
	c.s.mu.Lock()
	c.s.asking--
	c.s.mu.Unlock()
	if err != nil {
		used := drawbridge.ModelUsage{Input: input, Output: estimateTokens(received, measurement{})}
		if e, ok := errors.AsType[*drawbridge.ModelError](err); ok && e.Code != drawbridge.ModelBroken && received == 0 {
			reservation.Release()
			return response, 0, err
		}
		// The provider may charge for an answer that did not end.
		reservation.Commit(Amount{Tokens: used.Input + used.Output, Dollars: info.Price.Cost(used), Turns: 1})
		return response, 0, err
	}
	if response.Usage == (drawbridge.ModelUsage{}) { // the provider does not count
		response.Usage = drawbridge.ModelUsage{Input: input,
			Output: estimateTokens(messageSize(response.Message), measurement{})}
	}
	if response.Model == "" {
		response.Model = info.String()
	}
	cost = c.price(info, response).Cost(response.Usage)
	reservation.Commit(Amount{Tokens: response.Usage.Input + response.Usage.Output, Dollars: cost, Turns: 1})
	c.s.addUsage(response.Usage, cost)
	return response, cost, nil
}

// reserve reserves the tokens and the cost of a request in the budget. It limits the answer to the rest of the budget.
func (c *conversation) reserve(info drawbridge.ModelInfo, r *drawbridge.ModelRequest, input int64) (*Reservation, error) {
	limits := c.s.budget.Limits()
	output := int64(usualOutput)
	for _, n := range []int{info.MaxOutput, r.MaxOutput} {
		if n > 0 {
			output = int64(n)
		}
	}
	reservation, granted, err := c.s.budget.ReserveTurn(TurnEstimate{Model: info.String(), Price: info.Price,
		Input: input, Output: output, Least: leastOutput})
	if err == nil && (limits.Tokens > 0 || limits.Dollars > 0) {
		r.MaxOutput = int(granted)
	}
	return reservation, err
}

// price returns the price of the model that answered.
func (c *conversation) price(info drawbridge.ModelInfo, r drawbridge.ModelResponse) drawbridge.ModelPrice {
	if r.Price != (drawbridge.ModelPrice{}) {
		return r.Price
	}
	if r.Model != info.String() && c.s.budget.Limits().Dollars > 0 {
		c.emit(Event{Kind: Notice, Text: fmt.Sprintf("%s answered in the place of %s: its price is not known, "+
			"and the price of %s is counted", r.Model, info, info)})
	}
	return info.Price
}

// inputTokens estimates the input tokens of a request.
func (c *conversation) inputTokens(r drawbridge.ModelRequest) int64 {
	size := len(r.Instructions) + toolsSize(r.Tools)
	for _, m := range r.Messages {
		size += messageSize(m)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return estimateTokens(size, c.measured)
}

func (c *conversation) emitDelta(d drawbridge.ModelDelta) {
	switch {
	case d.Retry != nil:
		reason := "no reason"
		if d.Retry.Err != nil {
			reason = d.Retry.Err.Error()
		}
		c.emit(Event{Kind: ModelRetried, Text: fmt.Sprintf("attempt %d follows in %s: %s", d.Retry.Attempt, d.Retry.After,
			reason)})
	case d.Thinking != "":
		c.emit(Event{Kind: ThinkingDelta, Text: d.Thinking})
	case d.Text != "":
		c.emit(Event{Kind: TextDelta, Text: d.Text})
	}
}
