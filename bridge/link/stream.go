package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// ErrRefused is wrapped by an error of Send that concerns its message alone: the request that it carried ends with that
// error, and the connection goes on.
var ErrRefused = errors.New("message refused")

const (
	// backlog is how many messages wait for the writer before their senders do.
	backlog = 16
	// maxNotes is how many cancellations wait for a server that does not read; later ones are forgotten.
	maxNotes = 1024
)

// StreamOptions say what a Stream runs on. Send, Next and Close are needed.
type StreamOptions struct {
	// Send writes one message: one line of JSON with its newline, which belongs to Send from then on. It is called by one
	// goroutine at a time, and its ctx ends with the connection. An error ends the connection, since half a message may
	// be out, unless it wraps ErrRefused.
	Send func(ctx context.Context, msg []byte) error

	// Try writes a message as Send does, where that takes no waiting, and says whether it did: all of it, or nothing. It spares
	// the message the way through the Stream's goroutine. It may be nil.
	Try func(msg []byte) bool

	// Parallel says that Send may be called from several goroutines at once, and that it ends with its ctx, which is then
	// that of the request too. Without it Send may block for as long as it likes: only a goroutine of the Stream waits.
	Parallel bool

	// Next returns what the server wrote next: a message, or a line that may hold some, which belongs to the Stream from
	// then on. wire.ErrTooLong is passed over; any other error ends the connection. (*wire.LineReader).Next fits.
	Next func() ([]byte, error)

	// Close ends what the stream runs on, so that Next and Send return. It is called once, by Stream.Close.
	Close func(ctx context.Context) error

	// Handler receives what belongs to no request. With nil, notifications are dropped and requests refused.
	Handler Handler

	// OnJunk is told of every line that held something else than messages; nil stands for one over the size bound. It is
	// called from the reading goroutine. It may be nil.
	OnJunk func(line []byte)

	// MaxAsks is how many requests of the server are answered at once; 0 means DefaultMaxAsks. As many again are refused
	// with an error, and what is over that is dropped.
	MaxAsks int

	// Logger may be nil.
	Logger *slog.Logger
}

// A Stream is a Conn on one stream of messages in each direction: the pipes of a process, or HTTP+SSE.
//
// It is lenient with what servers really write. What is no message is dropped and counted; several messages on a line,
// batches, a missing "jsonrpc" and ids echoed as strings are understood; answers to nothing are passed over. An error
// that says the server understood nothing, and has no id, answers the only request that waits, as does a message over the
// size bound.
//
// A notification or request of the server is given to the request it belongs to: by its progress token, by the id of its
// subscription, or because that request is the only one that waits (subscriptions do not count). What says that the
// server itself has changed, and all the rest, goes to the Handler of the connection. A notification that is being
// delivered when the context of its request ends may still be on its way when Do has returned.
//
// Two goroutines serve a Stream, and one more each request of the server; a Do needs none. They end with Close, which has
// to be called for a connection that has ended by itself too.
type Stream struct {
	o     StreamOptions
	log   *slog.Logger
	calls Calls
	asks  *Asks

	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	out    chan outgoing
	notes  chan []byte // cancellations and nudges, which nobody waits with
	writer sync.WaitGroup
	// queued is how many messages the writer has not written yet. sending is held by who writes: the writer, or Try.
	queued  atomic.Int64
	sending sync.Mutex

	done    chan struct{}
	gone    chan struct{} // closed when every goroutine has ended
	closing sync.Once
	closed  error // what Close got

	mu    sync.Mutex
	ended bool
	err   error
	nudge *Call // the last one; nil before there was one
}

var _ Conn = (*Stream)(nil)

// What has become of a call's message. The writer and the one who gives up race for a message that waits.
const (
	waiting int32 = iota
	written
	withdrawn
)

// finish gives the call its end. Only who took the call may do so.
func (c *Call) finish(reply wire.Message, err error) {
	c.reply, c.err = reply, err
	close(c.ready)
}

type outgoing struct {
	msg  []byte
	call *Call // nil where the message is no request
}

