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
	// maxRounds is the maximum number of times that a server may respond to one call with questions.
	maxRounds = 16
	// maxOpenQuestions is the maximum number of unanswered questions of one call. It is small because a person answers
	// them.
	maxOpenQuestions = 32
	// minRoundPause and maxRoundPause limit a pause. If a server asks for input without any question, the call is
	// repeated after the pause. The pause doubles each time.
	minRoundPause = 50 * time.Millisecond
	maxRoundPause = 2 * time.Second
)

// CallInRounds continues the call of a stateful caller after a stateless server responded with result, which asks for
// input. It sends the questions to the caller's Peer and repeats the call with the answers, until a result does not ask
// for input. The server may ask at most 16 times, at most 32 questions each time; line.Limit limits the whole time. The
// error is an error of line.Call, or a *drawbridge.Fault. The fault is the caller's refusal, or the reason why a
// question or an answer was not passed on.
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

// roundsFault returns the fault with which CallInRounds ends after the error err.
func (l CallEnv) roundsFault(ctx context.Context, err error) error {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok && !errors.Is(err, context.DeadlineExceeded) {
		return f
	}
	if ctx.Err() == nil {
		err = fmt.Errorf("timeout: not finished after %v, with all its questions", l.Limit)
	}
	return l.unfinishedFault(err)
}

// NeedsInput reports whether a result of a stateless server asks for input. It parses the result only if it contains
// the text "input_required", because parsing a large result is slow.
func NeedsInput(result json.RawMessage) bool {
	return rawjson.MayContain(result, inputRequired) && rawjson.GetString(result, "resultType") == inputRequired
}

// An inputRequest is one question in a result that asks for input. name is its key in the object inputRequests.
type inputRequest struct {
	name, method string
	params       json.RawMessage
}

// askCaller sends the questions in a server's result to the caller, one after the other. It returns the answers as an
// object with the same keys; nil if there are no questions. The error is a *drawbridge.Fault or the error of ctx.
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

// parseInputRequests parses the questions in a server's result. It returns a *drawbridge.Fault if there are too many
// questions, or if the caller did not declare support for one of them. Then the caller is not asked any question.
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
			// The stateful generation requires an id, which the stateless generation does not have.
			q.params = rawjson.Apply(q.params, rawjson.Put(rawjson.Quote(rand.Text()), "elicitationId"))
		}
		// If a name is repeated, the last question is used, as everywhere.
		asked = slices.DeleteFunc(asked, func(other inputRequest) bool { return other.name == name })
		asked = append(asked, q)
	}
	return asked, nil
}

func errTooManyQuestions(n int) error {
	return fmt.Errorf("the server asks %d questions at once; at most %d are passed on", n, maxOpenQuestions)
}

// withInputResponses returns the params of a repeated call, with the caller's answers and with the requestState that
// the server sent. If answers or state is nil, its member is left out.
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

// sleepContext waits for the duration d. If ctx ends first, it returns the error of ctx.
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
