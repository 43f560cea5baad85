package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/server/crew"
	"github.com/drawbridge-mcp/drawbridge/server/trail"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Limits of the stdio door.
const (
	// maxInFlight is how many requests of a pipe, or of a session, may be in progress; more are refused.
	maxInFlight = 1024
	// lastCalls is what requests in progress get to end when the input has ended: people pipe requests in and expect
	// their answers. What takes longer is answered with an error.
	lastCalls = 5 * time.Second
	// lastWords is how long we wait for a reader or a writer that cannot be interrupted.
	lastWords = 200 * time.Millisecond
)

// ServeStdio answers MCP on a pair of pipes, one message a line, until in or ctx ends or nobody reads out. Requests that
// carry a stateless revision in "_meta" are answered in it; the others belong to the one stateful session that initialize
// opens. When in ends, requests in progress get a few seconds to end, and are then ended and
// answered with an error. When ctx ends everything does at once: in is closed
// where it is an io.Closer, and so is out where a write is stuck in it, so that no goroutine stays behind in them.
//
// The error is nil at the end of in, the context's where that ended it, and else what went wrong with in or out.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if !s.inside.Enter() {
		return errors.New("serve stdio: the server is closed")
	}
	defer s.inside.Leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(context.Canceled) })()
	p := &pipe{s: s, out: trail.NewOutboxTo(out), life: ctx, eof: make(chan struct{})}
	p.calls, p.endCalls = context.WithCancelCause(ctx)
	defer p.endCalls(nil)
	var writing, reading sync.WaitGroup
	writing.Go(func() {
		p.out.Run(func(b []byte) error {
			_, err := out.Write(b)
			if err != nil {
				cancel(err)
			}
			return err
		}, 0, nil)
	})
	defer context.AfterFunc(ctx, p.out.Hurry)()
	lines := make(chan line)
	reading.Go(func() { readLines(ctx, in, lines) })
	if err := p.serve(lines); err != nil {
		cancel(err)
	}
	p.drain()
	p.out.Close()
	select {
	case <-whenDone(&writing):
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		reading.Wait()
		return nil
	}
	if !waitFor(&writing, lastWords) {
		closeIf(out)
		p.out.Fail()
	}
	closeIf(in)
	waitFor(&reading, lastWords)
	return context.Cause(ctx)
}

// closeIf closes what can be closed; whoever waits in it finds out.
func closeIf(v any) {
	if c, ok := v.(io.Closer); ok {
		_ = c.Close() // we are done with it
	}
}

// waitFor waits for a group, but for no longer than that: a read of a terminal or a write to a stuck pipe cannot always be
// interrupted, and the process that is in it is about to end.
func waitFor(g *sync.WaitGroup, most time.Duration) bool {
	select {
	case <-whenDone(g):
		return true
	case <-time.After(most):
		return false
	}
}

// whenDone gives a channel that is closed when the group is done.
func whenDone(g *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		g.Wait()
		close(done)
	}()
	return done
}

// A line is what was read: a message, or why there is none.
type line struct {
	text []byte
	err  error
}

// readLines reads until the end, of the input or of ctx.
func readLines(ctx context.Context, in io.Reader, lines chan<- line) {
	r := wire.NewLineReader(in, 0)
	for {
		text, err := r.Next()
		select {
		case lines <- line{text, err}:
		case <-ctx.Done():
			return
		}
		if err != nil && !errors.Is(err, wire.ErrTooLong) {
			return
		}
	}
}

// A pipe is one conversation over stdio.
type pipe struct {
	s   *Server
	out *trail.Outbox
	// life ends with the conversation, eof is closed when nothing more will be read.
	life context.Context
	eof  chan struct{}
	// calls is what requests run in; it ends with life, or some time after the input.
	calls    context.Context
	endCalls context.CancelCauseFunc
	// session is the stateful client, nil before initialize. Only serve's goroutine sets it.
	session *session
	flights flights
	working sync.WaitGroup
	crew    crew.Crew
}

var _ voice = (*pipe)(nil)

// say sends a message. See voice.
func (p *pipe) say(message []byte, must bool) error { return p.out.Put(append(message, '\n'), must) }

// gone is closed when the client can answer nothing any more.
func (p *pipe) gone() <-chan struct{} { return p.eof }

// serve takes lines until there are no more. The error is why; nil at an orderly end.
func (p *pipe) serve(lines <-chan line) error {
	defer close(p.eof)
	for {
		select {
		case <-p.life.Done():
			return context.Cause(p.life)
		case l := <-lines:
			switch {
			case errors.Is(l.err, wire.ErrTooLong):
				p.answer(nil, failure(wire.CodeInvalidRequest, "The message is over the size bound", nil))
			case errors.Is(l.err, io.EOF):
				return nil
			case l.err != nil:
				return l.err
			default:
				p.takeLine(l.text)
			}
		}
	}
}

// errInputEnded is why requests end that take too long after the end of input. Unlike those that the client cancelled
// these are answered.
var errInputEnded = errors.New("the input ended")

// orEnded is the answer of a request that ran in ctx: an error in the place of none, where ctx ended with the input.
func orEnded(ctx context.Context, answer reply) reply {
	if answer.isNone() && context.Cause(ctx) == errInputEnded {
		return failure(wire.CodeInternal, "The input ended", nil)
	}
	return answer
}

// drain waits for the requests in progress, after the end of input for some time only, and ends the session.
func (p *pipe) drain() {
	waitFor(&p.working, lastCalls)
	p.endCalls(errInputEnded)
	if p.session != nil {
		p.s.endSession(p.session)
	}
	p.working.Wait()
	p.crew.Close()
}

// answer sends a response; none where there is none.
func (p *pipe) answer(id json.RawMessage, r reply) {
	if !r.isNone() {
		_ = p.say(r.line(id), true) // a client that is gone needs no answer
	}
}

