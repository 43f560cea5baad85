package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// Limits of the stdio endpoint.
const (
	// maxInFlight is the maximum number of requests in progress on a pipe, and of a session. Further requests are
	// refused.
	maxInFlight = 1024
	// stdioDrainTimeout is how long requests in progress may continue after the end of the input. People may write
	// requests to a pipe, close it, and still expect responses. Requests that take longer get an error response.
	stdioDrainTimeout = 5 * time.Second
	// stdioCloseTimeout is how long ServeStdio waits at the end for a read or a write that cannot be interrupted.
	stdioCloseTimeout = 200 * time.Millisecond
)

// ServeStdio serves MCP on a pair of pipes, one message per line, until in ends, ctx ends or out is no longer read. A
// request with a stateless version in "_meta" is handled as a stateless request. All other requests belong to the one
// stateful session, which initialize opens. When in ends, requests in progress may continue for a few seconds, and then
// get an error. When ctx ends, all requests end immediately, and in is closed if it is an io.Closer. If a write to out
// blocks then, out is closed too, so that no goroutine remains.
//
// ServeStdio returns nil at the end of in. If ctx ended, it returns the cause. Otherwise it returns the error of
// reading in or writing out.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if !s.gate.enter() {
		return errors.New("serve stdio: the server is closed")
	}
	defer s.gate.leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(context.Canceled) })()
	p := newStdioConn(ctx, s, in, out)
	defer p.endCalls(nil)
	var writing sync.WaitGroup
	writing.Go(func() {
		p.out.run(func(b []byte) error {
			_, err := out.Write(b)
			if err != nil {
				cancel(err)
			}
			return err
		}, 0, nil)
	})
	defer context.AfterFunc(ctx, p.out.dropOverflow)()
	p.reading.Go(p.readLines)
	if err := p.awaitInputEnd(); err != nil {
		cancel(err)
	}
	p.drain()
	p.out.close()
	select {
	case <-doneChannel(&writing):
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		p.reading.Wait()
		return nil
	}
	if !waitAtMost(&writing, stdioCloseTimeout) {
		closeIfCloser(out)
		p.out.fail()
	}
	closeIfCloser(in)
	waitAtMost(&p.reading, stdioCloseTimeout)
	return context.Cause(ctx)
}

// closeIfCloser closes v if it is an io.Closer. This interrupts blocked reads and writes.
func closeIfCloser(v any) {
	if c, ok := v.(io.Closer); ok {
		_ = c.Close() // v is not used any more
	}
}

// waitAtMost waits until a group is done, but not longer than most. It reports whether the group is done. The limit is
// needed because a read from a terminal or a write to a blocked pipe cannot always be interrupted.
func waitAtMost(g *sync.WaitGroup, most time.Duration) bool {
	select {
	case <-doneChannel(g):
		return true
	case <-time.After(most):
		return false
	}
}

// doneChannel returns a channel that is closed when the group is done.
func doneChannel(g *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		g.Wait()
		close(done)
	}()
	return done
}

// A stdioConn is one connection over stdio.
type stdioConn struct {
	s   *Server
	out *outbox
	// life is a context that ends with the connection. eof is closed when no more input will be handled.
	life context.Context
	eof  chan struct{}
	// calls is the context of the requests. It ends with life, or some time after the end of the input.
	calls    context.Context
	endCalls context.CancelCauseFunc
	inFlight inFlightRequests
	working  sync.WaitGroup
	workers  WorkerPool
	// coroutines run the calls that begin in the reading goroutine. inline decides which calls do.
	coroutines coroutinePool
	inline     inlineChoice

	// The goroutine with the turn reads lines. inputEnd receives the error with which the input ended; io.EOF at a
	// regular end. reading waits for the goroutines that read or have read.
	lines    *mcp.LineReader
	turn     *transport.ReadTurn
	inputEnd chan error
	reading  sync.WaitGroup

	// handling is held while a line is handled. stopped is set when no more lines are handled. session is the stateful
	// session; nil before initialize. Only the handling of a line sets it.
	handling sync.Mutex
	stopped  bool
	session  *session
}

func newStdioConn(ctx context.Context, s *Server, in io.Reader, out io.Writer) *stdioConn {
	if f, ok := in.(*os.File); ok {
		in = transport.NewPipeReader(f)
	}
	p := &stdioConn{s: s, out: newOutboxTo(out), life: ctx, eof: make(chan struct{}),
		lines: mcp.NewLineReader(in, 0), inputEnd: make(chan error, 1)}
	p.coroutines.workers = &p.workers
	p.turn = transport.NewReadTurn(func() { p.reading.Go(p.readLines) })
	p.calls, p.endCalls = context.WithCancelCause(ctx)
	return p
}

var _ sender = (*stdioConn)(nil)

// send sends a message. See sender.
func (p *stdioConn) send(message []byte, must bool) error {
	return p.out.put(append(message, '\n'), must)
}

