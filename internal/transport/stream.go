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
	// maxQueuedCancellations is how many cancellations wait for a server that does not read; later ones are dropped.
	maxQueuedCancellations = 1024
)

// StreamConnOptions configure a StreamConn. Send, Receive and Close are required.
type StreamConnOptions struct {
	// Send writes one message: one line of JSON with its newline, which belongs to Send from then on. It is called by
	// one goroutine at a time, and its ctx ends with the connection. An error ends the connection, since half a
	// message may be out, unless it wraps ErrRefused.
	Send func(ctx context.Context, msg []byte) error

	// TrySend writes a message as Send does if it need not wait, and reports whether it did: all of it, or nothing. The
	// message then skips the writing goroutine. It may be nil.
	TrySend func(msg []byte) bool

	// ParallelSend is true if Send may be called from several goroutines at once and returns when its ctx ends, which
	// is then also that of the request. Otherwise Send may block as long as necessary: only a goroutine of the
	// connection waits.
	ParallelSend bool

	// Receive returns the server's next line, which holds a message or several, and belongs to the connection from then
	// on. mcp.ErrTooLong is skipped; any other error ends the connection. (*mcp.LineReader).Next is suitable.
	Receive func() ([]byte, error)

	// Close closes the underlying stream, so that Receive and Send return. It is called once, by StreamConn.Close.
	Close func(ctx context.Context) error

	// Handler receives what belongs to no request. With nil, notifications are dropped and requests refused.
	Handler Handler

	// OnJunk is called from the reading goroutine with each line that held something else than messages, and with nil
	// for one over the size limit. It may be nil.
	OnJunk func(line []byte)

	// MaxServerRequests is how many requests of the server are answered at once; 0 means defaultMaxServerRequests. As
	// many again are refused with an error, and what is over that is dropped.
	MaxServerRequests int

	// Logger may be nil.
	Logger *slog.Logger
}

// A StreamConn is a Conn on one stream of messages in each direction: the pipes of a process, or HTTP+SSE.
//
// It tolerates the mistakes of real servers. Data that is not a message is dropped and counted. Several messages on a
// line, batches, a missing "jsonrpc" and IDs echoed as strings are accepted; answers to unknown requests are skipped.
// An error without an ID that reports an unreadable request fails the only waiting request, as does a message over the
// size limit.
//
// A notification or request of the server is passed to the request it belongs to: by its progress token, by the ID of
// its subscription, or because exactly one request waits (subscriptions do not count). Messages about the server
// itself, and all others, go to the Handler of the connection. If the context of a request ends, a notification may
// still be in delivery when Call has returned.
//
// Two goroutines serve a StreamConn, and one more each request of the server; Call needs none. They end with Close,
// which must be called even if the connection has ended by itself.
type StreamConn struct {
	o         StreamConnOptions
	log       *slog.Logger
	pending   requestTable
	responder *requestResponder

	ctx         context.Context // ends with the connection
	cancel      context.CancelFunc
	sendQueue   chan outgoingMessage
	cancelQueue chan []byte // cancellations and wakeups, which no caller waits for
	writer      sync.WaitGroup
	// queued is how many messages the writer has not written yet. sending is held by the one that writes: the writer,
	// or TrySend.
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

// The state of a call's message. The writer and a caller that stops waiting race for a queued message.
const (
	sendWaiting int32 = iota
	sendWritten
	sendWithdrawn
)

// complete ends the call. Only the one that removed the call from the table may do so.
func (c *pendingRequest) complete(reply mcp.Message, err error) {
	c.reply, c.err = reply, err
	close(c.ready)
}

type outgoingMessage struct {
	msg  []byte
	call *pendingRequest // nil if the message is not a request
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

// Call sends a request as Conn specifies. The params get a progress token of the connection's own, except for
// initialize.
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

// abandonRequest ends a call without an answer because of err, and tells the server if it must know.
func (s *StreamConn) abandonRequest(ctx context.Context, c *pendingRequest, method string,
	err error) (mcp.Message, error) {
	if s.pending.remove(c.id) == nil {
		// The answer arrived at the same moment: take it if the caller is still there.
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

// isCancellable reports whether a server may be told that a request was cancelled. The specification forbids it for
// initialize. A server that does not know server/discover might be confused by it.
func isCancellable(method string) bool {
	return method != mcp.MethodInitialize && method != mcp.MethodDiscover
}

// cancelReason returns the reason that a server receives for a cancelled request: the cause of the context, if the
// caller set one.
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

// sendCancelled tells the server that request id is cancelled. It does not block.
func (s *StreamConn) sendCancelled(id uint64, reason string) {
	params := rawjson.AppendQuoted(append(strconv.AppendUint([]byte(`{"requestId":`), id, 10), `,"reason":`...), reason)
	params = append(params, '}')
	if !s.enqueueUnawaited(encodeLine(mcp.Message{Method: mcp.NoteCancelled, Params: params})) {
		s.log.Debug("a cancellation is dropped, the server does not read")
	}
}

// enqueueUnawaited queues a message that no caller waits for; it returns false if the queue is full.
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

// Notify sends a notification. It returns when the message was sent or queued.
func (s *StreamConn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return s.sendMessage(ctx, encodeLine(mcp.Message{Method: method, Params: params}), nil)
}

// sendMessage sends or queues a message. The error is the context's, or wraps ErrClosed, ErrLost or ErrRefused.
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

// trySend sends a message with TrySend if the writer has nothing to write.
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

// writeLoop sends the queued messages in a goroutine of its own, cancellations first: a queued message may answer a
// request of the server that belongs to a cancelled call.
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

// sendQueuedCancellations sends the queued cancellations. It returns false if the connection has ended.
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

// sendQueued sends one queued message. It returns false if the connection has ended.
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

// Done returns a channel that is closed when the connection has ended.
func (s *StreamConn) Done() <-chan struct{} { return s.done }

// Err returns why the connection has ended; nil before that, and if Close ended it.
func (s *StreamConn) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the connection: first the waiting requests, then the underlying stream. It returns when every goroutine
// has ended, or with the context's error.
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
