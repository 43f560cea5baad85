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

// A CallEnv is the environment of one call: the called server, the function that sends the call, and the limits and
// rules for the call.
type CallEnv struct {
	// Server is the called server. Step describes the call in faults: "call echo on github".
	Server drawbridge.ServerID
	Step   string
	// Capabilities are the capabilities that the server declares; they may be nil.
	Capabilities json.RawMessage
	// Call sends a call to the server and returns its result. Requests that the server sends meanwhile are passed to
	// the Peer of that call.
	Call func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error)
	// Limit is the time limit of CallInRounds for a call with all its questions. For BeginCall, only the function Call
	// limits the time.
	Limit time.Duration
	// Lifetime is a context that ends when the server is closed. Start runs work in a goroutine; closing the server
	// waits for that goroutine. BeginCall uses both.
	Lifetime context.Context
	Start    func(work func()) error
	// Logger must not be nil.
	Logger *slog.Logger
	// Elicitations sends the server's elicitations to the caller according to Rules; nil sends all of them without
	// limits.
	Elicitations *ElicitationQueue
	Rules        ElicitationRules
}

// unfinishedFault returns the fault for a call that was sent to the server but has no result, because of err.
func (l CallEnv) unfinishedFault(err error) error {
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: l.Step, Err: err,
		Ambiguous: true}
}

// A statelessCall is a stateless caller's call to a server that may send requests during the call. The caller's first
// request begins the call. Each later request contains answers, and the last request receives the result. The call
// itself runs in a separate goroutine. Between two requests of the caller, the call is stored in ParkedCalls.
type statelessCall struct {
	env       CallEnv
	principal string
	ctx       context.Context // the context of the call itself
	cancel    context.CancelCauseFunc
	// wake holds one value when the waiting request must look for a new question, a new notification or the end of the
	// call.
	wake chan struct{}

	mu sync.Mutex
	// peer and token are the Peer and the progress token of the waiting request; peer is nil if no request waits.
	peer  drawbridge.Peer
	token json.RawMessage
	// capabilities are the client capabilities in the caller's last request.
	capabilities json.RawMessage
	// firstWantsLogs is set if the caller's first request asked for log messages. logs is set if the first or the last
	// request asked for them.
	firstWantsLogs, logs bool
	// buffered holds the undelivered notifications.
	buffered notificationBuffer
	// questions are the unanswered questions, in the order in which the server asked them. questionCount is the number
	// of all questions of the call so far.
	questions     []*question
	questionCount int
	// over is set when the call has ended. Then result or err is its outcome.
	over   bool
	result drawbridge.Result
	err    error
}

// A question is a request that the server sent during a call and that the caller has not answered.
type question struct {
	name   string
	method string
	params json.RawMessage
	answer chan answer // has room for one answer
}

// An answer is the result object of a question, or an error.
type answer struct {
	result json.RawMessage
	err    error
}

var _ drawbridge.Peer = (*statelessCall)(nil)

// BeginCall begins a call of a stateless caller and returns its first result: the server's result, or a result that
// asks the caller for input. The error is an error of line.Start or line.Call, or a *drawbridge.Fault if the caller has
// left.
func (p *ParkedCalls) BeginCall(ctx context.Context, line CallEnv, call drawbridge.Call) (drawbridge.Result, error) {
	t := &statelessCall{
		env: line, principal: call.Caller.Principal, wake: make(chan struct{}, 1),
		firstWantsLogs: requestWantsLogs(call), buffered: notificationBuffer{roomSignal: make(chan struct{})},
	}
	t.ctx, t.cancel = context.WithCancelCause(line.Lifetime)
	own := call
	own.Peer = t
	// The server always reports progress, because a later request may ask for it. Each request gets progress with its
	// own token.
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

// attachRequest makes call the current request of the caller. Each request declares the client's capabilities again. So
// attachRequest sends an error to the server for each unanswered question that these capabilities do not cover. The
// caller must hold mu.
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

// clientAccepts reports whether the capabilities in the caller's last request cover a server request. The caller must
// hold mu.
func (t *statelessCall) clientAccepts(method string, params json.RawMessage) bool {
	return mcp.ServerMayRequest(t.capabilities, t.env.Capabilities, method, params)
}

var errUndeclared = errors.New("the client did not declare it")

// undeclaredFault returns the error with which a server request is refused if the client did not declare support for
// it.
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

// waitForOutcome waits for and returns the next result of the call: its final result, or a result with questions. If no
// more calls can be parked, the questions are refused and the call continues. If the caller leaves, the call is
// cancelled.
func (t *statelessCall) waitForOutcome(ctx context.Context, p *ParkedCalls, call drawbridge.Call) (
	drawbridge.Result, error) {
	defer t.detachPeer()
	for {
		// Notifications that arrived before a question or the end are delivered first.
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

// state reports whether the call has ended, and whether it has unanswered questions.
func (t *statelessCall) state() (over, asks bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over, len(t.questions) > 0
}

var errTooManyParked = &drawbridge.Fault{
	Kind: drawbridge.BridgeFault, Code: drawbridge.RateLimited,
	Step: "ask the caller", Err: errors.New("too many of its calls wait for answers already"),
}

// Request sends a request of the server to the caller, as a question in a result. It waits until a later request of the
// caller contains the answer. It refuses a request that the capabilities in the caller's last request do not cover, and
// the request after 32 unanswered questions.
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

// addQuestion adds a question to the unanswered questions. It returns an error if Request must refuse the question.
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

// signal wakes the request of the caller that waits in waitForOutcome. If no request waits, the next wait returns
// immediately.
func (t *statelessCall) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// removeQuestion removes a question.
func (t *statelessCall) removeQuestion(q *question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.questions = slices.DeleteFunc(t.questions, func(other *question) bool { return other == q })
}

// refuseQuestions responds to every open question with the error errTooManyParked.
func (t *statelessCall) refuseQuestions() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range t.questions {
		q.answer <- answer{err: errTooManyParked}
	}
	t.questions = nil
}

// takeAnswers makes call the current request and passes the answers in its params to the unanswered questions. Answers
// to unknown questions are ignored. If an answer is not an object, takeAnswers returns an error and changes nothing.
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

// finishCall stores the final result of the call, for the request that waits or for the caller's next request.
func (t *statelessCall) finishCall(result drawbridge.Result, err error) {
	t.mu.Lock()
	t.over, t.result, t.err = true, result, err
	t.mu.Unlock()
	t.signal()
}

// inputRequiredResult returns a result that asks the caller the unanswered questions. The requestState of the result is
// the handle.
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
