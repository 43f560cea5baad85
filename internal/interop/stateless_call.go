package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A CallEnv is how one call reaches its server and comes back.
type CallEnv struct {
	// Server is the server called. Step names the call for faults: "call echo on github".
	Server drawbridge.ServerID
	Step   string
	// Capabilities are what the server declares; they may be nil.
	Capabilities json.RawMessage
	// Call makes the call and returns its result. Server requests meanwhile go to the call's Peer.
	Call func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error)
	// Limit bounds a call with all its questions, for CallInRounds; Call bounds the others.
	Limit time.Duration
	// Lifetime ends with the server; Start runs work in an owned goroutine. Both are for BeginCall.
	Lifetime context.Context
	Start    func(work func()) error
	// Logger must not be nil.
	Logger *slog.Logger
	// Elicitations passes the server's elicitations on, by Rules; nil passes all of them on.
	Elicitations *ElicitationQueue
	Rules        ElicitationRules
}

// unfinishedFault returns the fault for a sent call without a result.
func (l CallEnv) unfinishedFault(err error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: l.Step, Err: err,
		Ambiguous: true}
}

// A statelessCall is a stateless caller's call to a server that may send requests during it. The first request of the
// caller begins the call, later ones bring answers, and the last takes the result. The call itself runs in its own
// goroutine. Between two requests it is parked.
type statelessCall struct {
	env       CallEnv
	principal string
	ctx       context.Context // the call's own
	cancel    context.CancelCauseFunc
	// wake holds one token: there is a question, a notification or the end.
	wake chan struct{}

	mu sync.Mutex
	// peer and token belong to the waiting request; peer is nil if there is none.
	peer  drawbridge.Peer
	token json.RawMessage
	// capabilities are those declared by the last request.
	capabilities json.RawMessage
	// firstWantsLogs is set if the first request wants log lines, logs if it or the last one does.
	firstWantsLogs, logs bool
	// buffered holds the undelivered notifications.
	buffered notificationBuffer
	// questions are the questions without an answer, in the order they came; asked counts all.
	questions     []*question
	questionCount int
	// over is set when the call has ended, with result or err.
	over   bool
	result drawbridge.Result
	err    error
}

// A question is a server request without an answer.
type question struct {
	name   string
	method string
	params json.RawMessage
	answer chan answer // has room for the one answer
}

// An answer is a result object or an error.
type answer struct {
	result json.RawMessage
	err    error
}

var _ drawbridge.Peer = (*statelessCall)(nil)

// BeginCall begins a call and returns its first result: the server's, or one that asks the caller for input. The error
// is the one of line.Call, or a *drawbridge.Fault for a caller that left.
func (p *ParkedCalls) BeginCall(ctx context.Context, line CallEnv, call drawbridge.Call) (drawbridge.Result, error) {
	t := &statelessCall{
		env: line, principal: call.Caller.Principal, wake: make(chan struct{}, 1),
		firstWantsLogs: requestWantsLogs(call), buffered: notificationBuffer{roomSignal: make(chan struct{})},
	}
	t.ctx, t.cancel = context.WithCancelCause(line.Lifetime)
	own := call
	own.Peer = t
	// Progress is always told: a later request may want it. The token is replaced by that request's own.
	own.Params = rawjson.Apply(call.Params, rawjson.Put(json.RawMessage("0"), "_meta", mcp.MetaProgressToken))
	t.mu.Lock()
	t.attachRequest(call)
	t.mu.Unlock()
	err := line.Start(func() {
		defer t.cancel(nil)
		t.finishCall(t.callWithElicitations(own))
	})
	if err != nil {
		t.cancel(nil)
		return drawbridge.Result{}, err
	}
	return t.waitForOutcome(ctx, p, call)
}

// attachRequest makes this request the one that the call talks to, and refuses the questions that it did not declare to
// answer: each request declares again. It needs mu.
func (t *statelessCall) attachRequest(call drawbridge.Call) {
	t.peer, t.token = call.Peer, rawjson.Get(call.Params, "_meta", mcp.MetaProgressToken)
	t.capabilities, t.logs = call.Caller.Capabilities, t.firstWantsLogs || requestWantsLogs(call)
	t.questions = slices.DeleteFunc(t.questions, func(q *question) bool {
		covered := t.clientAccepts(q.method, q.params)
		if !covered {
			q.answer <- answer{err: undeclaredFault(q.method)}
		}
		return !covered
	})
}

func requestWantsLogs(call drawbridge.Call) bool {
	return rawjson.GetString(call.Params, "_meta", mcp.MetaLogLevel) != ""
}

// clientAccepts reports whether the last request declared support for a server request. It needs mu.
func (t *statelessCall) clientAccepts(method string, params json.RawMessage) bool {
	return mcp.ServerMayRequest(t.capabilities, t.env.Capabilities, method, params)
}

var errUndeclared = errors.New("the client did not declare it")

