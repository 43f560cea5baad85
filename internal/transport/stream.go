package transport

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
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// ErrRefused is wrapped by an error of Send that concerns its message alone: the request that it carried ends with that
// error, and the connection goes on.
var ErrRefused = errors.New("message refused")

const (
	// sendQueueSize is how many messages wait for the writer before their senders do.
	sendQueueSize = 16
	// maxQueuedCancellations is how many cancellations wait for a server that does not read; later ones are forgotten.
	maxQueuedCancellations = 1024
)

// StreamConnOptions say what a Stream runs on. Send, Next and Close are needed.
type StreamConnOptions struct {
	// Send writes one message: one line of JSON with its newline, which belongs to Send from then on. It is called by
	// one goroutine at a time, and its ctx ends with the connection. An error ends the connection, since half a
	// message may be out, unless it wraps ErrRefused.
	Send func(ctx context.Context, msg []byte) error

	// TrySend writes a message as Send does, where that takes no waiting, and says whether it did: all of it, or
	// nothing. It spares the message the way through the Stream's goroutine. It may be nil.
	TrySend func(msg []byte) bool

	// ParallelSend says that Send may be called from several goroutines at once, and that it ends with its ctx, which
	// is then that of the request too. Without it Send may block for as long as it likes: only a goroutine of the
	// Stream waits.
	ParallelSend bool

	// Receive returns what the server wrote next: a message, or a line that may hold some, which belongs to the Stream
	// from then on. mcp.ErrTooLong is passed over; any other error ends the connection. (*mcp.LineReader).Next fits.
	Receive func() ([]byte, error)

	// Close ends what the stream runs on, so that Next and Send return. It is called once, by StreamConn.Close.
	Close func(ctx context.Context) error

	// Handler receives what belongs to no request. With nil, notifications are dropped and requests refused.
	Handler Handler

	// OnJunk is told of every line that held something else than messages; nil stands for one over the size bound. It
	// is called from the reading goroutine. It may be nil.
	OnJunk func(line []byte)

	// MaxServerRequests is how many requests of the server are answered at once; 0 means defaultMaxServerRequests. As
	// many again are refused with an error, and what is over that is dropped.
	MaxServerRequests int

	// Logger may be nil.
	Logger *slog.Logger
}

// A StreamConn is a Conn on one stream of messages in each direction: the pipes of a process, or HTTP+SSE.
//
// It is lenient with what servers really write. What is no message is dropped and counted; several messages on a line,
// batches, a missing "jsonrpc" and ids echoed as strings are understood; answers to nothing are passed over. An error
// that says the server understood nothing, and has no id, answers the only request that waits, as does a message over
// the size bound.
//
// A notification or request of the server is given to the request it belongs to: by its progress token, by the id of
// its subscription, or because that request is the only one that waits (subscriptions do not count). What says that the
// server itself has changed, and all the rest, goes to the Handler of the connection. A notification that is being
// delivered when the context of its request ends may still be on its way when Do has returned.
//
// Two goroutines serve a Stream, and one more each request of the server; a Do needs none. They end with Close, which
// has to be called for a connection that has ended by itself too.
type StreamConn struct {
	o         StreamConnOptions
	log       *slog.Logger
	pending   requestTable
	responder *requestResponder

	ctx         context.Context // ends with the connection
	cancel      context.CancelFunc
	sendQueue   chan outgoingMessage
	cancelQueue chan []byte // cancellations and nudges, which nobody waits with
	writer      sync.WaitGroup
	// queued is how many messages the writer has not written yet. sending is held by who writes: the writer, or Try.
	queued atomic.Int64
	sendMu sync.Mutex

	done     chan struct{}
	finished chan struct{} // closed when every goroutine has ended
	closing  sync.Once
	closeErr error // what Close got

	mu         sync.Mutex
	ended      bool
	err        error
	lastWakeup *pendingRequest // the last one; nil before there was one
}

var _ Conn = (*StreamConn)(nil)

// What has become of a call's message. The writer and the one who gives up race for a message that waits.
const (
	sendWaiting int32 = iota
	sendWritten
	sendWithdrawn
)

// complete gives the call its end. Only who took the call may do so.
func (c *pendingRequest) complete(reply mcp.Message, err error) {
	c.reply, c.err = reply, err
	close(c.ready)
}

type outgoingMessage struct {
	msg  []byte
	call *pendingRequest // nil where the message is no request
}