// takeLine takes the messages of a line. Two on one line are seen in the wild.
func (p *pipe) takeLine(text []byte) {
	values, ok := wire.SplitValues(text)
	for _, v := range values {
		p.takeValue(v)
	}
	if !ok {
		p.answer(nil, failure(wire.CodeParse, "Parse error", nil))
	}
}

func (p *pipe) takeValue(value []byte) {
	if wire.IsBatch(value) {
		p.takeBatch(value)
		return
	}
	l, err := readLetter(value)
	m := l.Message
	switch {
	case err != nil:
		p.answer(nil, failure(wire.CodeInvalidRequest, "Invalid request: "+err.Error(), nil))
	case !l.refusal.isNone():
		p.answer(l.to, l.refusal)
	case m.IsResponse():
		if p.session != nil {
			p.session.answered(m)
		}
	case m.IsNotification():
		p.note(m)
	case saysModern(value, m):
		p.modern(m)
	default:
		p.legacy(m)
	}
}

// note takes a notification. A cancelled one may mean a request of either generation.
func (p *pipe) note(m wire.Message) {
	if m.Method == wire.NoteCancelled {
		p.flights.cancel(m.Params)
	}
	if p.session != nil {
		p.s.noted(p.life, p.session, p.session.caller, m)
	}
}

// start runs a request in a goroutine of its own, which the pipe waits for.
func (p *pipe) start(m wire.Message, run func(context.Context) reply) {
	ctx, cancel := context.WithCancelCause(p.calls)
	refuse := func(code int, text string) {
		cancel(nil)
		p.answer(m.ID, failure(code, text, nil))
	}
	switch {
	case p.flights.len() >= maxInFlight:
		refuse(wire.CodeInternal, "Too many requests are in progress")
		return
	case !p.flights.add(m.ID, cancel):
		refuse(wire.CodeInvalidRequest, "A request of this id is in progress")
		return
	}
	p.working.Add(1)
	p.crew.Go(func() {
		defer p.working.Done()
		defer cancel(nil)
		answer := orEnded(ctx, run(ctx))
		p.flights.remove(m.ID)
		if ctx.Err() == nil || context.Cause(ctx) == errInputEnded { // what is cancelled has no answer
			p.answer(m.ID, answer)
		}
	})
}

// caller is who speaks on standard input, before they say more of themselves.
func (p *pipe) caller() drawbridge.Caller {
	caller := p.s.o.Caller
	caller.Door = drawbridge.StdioDoor
	return caller
}

// modern takes a stateless request.
func (p *pipe) modern(m wire.Message) {
	st, refusal := p.s.stated(p.caller(), m.Params)
	switch {
	case !refusal.isNone():
		p.answer(m.ID, refusal)
	case m.Method == wire.MethodListen:
		p.start(m, func(ctx context.Context) reply { return p.listen(ctx, st.caller, m) })
	default:
		peer := &peer{voice: p, level: st.level}
		p.start(m, func(ctx context.Context) reply { return p.s.modern(ctx, st.caller, m, peer) })
	}
}

// listen answers subscriptions/listen: with notifications until the client cancels it or the conversation ends.
func (p *pipe) listen(ctx context.Context, caller drawbridge.Caller, m wire.Message) reply {
	sub, refusal := p.s.subscription(ctx, caller, m)
	if !refusal.isNone() {
		return refusal
	}
	defer sub.end()
	if p.say(sub.acknowledgement(), true) != nil {
		return reply{}
	}
	if !sub.nothing {
		p.tell(ctx, sub.watcher)
	}
	return p.s.farewell(sub)
}

// tell passes on what a watcher should hear until ctx, or what can be read, ends.
func (p *pipe) tell(ctx context.Context, w *watcher) {
	for {
		for _, message := range w.take() {
			if p.say(message, true) != nil {
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

// legacy takes a request of the stateful client.
func (p *pipe) legacy(m wire.Message) {
	switch {
	case m.Method == wire.MethodInitialize && p.session == nil:
		p.initialize(m)
	case m.Method == wire.MethodPing:
		p.answer(m.ID, empty())
	case p.session == nil && m.Method == wire.MethodDiscover:
		// A client that finds out what we speak, and forgot to say what it speaks: not found means initialize.
		p.answer(m.ID, noMethod(m.Method))
	case p.session == nil:
		p.answer(m.ID, failure(wire.CodeInvalidRequest, "Not initialized: send initialize first", nil))
	default:
		c := p.session
		p.start(m, func(ctx context.Context) reply { return p.s.legacy(ctx, c, c.caller, m, p) })
	}
}

// initialize opens the session, and has it told what belongs to no call.
func (p *pipe) initialize(m wire.Message) {
	if refusal := checkCapabilities(wire.Get(m.Params, "capabilities")); !refusal.isNone() {
		p.answer(m.ID, refusal)
		return
	}
	c := p.s.newSession(p.caller(), m.Params)
	c.watcher.listen()
	p.session = c
	p.answer(m.ID, p.s.initialized(c))
	p.working.Go(func() { p.tell(p.life, c.watcher) })
}

// takeBatch takes several messages at once, where the session's revision has batches.
func (p *pipe) takeBatch(value []byte) {
	messages, refusal := readBatch(value)
	switch {
	case !refusal.isNone():
		p.answer(nil, refusal)
		return
	case p.session == nil || !p.session.batches():
		p.answer(nil, noBatches())
		return
	}
	c := p.session
	p.working.Go(func() {
		if lines := p.s.batch(p.calls, c, c.caller, messages, p, reply{}); len(lines) > 0 {
			_ = p.say(joinLines(lines), true) // a client that is gone needs no answer
		}
	})
}