// undeclaredFault returns the refusal of a client that does not know the method.
func undeclaredFault(method string) error {
	said := "method not found"
	if capability := mcp.RequiredCapability(method); capability != "" {
		said = fmt.Sprintf("%s: the client did not declare %s", method, capability)
	}
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: "ask the caller: " + method, Err: errUndeclared,
		Raw: mcp.NewErrorObject(mcp.CodeMethodNotFound, said, nil),
	}
}

// waitForOutcome returns the next result of the call: the last one, or questions. The call ends if the caller leaves.
func (t *statelessCall) waitForOutcome(ctx context.Context, p *ParkedCalls, call drawbridge.Call) (
	drawbridge.Result, error) {
	defer t.detachPeer()
	for {
		// Earlier notifications are delivered before a question or the end.
		over, asked := t.state()
		t.deliverNotifications(ctx)
		_, asks := t.state()
		switch {
		case over:
			return t.result, t.err
		case asked && asks && ctx.Err() == nil:
			if result, ok := p.park(t); ok {
				return result, nil
			}
			t.refuseQuestions()
		}
		select {
		case <-t.wake:
		case <-ctx.Done():
			t.cancel(context.Cause(ctx))
			return drawbridge.Result{}, t.env.unfinishedFault(ctx.Err())
		}
	}
}

// state reports whether the call has ended, and whether there are open questions.
func (t *statelessCall) state() (over, asks bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over, len(t.questions) > 0
}

var errTooManyParked = &drawbridge.Fault{
	Kind: drawbridge.BridgeFault, Code: drawbridge.RateLimited,
	Step: "ask the caller", Err: errors.New("too many of its calls wait for answers already"),
}

// Request asks the caller a question of the server and returns the answer, which a later request brings. It refuses
// what the last request did not declare, and more than 32 open questions.
func (t *statelessCall) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	q, err := t.addQuestion(method, params)
	if err != nil {
		return nil, err
	}
	t.signal()
	defer t.removeQuestion(q)
	select {
	case a := <-q.answer:
		return a.result, a.err
	case <-ctx.Done():
		return nil, t.unansweredFault(method, ctx.Err())
	case <-t.ctx.Done():
		return nil, t.unansweredFault(method, context.Cause(t.ctx))
	}
}

// addQuestion adds a question, if it may be asked.
func (t *statelessCall) addQuestion(method string, params json.RawMessage) (*question, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
		return nil, t.unansweredFault(method, errors.New("its call has ended"))
	case !t.clientAccepts(method, params):
		return nil, undeclaredFault(method)
	case len(t.questions) >= maxOpenQuestions:
		return nil, &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.RateLimited, Step: "ask the caller: " + method,
			Err: errTooManyQuestions(len(t.questions) + 1),
		}
	}
	t.questionCount++
	q := &question{strconv.Itoa(t.questionCount), method, params, make(chan answer, 1)}
	t.questions = append(t.questions, q)
	return q, nil
}

func (t *statelessCall) unansweredFault(method string, err error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: "ask the caller: " +
		method, Err: err}
}

// signal wakes the waiting request, now or at its next wait.
func (t *statelessCall) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// removeQuestion takes a question back.
func (t *statelessCall) removeQuestion(q *question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.questions = slices.DeleteFunc(t.questions, func(other *question) bool { return other == q })
}

// refuseQuestions answers every open question with a refusal.
func (t *statelessCall) refuseQuestions() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range t.questions {
		q.answer <- answer{err: errTooManyParked}
	}
	t.questions = nil
}

// takeAnswers attaches a request and passes its answers to the open questions. Unknown answers are ignored. If an
// answer is not an object it returns an error and changes nothing.
func (t *statelessCall) takeAnswers(call drawbridge.Call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	responses := rawjson.Get(call.Params, "inputResponses")
	results := map[*question]json.RawMessage{}
	for _, q := range t.questions {
		result := rawjson.Get(responses, q.name)
		if result != nil && result[0] != '{' {
			return fmt.Errorf("inputResponses: the answer to %q must be a JSON object", q.name)
		}
		results[q] = result
	}
	t.questions = slices.DeleteFunc(t.questions, func(q *question) bool {
		if results[q] != nil {
			q.answer <- answer{result: results[q]}
		}
		return results[q] != nil
	})
	t.attachRequest(call)
	return nil
}

// finishCall ends the call with its result, for the waiting or the next request.
func (t *statelessCall) finishCall(result drawbridge.Result, err error) {
	t.mu.Lock()
	t.over, t.result, t.err = true, result, err
	t.mu.Unlock()
	t.signal()
}

// inputRequiredResult returns the result that asks the open questions, for a retry with this handle.
func (t *statelessCall) inputRequiredResult(handle string) drawbridge.Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range t.questions {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendQuoted(out, q.name), `:{"method":`...)
		out = rawjson.AppendQuoted(out, q.method)
		if q.params != nil {
			out = append(append(out, `,"params":`...), q.params...)
		}
		out = append(out, '}')
	}
	out = append(out, `},"requestState":`...)
	return drawbridge.Result{Raw: append(rawjson.AppendQuoted(out, handle), '}')}
}