// NewStreamConn starts a connection that lasts until Close, even if ctx ends earlier. It panics if Send, Receive or
// Close is missing.
func NewStreamConn(ctx context.Context, o StreamConnOptions) *StreamConn {
	if o.Send == nil || o.Receive == nil || o.Close == nil {
		panic("transport: a StreamConn needs Send, Receive and Close")
	}
	s := &StreamConn{
		o:           o,
		log:         loggerOrDiscard(o.Logger),
		pending:     requestTable{handler: o.Handler},
		sendQueue:   make(chan outgoingMessage, sendQueueSize),
		cancelQueue: make(chan []byte, maxQueuedCancellations),
		done:        make(chan struct{}),
		finished:    make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.responder = newRequestResponder(s.sendReply, o.MaxServerRequests, s.log)
	s.writer.Go(s.writeLoop)
	go s.readLoop()
	return s
}

// Call sends a request as Conn has it. Its params get a progress token of the Stream's own, but for initialize.
func (s *StreamConn) Call(ctx context.Context, method string, params json.RawMessage, in Handler) (mcp.Message, error) {
	if err := ctx.Err(); err != nil {
		return mcp.Message{}, err
	}
	c := &pendingRequest{handler: in, isSubscription: method == mcp.MethodListen, ready: make(chan struct{})}
	s.pending.add(c)
	raw := strconv.AppendUint(nil, c.id, 10)
	if method != mcp.MethodInitialize {
		params = rawjson.Apply(params, rawjson.Put(raw, "_meta", mcp.MetaProgressToken))
	}
	if err := s.sendMessage(ctx, encodeLine(mcp.Message{ID: raw, Method: method, Params: params}), c); err != nil {
		return s.abandonRequest(ctx, c, method, err)
	}
	select {
	case <-c.ready:
		return c.reply, c.err
	case <-ctx.Done():
		return s.abandonRequest(ctx, c, method, ctx.Err())
	case <-s.done:
		return s.abandonRequest(ctx, c, method, s.lostError())
	}
}

// abandonRequest ends a call that has no answer yet because of err, and tells the server where it has to know.
func (s *StreamConn) abandonRequest(ctx context.Context, c *pendingRequest, method string,
	err error) (mcp.Message, error) {
	if s.pending.remove(c.id) == nil {
		// The answer came in the same moment: take it if the caller is still there.
		if <-c.ready; ctx.Err() == nil {
			return c.reply, c.err
		}
		return mcp.Message{}, err
	}
	unsent := c.sendState.CompareAndSwap(sendWaiting, sendWithdrawn)
	switch {
	case unsent && errors.Is(err, ErrLost):
		err = s.closedError()
	case ctx.Err() != nil && !unsent && isCancellable(method):
		s.sendCancelled(c.id, cancelReason(ctx))
	}
	return mcp.Message{}, err
}

// isCancellable says whether a server may be told that nobody waits for a request. initialize is not to be cancelled,
// by the specification; and a server that does not know server/discover is best not confused further.
func isCancellable(method string) bool {
	return method != mcp.MethodInitialize && method != mcp.MethodDiscover
}

// cancelReason is what a server is told of why nobody waits for a request whose context has ended: the caller's own
// word, where it gave one.
func cancelReason(ctx context.Context) string {
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
func (s *StreamConn) sendCancelled(id uint64, reason string) {
	params := rawjson.AppendQuoted(append(strconv.AppendUint([]byte(`{"requestId":`), id, 10), `,"reason":`...), reason)
	params = append(params, '}')
	if !s.enqueueUnawaited(encodeLine(mcp.Message{Method: mcp.NoteCancelled, Params: params})) {
		s.log.Debug("a cancellation is dropped, the server does not read")
	}
}

// enqueueUnawaited leaves a message that nobody waits with to the writer; false where there is no room for it.
func (s *StreamConn) enqueueUnawaited(msg []byte) bool {
	s.queued.Add(1)
	select {
	case s.cancelQueue <- msg:
		return true
	default:
		s.queued.Add(-1)
		return false
	}
}

// Notify sends a notification. It returns when the message was sent, or taken over by the writer.
func (s *StreamConn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return s.sendMessage(ctx, encodeLine(mcp.Message{Method: method, Params: params}), nil)
}

// sendMessage sends a message, or leaves it to the writer. The error is the context's, wraps ErrClosed, ErrLost or
// ErrRefused.
func (s *StreamConn) sendMessage(ctx context.Context, msg []byte, c *pendingRequest) error {
	select {
	case <-s.done:
		return s.closedError()
	default:
	}
	if s.trySend(msg, c) {
		return nil
	}
	if !s.o.ParallelSend {
		s.queued.Add(1)
		select {
		case s.sendQueue <- outgoingMessage{msg, c}:
			return nil
		case <-ctx.Done():
			s.queued.Add(-1)
			return ctx.Err()
		case <-s.done:
			return s.closedError()
		}
	}
	if c != nil {
		c.sendState.Store(sendWritten)
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
	s.markEnded(fmt.Errorf("send: %w", err))
	if errors.Is(err, ErrClosed) {
		return s.closedError()
	}
	return s.lostError()
}

// trySend sends a message without the writer, where it has nothing to write and Try does.
func (s *StreamConn) trySend(msg []byte, c *pendingRequest) bool {
	if s.o.TrySend == nil || !s.sendMu.TryLock() {
		return false
	}
	defer s.sendMu.Unlock()
	if s.queued.Load() > 0 || !s.o.TrySend(msg) {
		return false
	}
	if c != nil {
		c.sendState.Store(sendWritten)
	}
	return true
}

// sendReply sends the answer to a request of the server.
func (s *StreamConn) sendReply(ctx context.Context, m mcp.Message) {
	if err := s.sendMessage(ctx, encodeLine(m), nil); err != nil {
		s.log.Debug("an answer to the server was not sent", "error", err)
	}
}

// writeLoop is the goroutine that sends what waits, cancellations first: what waits beside one may be the answer to a
// question of the call that is cancelled.
func (s *StreamConn) writeLoop() {
	for {
		var next outgoingMessage
		select {
		case <-s.done:
			return
		case next.msg = <-s.cancelQueue:
		case next = <-s.sendQueue:
			if !s.sendQueuedCancellations() {
				return
			}
		}
		if !s.sendQueued(next) {
			return
		}
	}
}

// sendQueuedCancellations sends the cancellations that wait. It says false where the connection has ended.
func (s *StreamConn) sendQueuedCancellations() bool {
	for {
		select {
		case note := <-s.cancelQueue:
			if !s.sendQueued(outgoingMessage{msg: note}) {
				return false
			}
		default:
			return true
		}
	}
}

// sendQueued sends one message that was left to the writer. It says false where the connection has ended.
func (s *StreamConn) sendQueued(next outgoingMessage) bool {
	s.sendMu.Lock()
	defer s.sendMu.Unlock()
	defer s.queued.Add(-1)
	if next.call != nil && !next.call.sendState.CompareAndSwap(sendWaiting, sendWritten) {
		return true
	}
	err := s.o.Send(s.ctx, next.msg)
	switch {
	case err == nil:
	case !errors.Is(err, ErrRefused):
		s.markEnded(fmt.Errorf("send: %w", err))
		return false
	case next.call != nil:
		if c := s.pending.remove(next.call.id); c != nil {
			c.complete(mcp.Message{}, err)
		}
	default:
		s.log.Debug("a message was refused", "error", err)
	}
	return true
}

// encodeLine writes a message as a line.
func encodeLine(m mcp.Message) []byte {
	const envelope = 64
	size := envelope + len(m.ID) + len(m.Method) + len(m.Params) + len(m.Result) + len(m.Error)
	return append(m.Append(make([]byte, 0, size)), '\n')
}

// markEnded marks the connection as ended. The first reason counts; nil is the reason of Close.
func (s *StreamConn) markEnded(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended, s.err = true, err
	close(s.done)
	s.cancel()
}

func (s *StreamConn) closedError() error { return wrapCause(ErrClosed, s.Err()) }
func (s *StreamConn) lostError() error   { return wrapCause(ErrLost, s.Err()) }

func wrapCause(err, cause error) error {
	if cause == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Done is closed when the connection has ended.
func (s *StreamConn) Done() <-chan struct{} { return s.done }

// Err says why the connection has ended; nil before that, and where Close ended it.
func (s *StreamConn) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the connection: what waits for an answer ends, then what the stream runs on. It returns when every
// goroutine has ended, or with the context's error.
func (s *StreamConn) Close(ctx context.Context) error {
	s.markEnded(nil)
	s.closing.Do(func() { s.closeErr = s.o.Close(ctx) })
	select {
	case <-s.finished:
		return s.closeErr
	case <-ctx.Done():
		return errors.Join(s.closeErr, ctx.Err())
	}
}
