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
	// The pauses before a call is repeated for a server that asks nothing, but wants to be called again, double from
	// the first to the last.
	minRoundPause = 50 * time.Millisecond
	maxRoundPause = 2 * time.Second
)

// CallInRounds goes on with the call of a stateful caller that a server of the stateless generation answered with a
// result that needs input: the caller is asked by its Peer, and the server called again with the answers, until it has
// enough, for no longer than the line's Limit and no more than 16 times, with no more than 32 questions each time. The
// error is the line's own, or a *drawbridge.Fault: the caller's refusal, or why a question or its answer went no
// further.
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

// roundsFault is why the questions of a call came to nothing.
func (l CallEnv) roundsFault(ctx context.Context, err error) error {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok && !errors.Is(err, context.DeadlineExceeded) {
		return f
	}
	if ctx.Err() == nil {
		err = fmt.Errorf("timeout: not finished after %v, with all its questions", l.Limit)
	}
	return l.unfinishedFault(err)
}

// NeedsInput says whether a result of the stateless generation asks for input. The search for the bare word is much
// cheaper than reading a large result.
func NeedsInput(result json.RawMessage) bool {
	return rawjson.MayContain(result, inputRequired) && rawjson.GetString(result, "resultType") == inputRequired
}

// A inputRequest is one question of a round, under its name.
type inputRequest struct {
	name, method string
	params       json.RawMessage
}

// askCaller asks the caller one question after the other, and gives the answers as an object; nil where nothing is
// asked. The error is a *drawbridge.Fault, the caller's own refusal or that of demands, or why ctx ended.
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

// parseInputRequests reads the questions of a round. The error is a *drawbridge.Fault where there are too many, or one
// that the caller did not declare to answer: then none is asked.
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
				Err: fmt.Errorf("the server asks for %.40q, which the client did not declare that it answers",
					q.method),
			}
		}
		if q.method == mcp.MethodElicitation && rawjson.GetString(q.params, "mode") == "url" &&
			rawjson.Get(q.params, "elicitationId") == nil {
			// The stateful generation requires what the stateless one has no more.
			q.params = rawjson.Apply(q.params, rawjson.Put(rawjson.Quote(rand.Text()), "elicitationId"))
		}
		// Of a repeated name the last counts, as everywhere.
		asked = slices.DeleteFunc(asked, func(other inputRequest) bool { return other.name == name })
		asked = append(asked, q)
	}
	return asked, nil
}

func errTooManyQuestions(n int) error {
	return fmt.Errorf("the server asks %d questions at once; at most %d are passed on", n, maxOpenQuestions)
}

// withInputResponses gives the params of a call that is made again with answers. Answers and state may be nil.
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

// sleepContext waits.
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