// NewStream starts a Stream. It panics where Send, Next or Close is missing.
func NewStream(o StreamOptions) *Stream {
	if o.Send == nil || o.Next == nil || o.Close == nil {
		panic("link: a Stream needs Send, Next and Close")
	}
	s := &Stream{
		o:     o,
		log:   orSilence(o.Logger),
		calls: Calls{Handler: o.Handler},
		out:   make(chan outgoing, backlog),
		notes: make(chan []byte, maxNotes),
		done:  make(chan struct{}),
		gone:  make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.asks = NewAsks(s.reply, o.MaxAsks, s.log)
	s.writer.Go(s.write)
	go s.read()
	return s
}

// Do sends a request as Conn has it. Its params get a progress token of the Stream's own, but for initialize.
func (s *Stream) Do(ctx context.Context, method string, params json.RawMessage, in Handler) (wire.Message, error) {
	if err := ctx.Err(); err != nil {
		return wire.Message{}, err
	}
	c := &Call{In: in, Listen: method == wire.MethodListen, ready: make(chan struct{})}
	s.calls.Add(c)
	raw := strconv.AppendUint(nil, c.ID, 10)
	if method != wire.MethodInitialize {
		params = wire.Apply(params, wire.Put(raw, "_meta", wire.MetaProgressToken))
	}
	if err := s.put(ctx, encode(wire.Message{ID: raw, Method: method, Params: params}), c); err != nil {
		return s.giveUp(ctx, c, method, err)
	}
	select {
	case <-c.ready:
		return c.reply, c.err
	case <-ctx.Done():
		return s.giveUp(ctx, c, method, ctx.Err())
	case <-s.done:
		return s.giveUp(ctx, c, method, s.lostError())
	}
}

// giveUp ends a call that has no answer yet because of err, and tells the server where it has to know.
func (s *Stream) giveUp(ctx context.Context, c *Call, method string, err error) (wire.Message, error) {
	if s.calls.Take(c.ID) == nil {
		// The answer came in the same moment: take it if the caller is still there.
		if <-c.ready; ctx.Err() == nil {
			return c.reply, c.err
		}
		return wire.Message{}, err
	}
	unsent := c.sent.CompareAndSwap(waiting, withdrawn)
	switch {
	case unsent && errors.Is(err, ErrLost):
		err = s.closedError()
	case ctx.Err() != nil && !unsent && Cancellable(method):
		s.sendCancelled(c.ID, Reason(ctx))
	}
	return wire.Message{}, err
}

// Cancellable says whether a server may be told that nobody waits for a request. initialize is not to be cancelled, by the
// specification; and a server that does not know server/discover is best not confused further.
func Cancellable(method string) bool {
	return method != wire.MethodInitialize && method != wire.MethodDiscover
}

// Reason is what a server is told of why nobody waits for a request whose context has ended: the caller's own word, where
// it gave one.
func Reason(ctx context.Context) string {
	cause := context.Cause(ctx)
	if c, ok := errors.AsType[*drawbridge.Cancellation](cause); ok && c.Reason != "" {
		return c.Reason
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return "timeout"
	}
	return "cancelled"
}

// sendCancelled tells the server that nobody waits for request id. It does not block.
func (s *Stream) sendCancelled(id uint64, reason string) {
	params := wire.AppendQuoted(append(strconv.AppendUint([]byte(`{"requestId":`), id, 10), `,"reason":`...), reason)
	params = append(params, '}')
	if !s.leave(encode(wire.Message{Method: wire.NoteCancelled, Params: params})) {
		s.log.Debug("a cancellation is dropped, the server does not read")
	}
}

// leave leaves a message that nobody waits with to the writer; false where there is no room for it.
func (s *Stream) leave(msg []byte) bool {
	s.queued.Add(1)
	select {
	case s.notes <- msg:
		return true
	default:
		s.queued.Add(-1)
		return false
	}
}

// Notify sends a notification. It returns when the message was sent, or taken over by the writer.
func (s *Stream) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return s.put(ctx, encode(wire.Message{Method: method, Params: params}), nil)
}

