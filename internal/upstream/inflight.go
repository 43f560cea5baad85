package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// maxQueuedNotifications is how many notifications are queued for a slow caller; later notifications are dropped.
const maxQueuedNotifications = 4096

// maxDurationFactor times the silence limit of a call is the longest duration of the call, even if the server reports
// progress. The silence limit is the longest time without a response or a progress notification.
const maxDurationFactor = 10

// wakeAfter is how long a call is silent before its server is woken, see callWaker. Nearly every call ends sooner.
const wakeAfter = 5 * time.Second

// maxCallDuration returns the longest duration of a call, even with progress. limit is the silence limit of the call.
func maxCallDuration(limit time.Duration) time.Duration { return maxDurationFactor * limit }

// A callTimeoutError reports a call that exceeded a time limit. errors.Is reports it as context.DeadlineExceeded.
type callTimeoutError struct {
	// After is the limit that was exceeded: the limit for the whole call if Hard is set, otherwise the limit for
	// silence.
	After time.Duration
	Hard  bool
	// Setting is the name of the setting that limits the silence of a call. The limit for the whole call is
	// maxDurationFactor times its value.
	Setting string
}

// Error returns the limit that was exceeded.
func (l *callTimeoutError) Error() string {
	if l.Hard {
		return fmt.Sprintf("timeout: not finished after %v, with all its progress (%d times %s)", l.After,
			maxDurationFactor, l.Setting)
	}
	return fmt.Sprintf("timeout: no answer and no progress within %v (%s)", l.After, l.Setting)
}

