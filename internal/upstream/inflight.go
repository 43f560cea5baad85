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

// maxQueuedNotifications is how many notifications wait for a caller who does not take them; later ones are dropped.
const maxQueuedNotifications = 4096

// maxDurationFactor is how many times its limit a call may last, whatever its progress.
const maxDurationFactor = 10

// wakeAfter is how long nothing is heard of a call before its server is woken. In that time nearly every call is over.
const wakeAfter = 5 * time.Second

// maxCallDuration is how long a call with that limit may last, whatever its progress.
func maxCallDuration(limit time.Duration) time.Duration { return maxDurationFactor * limit }

// A callTimeoutError is a call that took too long. It is a context.DeadlineExceeded.
type callTimeoutError struct {
	// After is how long nothing was heard of the call, or, where it is Hard, how long it lasted with all its progress.
	After time.Duration
	Hard  bool
}

// Error says how long that was.
func (l *callTimeoutError) Error() string {
	if l.Hard {
		return fmt.Sprintf("timeout: not finished after %v, with all its progress", l.After)
	}
	return fmt.Sprintf("timeout: no answer and no progress within %v", l.After)
}

// Is says that a callTimeoutError is the end of a deadline.
func (l *callTimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// A callTarget is whom the call goes to.
type callTarget interface {
	// HandleNotification takes a notification that came in the course of the call and concerns the server: its lists
	// have changed.
	HandleNotification(method string, params json.RawMessage)

	// AnswerServerRequest answers a request of the server that came in the course of call, as a [transport.Handler]
	// does. It may ask the call's Peer.
	AnswerServerRequest(ctx context.Context, call drawbridge.Call, method string, params json.RawMessage) (result,
		errorObject json.RawMessage)
}

// A callWaker is a Server that can be woken: one that has read a call, and stands still because of its runtime, goes
// on when it reads anything more. Wake must not block.
type callWaker interface {
	Wake()
}

// An inFlightCall is one call in flight. Notifications go out by a goroutine that is there only while there are some,
// so that a slow caller does not keep the connection from others. Its methods may be called from several goroutines.
type inFlightCall struct {
	server callTarget
	call   drawbridge.Call
	log    *slog.Logger
	token  json.RawMessage // the caller's progress token; nil for none
	ctx    context.Context // ends with the call: when it is over, or out of time
	stop   context.CancelCauseFunc

	limit    time.Duration
	deadline time.Time
	timer    *time.Timer

	mu              sync.Mutex
	over            bool
	silenceDeadline time.Time // when silence ends the call
	// how many questions the caller has not answered: the server waits for them, so its time stands still
	openQuestions int
	notes         []queuedNotification
	pump          sync.WaitGroup
	delivering    bool // the pump runs

	// answering are the questions in progress; ended is closed when the server knows that the call is over, if it has
	// to.
	answering sync.WaitGroup
	ended     chan struct{}
}

type queuedNotification struct {
	method string
	params json.RawMessage
}

var (
	_ transport.Handler           = (*inFlightCall)(nil)
	_ transport.ReconnectListener = (*inFlightCall)(nil)
)

// newInFlightCall begins an exchange, which must be ended by End. The limit is how long nothing may be heard of it.
// The logger is told what the caller did not take.
func newInFlightCall(ctx context.Context, server callTarget, call drawbridge.Call, limit time.Duration,
	logger *slog.Logger) *inFlightCall {
	x := &inFlightCall{
		server: server, call: call, log: logger, token: rawjson.Get(call.Params, "_meta", mcp.MetaProgressToken),
		limit: limit, ended: make(chan struct{}),
	}
	now := time.Now()
	x.silenceDeadline, x.deadline = now.Add(limit), now.Add(maxCallDuration(limit))
	x.ctx, x.stop = context.WithCancelCause(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timer = time.AfterFunc(min(limit, wakeAfter), x.checkTimeouts)
	return x
}

// Context ends with the call: when it is over, or out of time.
func (x *inFlightCall) Context() context.Context { return x.ctx }

// Call is what is carried.
func (x *inFlightCall) Call() drawbridge.Call { return x.call }

// finish ends the exchange, when everything said before is with the caller: that a question was taken back too. It
// gives the reason where time ran out.
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
	if limit, ok := cause.(*callTimeoutError); ok {
		return limit
	}
	return nil
}

// checkTimeouts is called when the time for an answer is over, and before that when nothing was heard for a while.
func (x *inFlightCall) checkTimeouts() {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	switch {
	case x.over:
	case !now.Before(x.deadline):
		x.stop(&callTimeoutError{maxCallDuration(x.limit), true})
	case x.openQuestions > 0:
		x.timer.Reset(x.deadline.Sub(now))
	case now.Before(x.silenceDeadline):
		x.timer.Reset(min(x.silenceDeadline.Sub(now), x.deadline.Sub(now)))
		if w, ok := x.server.(callWaker); ok {
			w.Wake()
		}
	default:
		x.stop(&callTimeoutError{x.limit, false})
	}
}

// resetTimeout begins the time for an answer anew. It needs mu.
func (x *inFlightCall) resetTimeout() {
	if !x.over {
		now := time.Now()
		x.silenceDeadline = now.Add(x.limit)
		x.timer.Reset(min(x.limit, wakeAfter, x.deadline.Sub(now)))
	}
}

// HandleNotification takes a notification that belongs to the call.
func (x *inFlightCall) HandleNotification(method string, params json.RawMessage) {
	switch {
	case method == mcp.NoteProgress:
		x.mu.Lock()
		x.resetTimeout()
		x.mu.Unlock()
		if x.token == nil {
			return
		}
		params = rawjson.Apply(params, rawjson.Put(x.token, mcp.MetaProgressToken))
	case transport.IsServerWideNotification(method):
		x.server.HandleNotification(method, params)
		return
	case method == mcp.NoteElicitComplete && x.call.Caller.Era == drawbridge.Modern:
		return // gone with the stateful generation
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

// deliverNotifications is the pump: it gives the caller what has come, and ends when that is all.
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
				x.log.Debug("a caller did not take a notification", "error", err)
			}
		}
	}
}

// OnReconnectRequest has the caller do what the server has us do.
func (x *inFlightCall) OnReconnectRequest(after time.Duration) {
	if p, ok := x.call.Peer.(drawbridge.ReconnectRequester); ok {
		p.RequestReconnect(after)
	}
}

// pauseTimeout has the call's time stand still until release is called.
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

// HandleRequest has a request of the server answered: by the caller, if it may be asked that.
func (x *inFlightCall) HandleRequest(ctx context.Context, method string, params json.RawMessage) (result,
	errorObject json.RawMessage) {
	x.mu.Lock()
	if x.over { // nobody waits for it any more; what is answered without the caller still is
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
		<-x.ended // a server that is answered before it hears that nobody waits for the call would go on with it
	}
	return result, errorObject
}
