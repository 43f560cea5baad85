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

// ErrRefused is wrapped by an error of Send that concerns only the sent message. A request in that message fails with
// the error, and the connection does not end.
var ErrRefused = errors.New("message refused")

const (
	// sendQueueSize is how many messages are queued for the writing goroutine before their senders must wait.
	sendQueueSize = 16
	// maxQueuedCancellations is how many cancellations are queued for a server that does not read; later cancellations
	// are dropped.
	maxQueuedCancellations = 1024
)

// StreamConnOptions configure a StreamConn. Send, Receive and Close are required.
type StreamConnOptions struct {
	// Send writes msg, one message as a line of JSON with its newline. Send may keep msg. It is called by one goroutine
	// at a time, and its ctx ends with the connection. An error ends the connection, since the message may have been
	// written in part, unless the error wraps ErrRefused.
	Send func(ctx context.Context, msg []byte) error

	// TrySend writes the whole message if that is possible without waiting, and reports whether it did. Otherwise it
	// writes nothing, and the message is queued for the writing goroutine. TrySend may be nil.
	TrySend func(msg []byte) bool

	// ParallelSend is set if Send may be called from several goroutines at once and returns when its ctx ends. Each
	// sender then calls Send itself, and the ctx of Send also ends with the ctx of the request. If ParallelSend is not
	// set, Send may block for any time, since only the writing goroutine waits.
	ParallelSend bool

	// Receive returns the server's next line, which contains one or more messages. The connection may keep the line. If
	// Receive returns mcp.ErrTooLong, the connection skips the line; any other error ends the connection.
	// (*mcp.LineReader).Next is suitable. The request that waits for a skipped line fails with the error, if there is
	// exactly one.
	Receive func() ([]byte, error)

	// MoreReceived reports whether the next call of Receive returns without waiting for the server. It may be nil.
	// (*mcp.LineReader).HasMore is suitable.
	MoreReceived func() bool

	// Close closes the underlying stream, so that Receive and Send return. It is called once, by StreamConn.Close.
	Close func(ctx context.Context) error

	// Handler receives the messages that do not belong to a request. If it is nil, notifications are dropped and server
	// requests are refused.
	Handler Handler

	// OnJunk is called with each line that contains data other than messages, and with nil for a line that exceeds the
	// size limit. The reading goroutine calls it. It may be nil.
	OnJunk func(line []byte)

	// MaxServerRequests is how many server requests are answered at the same time; 0 means defaultMaxServerRequests.
	// The same number of further requests is refused with an error, and all others are dropped.
	MaxServerRequests int

	// Logger may be nil.
	Logger *slog.Logger
}

// A StreamConn is a Conn with one stream of messages in each direction: the pipes of a process, or HTTP+SSE.
//
// It accepts common mistakes of servers. Data that is not a message is dropped and passed to OnJunk. Several messages
// in a line, batches, a missing "jsonrpc" and IDs returned as strings are accepted. Responses to unknown requests are
// ignored. An error without an ID that reports an unreadable request makes the waiting request fail, if there is
// exactly one. A message that exceeds the size limit also makes that request fail.
//
// A notification or request of the server is passed to the handler of the request it belongs to. That request is found
// by the progress token, by the ID of the subscription, or because exactly one request is waiting (subscriptions are
// not counted). Messages about the server itself, and all others, are passed to the Handler of the connection. If the
// context of a request ends, a notification may still be delivered after Call has returned.
//
// Two goroutines serve a StreamConn, and one goroutine serves each server request; Call does not start any. They end
// with Close, which must be called even if the connection has ended by itself.
//
// A request whose handler has a [Parker] continues in the goroutine that has read its response, if the response is
// small and no other message or request waits. If this takes long, that goroutine becomes the goroutine of the request,
// for which Close does not wait, and another one reads.
type StreamConn struct {
	o         StreamConnOptions
	log       *slog.Logger
	pending   requestTable
	responder *requestResponder

	ctx         context.Context // done when the connection has ended
	cancel      context.CancelFunc
	sendQueue   chan outgoingMessage
	cancelQueue chan []byte // cancellations and wakeups; no caller waits for them
	writer      sync.WaitGroup
	turn        *ReadTurn
	// queued is the number of messages that the writing goroutine has not written yet. sendMu is held while a message
	// is written, by writeLoop or by TrySend.
	queued atomic.Int64
	sendMu sync.Mutex

	done     chan struct{}
	finished chan struct{} // closed when every goroutine has ended
	closing  sync.Once
	closeErr error // the error of o.Close

	mu         sync.Mutex
	ended      bool
	err        error
	lastWakeup *pendingRequest // nil before the first wakeup
}

var _ Conn = (*StreamConn)(nil)