// done returns a channel that is closed when the input has ended, so that the client can send no more responses.
func (p *stdioConn) done() <-chan struct{} { return p.eof }

// readLines reads and handles lines until the input ends, no more lines are handled, or another goroutine gets the turn
// to read.
func (p *stdioConn) readLines() {
	for {
		text, err := p.lines.Next()
		if err != nil && !errors.Is(err, mcp.ErrTooLong) {
			p.inputEnd <- err
			return
		}
		call, ok := p.handleInput(text, err)
		if !ok || call != nil && !p.inline.run(p.turn, call) {
			return
		}
	}
}

// handleInput handles a line, or the error of reading it. It returns false if no more lines are handled. If it returns a
// call, the caller must run it.
func (p *stdioConn) handleInput(text []byte, err error) (call *inlineCall, ok bool) {
	p.handling.Lock()
	defer p.handling.Unlock()
	switch {
	case p.stopped || p.life.Err() != nil:
		return nil, false
	case err != nil:
		p.respond(nil, failureReply(mcp.CodeInvalidRequest, "The message is too large", nil))
		return nil, true
	}
	p.inline.begin(len(text), p.lines.HasMore())
	p.handleLine(text)
	return p.inline.take(), true
}

// awaitInputEnd waits until the input or the connection ends. It returns nil at the end of the input, else the reason
// for the end. After that, no more lines are handled.
func (p *stdioConn) awaitInputEnd() error {
	defer close(p.eof)
	var err error
	select {
	case <-p.life.Done():
		err = context.Cause(p.life)
	case err = <-p.inputEnd:
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	p.handling.Lock()
	defer p.handling.Unlock()
	p.stopped = true
	return err
}

// errInputEnded is the cause with which requests are cancelled that take too long after the end of the input. Unlike
// requests that the client cancelled, these requests get a response.
var errInputEnded = errors.New("the input ended")

// replyOrEnded returns answer, the reply to a request that ran with ctx. If answer is the zero reply because the input
// has ended, it returns an error reply instead.
func replyOrEnded(ctx context.Context, answer reply) reply {
	if answer.isNone() && context.Cause(ctx) == errInputEnded {
		return failureReply(mcp.CodeInternal, "The input ended", nil)
	}
	return answer
}

// drain waits for the requests in progress, for at most stdioDrainTimeout. Then it cancels the remaining requests and
// ends the session.
func (p *stdioConn) drain() {
	waitAtMost(&p.working, stdioDrainTimeout)
	p.endCalls(errInputEnded)
	if p.session != nil {
		p.s.endSession(p.session)
	}
	p.working.Wait()
	p.coroutines.close()
	p.workers.Close()
}

// respond sends a response; the zero reply sends nothing.
func (p *stdioConn) respond(id json.RawMessage, r reply) {
	if !r.isNone() {
		_ = p.send(r.line(id), true) // an error means that the client is gone
	}
}

// handleLine handles the messages of a line. Usually a line has one message, but some clients write several messages in
// one line.
func (p *stdioConn) handleLine(text []byte) {
	values, ok := mcp.SplitJSONValues(text)
	if len(values) > 1 {
		p.inline.forbid()
	}
	for _, v := range values {
		p.handleMessage(v)
	}
	if !ok {
		p.respond(nil, failureReply(mcp.CodeParse, "Parse error", nil))
	}
}

func (p *stdioConn) handleMessage(value []byte) {
	if mcp.IsBatch(value) {
		p.handleBatch(value)
		return
	}
	l, err := readIncoming(value)
	m := l.Message
	meta, isModern := readModernMeta(value, m)
	switch {
	case err != nil:
		p.respond(nil, failureReply(mcp.CodeInvalidRequest, "Invalid request: "+err.Error(), nil))
	case !l.refusal.isNone():
		p.respond(l.refusalID, l.refusal)
	case m.IsResponse():
		if p.session != nil {
			p.session.handleResponse(m)
		}
	case m.IsNotification():
		p.handleNotification(m)
	case isModern:
		p.handleModern(m, meta)
	default:
		p.handleLegacy(m)
	}
}

// handleNotification handles a notification of the client. A "cancelled" notification may refer to a request of either
// protocol generation.
func (p *stdioConn) handleNotification(m mcp.Message) {
	if m.Method == mcp.NoteCancelled {
		p.inFlight.cancel(m.Params)
	}
	if p.session != nil {
		p.s.handleNotification(p.life, p.session, p.session.caller, m)
	}
}

// start calls run for a request in a separate goroutine and sends the response. drain waits for the goroutine. A tool
// call that probably ends or parks soon is left to the reading goroutine; see inlineChoice. voice sends messages to the
// client before the response.
func (p *stdioConn) start(m mcp.Message, run func(ctx context.Context, voice sender) reply) {
	ctx, cancel := context.WithCancelCause(p.calls)
	refuse := func(code int, text string) {
		cancel(nil)
		p.respond(m.ID, failureReply(code, text, nil))
	}
	others := p.inFlight.len()
	switch {
	case others >= maxInFlight:
		refuse(mcp.CodeInternal, "Too many requests are in progress")
		return
	case !p.inFlight.add(m.ID, cancel):
		refuse(mcp.CodeInvalidRequest, "A request of this id is in progress")
		return
	}
	p.working.Add(1)
	work := func(voice sender) {
		defer p.working.Done()
		defer cancel(nil)
		answer := replyOrEnded(ctx, run(ctx, voice))
		p.inFlight.remove(m.ID)
		if ctx.Err() == nil || context.Cause(ctx) == errInputEnded { // a cancelled request gets no response
			p.respond(m.ID, answer)
		}
	}
	if m.Method != mcp.MethodToolsCall || others > 0 || !p.inline.isAllowed() {
		p.workers.Go(func() { work(p) })
		return
	}
	call := &inlineCall{stdioConn: p}
	call.c = p.coroutines.start(func() {
		defer call.over.Store(true)
		work(call)
	})
	p.inline.call = call
}

// caller returns the caller on standard input, without the data that the client declares about itself.
func (p *stdioConn) caller() drawbridge.Caller {
	caller := p.s.o.Caller
	caller.Transport = drawbridge.StdioTransport
	return caller
}

// handleModern handles a stateless request.
func (p *stdioConn) handleModern(m mcp.Message, meta mcp.RequestMeta) {
	st, refusal := p.s.readClientInfo(p.caller(), meta)
	switch {
	case !refusal.isNone():
		p.respond(m.ID, refusal)
	case m.Method == mcp.MethodListen:
		p.start(m, func(ctx context.Context, _ sender) reply { return p.runListen(ctx, st.caller, m) })
	default:
		p.start(m, func(ctx context.Context, voice sender) reply {
			return p.s.handleModern(ctx, st.caller, m, &requestPeer{sender: voice, level: st.level})
		})
	}
}

// runListen handles subscriptions/listen: it sends notifications until the client cancels the request or the connection
// ends. It returns the response to the request.
func (p *stdioConn) runListen(ctx context.Context, caller drawbridge.Caller, m mcp.Message) reply {
	sub, refusal := p.s.openSubscription(ctx, caller, m)
	if !refusal.isNone() {
		return refusal
	}
	defer sub.end()
	if p.send(sub.acknowledgement(), true) != nil {
		return reply{}
	}
	if !sub.isEmpty {
		p.sendNotifications(ctx, sub.watcher)
	}
	return p.s.listenResult(sub)
}

// sendNotifications sends the notifications of a watcher until ctx, the input or the output ends.
func (p *stdioConn) sendNotifications(ctx context.Context, w *watcher) {
	for {
		for _, message := range w.takeNotifications() {
			if p.send(message, true) != nil {
				return
			}
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		case <-p.eof:
			return
		}
	}
}

// handleLegacy handles a request of the stateful client.
func (p *stdioConn) handleLegacy(m mcp.Message) {
	switch {
	case m.Method == mcp.MethodInitialize && p.session == nil:
		p.openSession(m)
	case m.Method == mcp.MethodPing:
		p.respond(m.ID, emptyResult())
	case p.session == nil && m.Method == mcp.MethodDiscover:
		// The client asks which protocol to use and does not send a version. The error "method not found" makes the
		// client send initialize.
		p.respond(m.ID, methodNotFound(m.Method))
	case p.session == nil:
		p.respond(m.ID, failureReply(mcp.CodeInvalidRequest, "Not initialized: send initialize first", nil))
	default:
		c := p.session
		p.start(m, func(ctx context.Context, voice sender) reply {
			return p.s.handleLegacy(ctx, c, c.caller, m, voice)
		})
	}
}

// openSession handles initialize: it opens the stateful session and begins to send the session's notifications.
func (p *stdioConn) openSession(m mcp.Message) {
	if refusal := checkCapabilities(rawjson.Get(m.Params, "capabilities")); !refusal.isNone() {
		p.respond(m.ID, refusal)
		return
	}
	c := p.s.newSession(p.caller(), m.Params)
	c.watcher.attachReader()
	p.session = c
	p.s.sessionBegan(c)
	p.respond(m.ID, p.s.initializeResult(c))
	p.working.Go(func() { p.sendNotifications(p.life, c.watcher) })
}

// handleBatch handles a batch of messages. It sends an error if the session's protocol version does not allow batches.
func (p *stdioConn) handleBatch(value []byte) {
	messages, refusal := readBatch(value)
	switch {
	case !refusal.isNone():
		p.respond(nil, refusal)
		return
	case p.session == nil || !p.session.supportsBatches():
		p.respond(nil, noBatches())
		return
	}
	c := p.session
	p.working.Go(func() {
		if lines := p.s.batch(p.calls, c, c.caller, messages, p, reply{}); len(lines) > 0 {
			_ = p.send(joinLines(lines), true) // an error means that the client is gone
		}
	})
}
