package agentrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

const (
	// waitingRequests is the number of requests of the link that wait while one is handled.
	waitingRequests = 256
	// answerTime is how long a question of the link waits for an answer.
	answerTime = 90 * time.Second
	// aliveTime is the time between two signals after the end of the input.
	aliveTime = time.Second
)

// A link is one connection that holds one session at a time.
type link struct {
	*connection
	host Host
	// queue has the requests that are handled one at a time.
	queue chan linkRequest

	// mu guards the fields below. session is nil until one is open. aborts cancel the prompts that wait or run.
	mu      sync.Mutex
	session *Opened
	aborts  map[int]context.CancelFunc
	last    int
	// questions are those that wait for the method answer, by their IDs. deaf: the input has ended.
	questions map[string]chan agent.Answer
	deaf      bool
}

// A linkRequest is a request that waits for its turn.
type linkRequest struct {
	message
	params linkParams
	// ctx and number are those of a prompt.
	ctx    context.Context
	number int
}

// linkParams are the params of all methods.
type linkParams struct {
	Input   string `json:"input"`
	Session string `json:"sessionId"`
	Model   string `json:"modelId"`
	agent.Answer
}

// ServeLink serves one session, that of o, to the program at the other end of p. At the end of its input, it completes
// the requests that were read. It also returns when ctx ends, or when nothing can be written any more.
func ServeLink(ctx context.Context, p Pipes, host Host, o Opening) error {
	l := &link{connection: connect(ctx, p), host: host, queue: make(chan linkRequest, waitingRequests),
		aborts: map[int]context.CancelFunc{}, questions: map[string]chan agent.Answer{}}
	defer l.close()
	var failed error
	held := make(chan struct{})
	go func() {
		defer close(held)
		failed = l.hold(o)
		l.end(errClientGone)
	}()
	l.receiveAll()
	close(l.queue)
	l.endInput()
	l.waitFor(held)
	for r := range l.queue {
		l.forget(r.number)
		l.respond(r.ID, nil, failure(failed))
	}
	if failed != nil && ctx.Err() == nil {
		return failed
	}
	return clientEnd(ctx)
}

// waitFor waits until the requests that were read are completed. A client that has ended is not told from one that
// only sends no more, so a signal is written now and then: if that fails, the runs are cancelled.
func (l *link) waitFor(held <-chan struct{}) {
	ticker := time.NewTicker(aliveTime)
	defer ticker.Stop()
	for {
		select {
		case <-held:
			return
		case <-ticker.C:
			l.send(signal{Type: "signal", Name: "alive"})
		}
	}
}

// receiveAll handles the input until it ends.
func (l *link) receiveAll() {
	for {
		select {
		case <-l.ctx.Done():
			return
		case m, ok := <-l.in:
			if !ok {
				return
			}
			if problem := l.receive(m); problem != nil {
				id := m.ID
				if id == nil {
					id = json.RawMessage(`""`)
				}
				l.respond(id, nil, problem)
			}
		}
	}
}

// receive handles abort, snapshot and answer, and lets other requests wait for their turn.
func (l *link) receive(m incoming) *rpcError {
	if m.problem != nil {
		return m.problem
	}
	if m.isResponse() {
		return &rpcError{Code: codeRequest, Message: "nothing waits for a response"}
	}
	r := linkRequest{message: m.message}
	if problem := decodeParams(m.Params, &r.params); problem != nil {
		return problem
	}
	switch m.Method {
	case "abort":
		l.respond(m.ID, map[string]bool{"aborted": l.abort()}, nil)
		return nil
	case "snapshot":
		if l.snapshot(m.ID) {
			return nil
		}
	case "answer":
		return l.answer(m.ID, r.params.Answer)
	case "submit":
		if r.params.Input == "" {
			return invalidParams("input is missing")
		}
		r.ctx, r.number = l.expect()
	case "resume":
		if r.params.Session == "" {
			return invalidParams("sessionId is missing")
		}
	case "cycleModel":
		if r.params.Model == "" {
			return invalidParams("modelId is missing")
		}
	case "listModels":
	default:
		return unknownMethod(m.Method)
	}
	select {
	case l.queue <- r:
		return nil
	default:
		l.forget(r.number)
		return &rpcError{Code: codeFailed, Message: fmt.Sprintf("%d requests wait already", waitingRequests)}
	}
}

// expect returns the context of a prompt that waits for its turn, and its number.
func (l *link) expect() (context.Context, int) {
	ctx, cancel := context.WithCancel(l.ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.aborts[l.last] = cancel
	return ctx, l.last
}

// forget ends the context of a prompt.
func (l *link) forget(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel := l.aborts[number]; cancel != nil {
		cancel()
		delete(l.aborts, number)
	}
}

// abort cancels the prompts that run or wait, and reports whether there were any.
func (l *link) abort() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, cancel := range l.aborts {
		cancel()
	}
	return len(l.aborts) > 0
}

// A linkSnapshot is the state of the session.
type linkSnapshot struct {
	agent.Snapshot
	// Thinking is there also if it is the provider's default, which is empty.
	Thinking drawbridge.ThinkingLevel `json:"thinking"`
	File     string                   `json:"sessionFile,omitempty"`
}