// The states of a request's message, see sendState. writeLoop sets sendWritten before it sends the message. A caller
// that stops waiting sets sendWithdrawn, if the message is still queued; the message is then not sent.
const (
	sendWaiting int32 = iota
	sendWritten
	sendWithdrawn
)

// complete ends the request with a response or an error. Only the goroutine that removed the request from the
// requestTable may call it.
func (c *pendingRequest) complete(reply mcp.Message, err error) {
	c.reply, c.err = reply, err
	close(c.ready)
	if c.parker != nil {
		c.parker.Wake()
	}
}

type outgoingMessage struct {
	msg  []byte
	call *pendingRequest // nil if the message is not a request
}

// NewStreamConn returns a connection that lasts until Close, even if ctx ends earlier. It panics if Send, Receive or
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
	s.turn = NewReadTurn(func() { go s.readLoop() })
	s.writer.Go(s.writeLoop)
	go s.readLoop()
	return s
}

// Call sends a request as described at Conn. Except for initialize, it sets the progress token in params to the
// request's ID.
func (s *StreamConn) Call(ctx context.Context, method string, params json.RawMessage, in Handler) (mcp.Message, error) {
	if err := ctx.Err(); err != nil {
		return mcp.Message{}, err
	}
	c := &pendingRequest{handler: in, isSubscription: method == mcp.MethodListen, ready: make(chan struct{}),
		parker: parkerOf(in)}
	s.pending.add(c)
	raw := strconv.AppendUint(nil, c.id, 10)
	if method != mcp.MethodInitialize {
		params = rawjson.Apply(params, rawjson.Put(raw, "_meta", mcp.MetaProgressToken))
	}
	if err := s.sendMessage(ctx, encodeLine(mcp.Message{ID: raw, Method: method, Params: params}), c); err != nil {
		return s.abandonRequest(ctx, c, method, err)
	}
	if c.parker != nil {
		s.park(ctx, c)
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

// abandonRequest ends a request without a response because of err, and sends a cancellation to the server if necessary.
// If the response arrives at the same moment, it is returned.
func (s *StreamConn) abandonRequest(ctx context.Context, c *pendingRequest, method string,
	err error) (mcp.Message, error) {
	if s.pending.remove(c.id) == nil {
		// The response arrived at the same moment: return it unless the caller has left.
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

// isCancellable reports whether a cancellation may be sent for a request with this method. The specification forbids
// the cancellation of initialize. A server that does not know server/discover might not accept its cancellation.
func isCancellable(method string) bool {
	return method != mcp.MethodInitialize && method != mcp.MethodDiscover
}

// cancelReason returns the reason to send for a cancelled request: the reason that the caller set as the cause of ctx,
// or a general one.
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

// sendCancelled queues a cancellation of the request with that ID. It does not block.
func (s *StreamConn) sendCancelled(id uint64, reason string) {
	params := rawjson.AppendQuoted(append(strconv.AppendUint([]byte(`{"requestId":`), id, 10), `,"reason":`...), reason)
	params = append(params, '}')
	if !s.enqueueUnawaited(encodeLine(mcp.Message{Method: mcp.NoteCancelled, Params: params})) {
		s.log.Debug("a cancellation is dropped, the server does not read")
	}
}

// enqueueUnawaited queues a message that no caller waits for. It returns false if the queue is full.
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

// sendMessage sends or queues a message. c is the request in the message, or nil. The error is the error of ctx, or
// wraps ErrClosed, ErrLost or ErrRefused.
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

// trySend sends a message with TrySend if no other message is queued or being written. It reports whether the message
// was sent.
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

// sendReply sends the response to a server request.
func (s *StreamConn) sendReply(ctx context.Context, m mcp.Message) {
	if err := s.sendMessage(ctx, encodeLine(m), nil); err != nil {
		s.log.Debug("an answer to the server was not sent", "error", err)
	}
}

// writeLoop sends the queued messages in a separate goroutine. Cancellations are sent first, since a queued message may
// be the response to a server request that belongs to a cancelled call.
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

// encodeLine returns a message as a line with its newline.
func encodeLine(m mcp.Message) []byte {
	const envelope = 64
	size := envelope + len(m.ID) + len(m.Method) + len(m.Params) + len(m.Result) + len(m.Error)
	return append(m.Append(make([]byte, 0, size)), '\n')
}

// markEnded marks the connection as ended. Only the first error is stored; err is nil for Close.
func (s *StreamConn) markEnded(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended, s.err = true, err
	close(s.done)
	s.cancel()
	s.pending.wakeParked()
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

// Err returns why the connection has ended. It returns nil before the end, and if Close ended the connection.
func (s *StreamConn) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close first ends the waiting requests with an error, and then closes the underlying stream. It returns when every
// goroutine has ended, or with the error of ctx.
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
