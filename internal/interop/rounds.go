package interop

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

const (
	// maxRounds is how often one call may be answered with questions.
	maxRounds = 16
	// maxOpenQuestions is how many questions of one call may be open at once: a person answers them.
	maxOpenQuestions = 32
	// Pauses before a call is repeated for a server that asks nothing double from minRoundPause to maxRoundPause.
	minRoundPause = 50 * time.Millisecond
	maxRoundPause = 2 * time.Second
)

// CallInRounds continues a stateful caller's call that a stateless server answered with a result that needs input. It
// asks the caller by its Peer and repeats the call with the answers until the server has enough. That takes at most the
// Limit of line and 16 rounds of 32 questions. The error is the one of line.Call, or a *drawbridge.Fault: the caller's
// refusal, or why a question or answer was not passed on.
func CallInRounds(ctx context.Context, line CallEnv, call drawbridge.Call, result drawbridge.Result) (
	drawbridge.Result, error) {
	bounded, cancel := context.WithTimeout(ctx, line.Limit)
	defer cancel()
	wait := minRoundPause
	for range maxRounds {
		questions := rawjson.Get(result.Raw, "inputRequests")
		answers, err := line.askCaller(bounded, call, questions)
		if err == nil && answers == nil {
			err = sleepContext(bounded, wait)
			wait = min(2*wait, maxRoundPause)
		}
		if err != nil {
			return drawbridge.Result{}, line.roundsFault(ctx, err)
		}
		retry := call
		retry.Params = withInputResponses(call.Params, answers, rawjson.Get(result.Raw, "requestState"))
		result, err = line.Call(bounded, retry)
		switch {
		case err != nil && bounded.Err() != nil:
			return drawbridge.Result{}, line.roundsFault(ctx, err)
		case err != nil || !NeedsInput(result.Raw):
			return result, err
		}
	}
	return drawbridge.Result{}, &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: line.Step,
		Err: fmt.Errorf("the server asked for input %d times and is not done", maxRounds+1),
	}
}

// roundsFault returns the fault for a call whose rounds failed.
func (l CallEnv) roundsFault(ctx context.Context, err error) error {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok && !errors.Is(err, context.DeadlineExceeded) {
		return f
	}
	if ctx.Err() == nil {
		err = fmt.Errorf("timeout: not finished after %v, with all its questions", l.Limit)
	}
	return l.unfinishedFault(err)
}

// NeedsInput reports whether a stateless result asks for input. Searching for the word first is much cheaper than
// reading a large result.
func NeedsInput(result json.RawMessage) bool {
	return rawjson.MayContain(result, inputRequired) && rawjson.GetString(result, "resultType") == inputRequired
}

// An inputRequest is one question of a round, under its name.
type inputRequest struct {
	name, method string
	params       json.RawMessage
}

// askCaller asks the caller the questions one after the other and returns the answers as an object; nil if there are
// none. The error is a *drawbridge.Fault or ctx's.
func (l CallEnv) askCaller(ctx context.Context, call drawbridge.Call, questions json.RawMessage) (
	json.RawMessage, error) {
	asked, err := l.parseInputRequests(call, questions)
	if err != nil || len(asked) == 0 {
		return nil, err
	}
	answers := []byte{'{'}
	for i, q := range asked {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		answer, err := l.Elicitations.AskUser(ctx, l.Rules, call.Caller.Principal, call.Peer, q.method, q.params)
		if err != nil {
			return nil, err
		}
		if answer == nil {
			answer = json.RawMessage("{}")
		}
		if i > 0 {
			answers = append(answers, ',')
		}
		answers = append(append(rawjson.AppendQuoted(answers, q.name), ':'), answer...)
	}
	return append(answers, '}'), nil
}

// parseInputRequests reads the questions of a round. It returns a *drawbridge.Fault if there are too many, or one that
// the caller did not declare to answer: then none is asked.
func (l CallEnv) parseInputRequests(call drawbridge.Call, questions json.RawMessage) ([]inputRequest, error) {
	count := 0
	for range rawjson.Members(questions) {
		count++
	}
	if count > maxOpenQuestions {
		return nil, &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: l.Step,
			Err: errTooManyQuestions(count)}
	}
	asked := make([]inputRequest, 0, count)
	for m := range rawjson.Members(questions) {
		name, ok := rawjson.DecodeString(m.Name)
		if !ok {
			continue
		}
		q := inputRequest{name, rawjson.GetString(m.Value, "method"), rawjson.Get(m.Value, "params")}
		if call.Peer == nil || !mcp.ServerMayRequest(call.Caller.Capabilities, l.Capabilities, q.method, q.params) {
			return nil, &drawbridge.Fault{
				Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: l.Step,
				Err: fmt.Errorf("the server sent %.40q, which the client did not declare to support",
					q.method),
			}
		}
		if q.method == mcp.MethodElicitation && rawjson.GetString(q.params, "mode") == "url" &&
			rawjson.Get(q.params, "elicitationId") == nil {
			// The stateful era requires an id that the stateless one no longer has.
			q.params = rawjson.Apply(q.params, rawjson.Put(rawjson.Quote(rand.Text()), "elicitationId"))
		}
		// Of a repeated name the last one counts, as everywhere.
		asked = slices.DeleteFunc(asked, func(other inputRequest) bool { return other.name == name })
		asked = append(asked, q)
	}
	return asked, nil
}

func errTooManyQuestions(n int) error {
	return fmt.Errorf("the server asks %d questions at once; at most %d are passed on", n, maxOpenQuestions)
}

// withInputResponses returns the params of a repeated call. Answers and state may be nil.
func withInputResponses(params, answers, state json.RawMessage) json.RawMessage {
	edits := []rawjson.Edit{rawjson.Drop("inputResponses"), rawjson.Drop("requestState")}
	if answers != nil {
		edits = append(edits, rawjson.Put(answers, "inputResponses"))
	}
	if state != nil {
		edits = append(edits, rawjson.Put(state, "requestState"))
	}
	return rawjson.Apply(params, edits...)
}

// sleepContext waits for d or the end of ctx.
func sleepContext(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