// snapshotOf returns the state of a session.
func snapshotOf(o Opened) linkSnapshot {
	now := o.Session.Snapshot()
	return linkSnapshot{now, now.Thinking, o.File}
}

// snapshot answers at once, also while a prompt runs. It returns false if the session is not open yet.
func (l *link) snapshot(id json.RawMessage) bool {
	l.mu.Lock()
	o := l.session
	l.mu.Unlock()
	if o != nil {
		l.respond(id, snapshotOf(*o), nil)
	}
	return o != nil
}

// A heldSession is an open session. release closes it; ended is closed after that.
type heldSession struct {
	Opened
	ctx     context.Context
	release context.CancelFunc
	ended   chan struct{}
	err     error // may be read after ended
}

// open opens a session, which a goroutine of work holds.
func (l *link) open(o Opening, work *sync.WaitGroup) (*heldSession, error) {
	h := &heldSession{ended: make(chan struct{})}
	ctx, release := context.WithCancel(l.ctx)
	h.release = release
	opened := make(chan struct{})
	work.Go(func() {
		defer close(h.ended)
		defer release()
		h.err = l.host.Hold(ctx, o, func(ctx context.Context, s Opened) error {
			h.Opened, h.ctx = s, ctx
			close(opened)
			<-ctx.Done()
			return nil
		})
	})
	select {
	case <-opened:
		return h, nil
	case <-h.ended:
		if h.err == nil {
			return nil, errClientGone
		}
		return nil, h.err
	}
}

// hold opens a session and handles requests until the end. A request may replace the session by another one.
func (l *link) hold(o Opening) error {
	var work sync.WaitGroup
	defer work.Wait()
	current, err := l.open(o, &work)
	if err != nil {
		return err
	}
	defer func() { current.release() }()
	l.setSession(&current.Opened)
	for {
		select {
		case <-current.ctx.Done():
			current.release()
			<-current.ended
			return current.err
		case r, ok := <-l.queue:
			if !ok {
				return nil
			}
			if r.Method == "resume" && r.params.Session != current.Session.Snapshot().Session {
				next, err := l.open(Opening{Dir: o.Dir, Session: r.params.Session, Elicitation: o.Elicitation}, &work)
				if err != nil {
					l.respond(r.ID, nil, failure(err))
					continue
				}
				l.setSession(&next.Opened)
				current.release()
				<-current.ended
				current = next
			}
			result, err := l.handle(current, r)
			l.forget(r.number)
			if err != nil {
				l.respond(r.ID, nil, failure(err))
				continue
			}
			l.respond(r.ID, result, nil)
		}
	}
}

func (l *link) setSession(o *Opened) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = o
}

// failure returns the error of a request that failed.
func failure(err error) *rpcError {
	if problem, ok := errors.AsType[*rpcError](err); ok {
		return problem
	}
	if err == nil {
		err = errClientGone
	}
	return &rpcError{Code: codeFailed, Message: err.Error()}
}

// handle handles one request that had to wait for its turn.
func (l *link) handle(h *heldSession, r linkRequest) (any, error) {
	s := h.Session
	switch r.Method {
	case "resume", "snapshot":
		return snapshotOf(h.Opened), nil
	case "listModels":
		ctx, cancel := context.WithTimeoutCause(h.ctx, requestTime, errLate)
		defer cancel()
		names, err := l.host.Models(ctx)
		if names == nil {
			names = []string{}
		}
		return map[string]any{"models": names, "current": s.Snapshot().Model}, err
	case "cycleModel":
		ctx, cancel := context.WithTimeoutCause(h.ctx, requestTime, errLate)
		defer cancel()
		m, err := l.host.FindModel(ctx, r.params.Model)
		if err == nil {
			err = s.SetModel(h.ctx, m)
		}
		return map[string]string{"model": s.Snapshot().Model}, err
	}
	return l.submit(h.ctx, s, r)
}

// A submitResult is the result of a prompt.
type submitResult struct {
	Session string                `json:"sessionId"`
	Outcome agent.Outcome         `json:"outcome"`
	Text    string                `json:"text"`
	Turns   int                   `json:"turns"`
	Usage   drawbridge.ModelUsage `json:"usage"`
	Cost    float64               `json:"cost,omitempty"`
}

// submit runs a prompt. That it was aborted is a result, not an error.
func (l *link) submit(ctx context.Context, s *agent.Session, r linkRequest) (any, error) {
	stop := context.AfterFunc(ctx, func() { l.forget(r.number) })
	defer stop()
	var questions sync.WaitGroup
	result, err := s.Run(r.ctx, []drawbridge.MessagePart{{Text: r.params.Input}}, func(e agent.Event) {
		l.signal(r.ctx, e, s, &questions)
	})
	l.forget(r.number)
	questions.Wait()
	if err != nil && result.Outcome != agent.Cancelled {
		return nil, &rpcError{codeFailed, "run failed: " + err.Error(), &errorData{Outcome: string(result.Outcome)}}
	}
	return submitResult{s.Snapshot().Session, result.Outcome, result.Text, result.Turns, result.Usage, result.Cost}, nil
}