// Is reports whether target is context.DeadlineExceeded.
func (l *callTimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// A callTarget handles the messages that the server sends during a call. It is the session that the call runs on.
type callTarget interface {
	// HandleNotification handles a notification about the server, such as a list change, that arrived during the call.
	HandleNotification(method string, params json.RawMessage)

	// RecordNotification stores a notification about the call, so that people can read it.
	RecordNotification(method string, params json.RawMessage)

	// AnswerServerRequest answers a server request that arrived during call. It may send the request to the call's
	// Peer. The results are the same as for HandleRequest of [transport.Handler].
	AnswerServerRequest(ctx context.Context, call drawbridge.Call, method string, params json.RawMessage) (result,
		errorObject json.RawMessage)
}

// A callWaker is a callTarget that can wake its server. A server that has read a call may stall in its language
// runtime, and continues when it reads another line. Wake sends such a line. Wake must not block.
type callWaker interface {
	Wake()
}

// An inFlightCall is one call in flight. It enforces the call's time limits and delivers notifications to the caller.
// Notifications are delivered by a separate goroutine, so that a slow caller does not block the connection. The
// goroutine exists only while notifications are queued. The methods may be called from several goroutines.
type inFlightCall struct {
	server callTarget
	call   drawbridge.Call
	log    *slog.Logger
	token  json.RawMessage // the caller's progress token, or nil
	ctx    context.Context // done when the call has ended or exceeded a time limit
	stop   context.CancelCauseFunc

	limit    time.Duration
	deadline time.Time
	timer    *time.Timer

	mu              sync.Mutex
	over            bool
	silenceDeadline time.Time // when the call exceeds the silence limit
	// openQuestions counts the server requests that wait for the caller's answer. While it is not 0, the silence limit
	// is paused.
	openQuestions int
	notes         []queuedNotification
	pump          sync.WaitGroup
	delivering    bool // deliverNotifications is running

	// answering counts the server requests in progress. ended is closed when the call is over. If the call was
	// cancelled, the cancellation was then sent to the server.
	answering sync.WaitGroup
	ended     chan struct{}
}

type queuedNotification struct {
	method string
	params json.RawMessage
}

var (
	_ transport.Handler           = (*inFlightCall)(nil)
	_ transport.ParkingHandler    = (*inFlightCall)(nil)
	_ transport.ReconnectListener = (*inFlightCall)(nil)
)

// newInFlightCall returns a new in-flight call, which must be ended with finish. limit is the silence limit: how long
// the server may send neither a response nor progress. logger receives the errors of notifications that the caller did
// not accept.
func newInFlightCall(ctx context.Context, server callTarget, call drawbridge.Call, limit time.Duration,
	logger *slog.Logger) *inFlightCall {
	x := &inFlightCall{
		server: server, call: call, log: logger, limit: limit, ended: make(chan struct{}),
	}
	if rawjson.MayContain(call.Params, mcp.MetaProgressToken) {
		x.token = rawjson.Get(call.Params, "_meta", mcp.MetaProgressToken)
	}
	now := time.Now()
	x.silenceDeadline, x.deadline = now.Add(limit), now.Add(maxCallDuration(limit))
	x.ctx, x.stop = context.WithCancelCause(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timer = time.AfterFunc(min(limit, wakeAfter), x.checkTimeouts)
	return x
}

// Context returns a context that is done when the call has ended or exceeded a time limit.
func (x *inFlightCall) Context() context.Context { return x.ctx }

// Parker returns the Parker of the call, if its Peer has one.
func (x *inFlightCall) Parker() transport.Parker {
	if p, ok := x.call.Peer.(interface{ Parker() transport.Parker }); ok {
		return p.Parker()
	}
	return nil
}

// Call returns the call.
func (x *inFlightCall) Call() drawbridge.Call { return x.call }

// finish waits until all queued notifications were delivered, ends the call, and waits until the server requests in
// progress were answered. If the call exceeded a time limit, finish returns a *callTimeoutError without Setting.
func (x *inFlightCall) finish() error {
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	x.timer.Stop()
	x.pump.Wait()
	cause := context.Cause(x.ctx)
	x.stop(nil)
	close(x.ended)
	x.answering.Wait()
	if timeout, ok := cause.(*callTimeoutError); ok {
		return timeout
	}
	return nil
}

// checkTimeouts cancels the call if it has exceeded a time limit; otherwise it wakes the server and restarts the timer.
// It runs when the timer fires: at a time limit, or after a silence of wakeAfter.
func (x *inFlightCall) checkTimeouts() {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	switch {
	case x.over:
	case !now.Before(x.deadline):
		x.stop(&callTimeoutError{After: maxCallDuration(x.limit), Hard: true})
	case x.openQuestions > 0:
		x.timer.Reset(x.deadline.Sub(now))
	case now.Before(x.silenceDeadline):
		x.timer.Reset(min(x.silenceDeadline.Sub(now), x.deadline.Sub(now)))
		if w, ok := x.server.(callWaker); ok {
			w.Wake()
		}
	default:
		x.stop(&callTimeoutError{After: x.limit})
	}
}

// resetTimeout restarts the silence limit. mu must be held.
func (x *inFlightCall) resetTimeout() {
	if !x.over {
		now := time.Now()
		x.silenceDeadline = now.Add(x.limit)
		x.timer.Reset(min(x.limit, wakeAfter, x.deadline.Sub(now)))
	}
}

// HandleNotification handles a notification that belongs to the call.
func (x *inFlightCall) HandleNotification(method string, params json.RawMessage) {
	if transport.IsServerWideNotification(method) {
		x.server.HandleNotification(method, params)
		return
	}
	x.server.RecordNotification(method, params)
	x.passNotification(method, params)
}

// passNotification queues a notification for the caller.
func (x *inFlightCall) passNotification(method string, params json.RawMessage) {
	switch {
	case method == mcp.NoteProgress:
		x.mu.Lock()
		x.resetTimeout()
		x.mu.Unlock()
		if x.token == nil {
			return
		}
		params = rawjson.Apply(params, rawjson.Put(x.token, mcp.MetaProgressToken))
	case method == mcp.NoteElicitComplete && x.call.Caller.Era == drawbridge.Modern:
		return // the stateless era does not have this notification
	}
	if x.call.Peer == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || len(x.notes) == maxQueuedNotifications {
		return
	}
	x.notes = append(x.notes, queuedNotification{method, params})
	if !x.delivering {
		x.delivering = true
		x.pump.Go(x.deliverNotifications)
	}
}

// deliverNotifications delivers the queued notifications and returns when the queue is empty.
func (x *inFlightCall) deliverNotifications() {
	for {
		x.mu.Lock()
		notes := x.notes
		x.notes = nil
		if len(notes) == 0 {
			x.delivering = false
			x.mu.Unlock()
			return
		}
		x.mu.Unlock()
		for _, n := range notes {
			if x.ctx.Err() != nil {
				break
			}
			if err := x.call.Peer.Notify(x.ctx, n.method, n.params); err != nil {
				x.log.Debug("a caller did not accept a notification", "error", err)
			}
		}
	}
}

// OnReconnectRequest is called when the server asks its client to reconnect after a pause. It sends the same request to
// the caller, if the call's Peer supports that.
func (x *inFlightCall) OnReconnectRequest(after time.Duration) {
	if p, ok := x.call.Peer.(drawbridge.ReconnectRequester); ok {
		p.RequestReconnect(after)
	}
}

// pauseTimeout pauses the call's silence limit until release is called. The limit for the whole call stays in effect.
func (x *inFlightCall) pauseTimeout() (release func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.openQuestions++
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.openQuestions--
		x.resetTimeout()
	}
}

// HandleRequest answers a server request that belongs to the call. It sends the request to the caller if the caller
// accepts such requests; otherwise Drawbridge answers or refuses the request.
func (x *inFlightCall) HandleRequest(ctx context.Context, method string, params json.RawMessage) (result,
	errorObject json.RawMessage) {
	x.mu.Lock()
	if x.over { // the caller has left; requests that do not need the caller are still answered
		x.mu.Unlock()
		return x.server.AnswerServerRequest(x.ctx, x.call, method, params)
	}
	x.answering.Add(1)
	x.mu.Unlock()
	defer x.answering.Done()
	defer x.pauseTimeout()()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.ctx, cancel)()
	result, errorObject = x.server.AnswerServerRequest(ctx, x.call, method, params)
	if x.ctx.Err() != nil {
		<-x.ended // the cancellation must be sent first, or the server would continue the call
	}
	return result, errorObject
}
