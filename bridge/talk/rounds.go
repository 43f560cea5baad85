package talk

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

const (
	// mostRounds is how often one call may be answered with questions.
	mostRounds = 16
	// mostQuestions is how many questions of one call may be open at once: a person answers them.
	mostQuestions = 32
	// The pauses before a call is repeated for a server that asks nothing, but wants to be called again, double from the
	// first to the last.
	firstWait = 50 * time.Millisecond
	lastWait  = 2 * time.Second
)

// InRounds goes on with the call of a stateful caller that a server of the stateless generation answered with a result
// that needs input: the caller is asked by its Peer, and the server called again with the answers, until it has enough, for
// no longer than the line's Limit and no more than 16 times, with no more than 32 questions each time. The error is the line's
// own, or a *drawbridge.Fault: the caller's refusal, or why a question or its answer went no further.
func InRounds(ctx context.Context, line Line, call drawbridge.Call, result drawbridge.Result) (drawbridge.Result, error) {
	bounded, cancel := context.WithTimeout(ctx, line.Limit)
	defer cancel()
	wait := firstWait
	for range mostRounds {
		questions := wire.Get(result.Raw, "inputRequests")
		answers, err := line.askAll(bounded, call, questions)
		if err == nil && answers == nil {
			err = pause(bounded, wait)
			wait = min(2*wait, lastWait)
		}
		if err != nil {
			return drawbridge.Result{}, line.fault(ctx, err)
		}
		retry := call
		retry.Params = withAnswers(call.Params, answers, wire.Get(result.Raw, "requestState"))
		result, err = line.Carry(bounded, retry)
		switch {
		case err != nil && bounded.Err() != nil:
			return drawbridge.Result{}, line.fault(ctx, err)
		case err != nil || !NeedsInput(result.Raw):
			return result, err
		}
	}
	return drawbridge.Result{}, &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: line.Step,
		Err: fmt.Errorf("the server asked for input %d times and is not done", mostRounds+1),
	}
}

// fault is why the questions of a call came to nothing.
func (l Line) fault(ctx context.Context, err error) error {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok && !errors.Is(err, context.DeadlineExceeded) {
		return f
	}
	if ctx.Err() == nil {
		err = fmt.Errorf("timeout: not finished after %v, with all its questions", l.Limit)
	}
	return l.unfinished(err)
}

// NeedsInput says whether a result of the stateless generation asks for input. The search for the bare word is much
// cheaper than reading a large result.
func NeedsInput(result json.RawMessage) bool {
	return wire.MayHave(result, asksInput) && wire.GetText(result, "resultType") == asksInput
}

// A demand is one question of a round, under its name.
type demand struct {
	name, method string
	params       json.RawMessage
}

// askAll asks the caller one question after the other, and gives the answers as an object; nil where nothing is asked.
// The error is a *drawbridge.Fault, the caller's own refusal or that of demands, or why ctx ended.
func (l Line) askAll(ctx context.Context, call drawbridge.Call, questions json.RawMessage) (json.RawMessage, error) {
	asked, err := l.demands(call, questions)
	if err != nil || len(asked) == 0 {
		return nil, err
	}
	answers := []byte{'{'}
	for i, q := range asked {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		answer, err := l.Forms.Ask(ctx, l.Rules, call.Caller.Principal, call.Peer, q.method, q.params)
		if err != nil {
			return nil, err
		}
		if answer == nil {
			answer = json.RawMessage("{}")
		}
		if i > 0 {
			answers = append(answers, ',')
		}
		answers = append(append(wire.AppendQuoted(answers, q.name), ':'), answer...)
	}
	return append(answers, '}'), nil
}

// demands reads the questions of a round. The error is a *drawbridge.Fault where there are too many, or one that the caller
// did not declare to answer: then none is asked.
func (l Line) demands(call drawbridge.Call, questions json.RawMessage) ([]demand, error) {
	count := 0
	for range wire.Members(questions) {
		count++
	}
	if count > mostQuestions {
		return nil, &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: l.Step, Err: tooMany(count)}
	}
	asked := make([]demand, 0, count)
	for m := range wire.Members(questions) {
		name, ok := wire.Text(m.Name)
		if !ok {
			continue
		}
		q := demand{name, wire.GetText(m.Value, "method"), wire.Get(m.Value, "params")}
		if call.Peer == nil || !wire.MayAskBy(call.Caller.Capabilities, l.Capabilities, q.method, q.params) {
			return nil, &drawbridge.Fault{
				Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: l.Step,
				Err: fmt.Errorf("the server asks for %.40q, which the client did not declare that it answers", q.method),
			}
		}
		if q.method == wire.MethodElicitation && wire.GetText(q.params, "mode") == "url" && wire.Get(q.params, "elicitationId") == nil {
			// The stateful generation requires what the stateless one has no more.
			q.params = wire.Apply(q.params, wire.Put(wire.Quote(rand.Text()), "elicitationId"))
		}
		// Of a repeated name the last counts, as everywhere.
		asked = slices.DeleteFunc(asked, func(other demand) bool { return other.name == name })
		asked = append(asked, q)
	}
	return asked, nil
}

func tooMany(n int) error {
	return fmt.Errorf("the server asks %d questions at once; at most %d are passed on", n, mostQuestions)
}

// withAnswers gives the params of a call that is made again with answers. Answers and state may be nil.
func withAnswers(params, answers, state json.RawMessage) json.RawMessage {
	edits := []wire.Edit{wire.Drop("inputResponses"), wire.Drop("requestState")}
	if answers != nil {
		edits = append(edits, wire.Put(answers, "inputResponses"))
	}
	if state != nil {
		edits = append(edits, wire.Put(state, "requestState"))
	}
	return wire.Apply(params, edits...)
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