// put sends a message, or leaves it to the writer. The error is the context's, wraps ErrClosed, ErrLost or ErrRefused.
func (s *Stream) put(ctx context.Context, msg []byte, c *Call) error {
	select {
	case <-s.done:
		return s.closedError()
	default:
	}
	if s.atOnce(msg, c) {
		return nil
	}
	if !s.o.Parallel {
		s.queued.Add(1)
		select {
		case s.out <- outgoing{msg, c}:
			return nil
		case <-ctx.Done():
			s.queued.Add(-1)
			return ctx.Err()
		case <-s.done:
			return s.closedError()
		}
	}
	if c != nil {
		c.sent.Store(written)
	}
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := s.o.Send(sending, msg)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrRefused):
		return err
	}
	s.end(fmt.Errorf("send: %w", err))
	if errors.Is(err, ErrClosed) {
		return s.closedError()
	}
	return s.lostError()
}

// atOnce sends a message without the writer, where it has nothing to write and Try does.
func (s *Stream) atOnce(msg []byte, c *Call) bool {
	if s.o.Try == nil || !s.sending.TryLock() {
		return false
	}
	defer s.sending.Unlock()
	if s.queued.Load() > 0 || !s.o.Try(msg) {
		return false
	}
	if c != nil {
		c.sent.Store(written)
	}
	return true
}

// reply sends the answer to a request of the server.
func (s *Stream) reply(ctx context.Context, m wire.Message) {
	if err := s.put(ctx, encode(m), nil); err != nil {
		s.log.Debug("an answer to the server was not sent", "error", err)
	}
}

// write is the goroutine that sends what waits, cancellations first: what waits beside one may be the answer to a question
// of the call that is cancelled.
func (s *Stream) write() {
	for {
		var next outgoing
		select {
		case <-s.done:
			return
		case next.msg = <-s.notes:
		case next = <-s.out:
			if !s.sendNotes() {
				return
			}
		}
		if !s.send(next) {
			return
		}
	}
}

// sendNotes sends the cancellations that wait. It says false where the connection has ended.
func (s *Stream) sendNotes() bool {
	for {
		select {
		case note := <-s.notes:
			if !s.send(outgoing{msg: note}) {
				return false
			}
		default:
			return true
		}
	}
}

// send sends one message that was left to the writer. It says false where the connection has ended.
func (s *Stream) send(next outgoing) bool {
	s.sending.Lock()
	defer s.sending.Unlock()
	defer s.queued.Add(-1)
	if next.call != nil && !next.call.sent.CompareAndSwap(waiting, written) {
		return true
	}
	err := s.o.Send(s.ctx, next.msg)
	switch {
	case err == nil:
	case !errors.Is(err, ErrRefused):
		s.end(fmt.Errorf("send: %w", err))
		return false
	case next.call != nil:
		if c := s.calls.Take(next.call.ID); c != nil {
			c.finish(wire.Message{}, err)
		}
	default:
		s.log.Debug("a message was refused", "error", err)
	}
	return true
}

// encode writes a message as a line.
func encode(m wire.Message) []byte {
	const envelope = 64
	size := envelope + len(m.ID) + len(m.Method) + len(m.Params) + len(m.Result) + len(m.Error)
	return append(m.Append(make([]byte, 0, size)), '\n')
}

// end marks the connection as ended. The first reason counts; nil is the reason of Close.
func (s *Stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended, s.err = true, err
	close(s.done)
	s.cancel()
}

func (s *Stream) closedError() error { return because(ErrClosed, s.Err()) }
func (s *Stream) lostError() error   { return because(ErrLost, s.Err()) }

func because(err, cause error) error {
	if cause == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Done is closed when the connection has ended.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Err says why the connection has ended; nil before that, and where Close ended it.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the connection: what waits for an answer ends, then what the stream runs on. It returns when every goroutine
// has ended, or with the context's error.
func (s *Stream) Close(ctx context.Context) error {
	s.end(nil)
	s.closing.Do(func() { s.closed = s.o.Close(ctx) })
	select {
	case <-s.gone:
		return s.closed
	case <-ctx.Done():
		return errors.Join(s.closed, ctx.Err())
	}
}
