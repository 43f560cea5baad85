package transport

import (
	"context"
	"sync/atomic"
	"time"
)

// A Parker lets a call wait for its response without a goroutine that must be woken for the response. The call then
// continues in the goroutine that has read the response. The methods may be called from several goroutines.
type Parker interface {
	// Park waits until Wake or Resume is called. It may return without such a call. It returns false at once if the
	// call must wait in another way. Only the goroutine that runs the call may call Park.
	Park() bool

	// Wake ends Park. The call continues in a separate goroutine.
	Wake()

	// Resume is like Wake, but the call continues in the goroutine of Resume. Resume returns when the call has ended or
	// parks again.
	Resume()
}

// A ParkingHandler is a Handler of a request that waits with a Parker. Parker returns nil if the request waits in
// another way.
type ParkingHandler interface {
	Handler
	Parker() Parker
}

// parkerOf returns the Parker of the request whose messages the handler receives, or nil.
func parkerOf(in Handler) Parker {
	if h, ok := in.(ParkingHandler); ok {
		return h.Parker()
	}
	return nil
}

// park waits until the request c has its response, ctx ends or the connection ends. It may return earlier.
func (s *StreamConn) park(ctx context.Context, c *pendingRequest) {
	stop := context.AfterFunc(ctx, c.parker.Wake)
	defer stop()
	for ctx.Err() == nil {
		select {
		case <-c.ready:
			return
		case <-s.done:
			return
		default:
			if !c.parker.Park() {
				return
			}
		}
	}
}

// turnCheckInterval is how often a ReadTurn checks whether its goroutine still reads. A goroutine that has not read for
// longer loses its turn.
const turnCheckInterval = 5 * time.Millisecond

// A ReadTurn is the right of one goroutine to read a stream. With it, the goroutine may also do the work that a message
// causes. If that work takes longer than expected, for example because it waits for a person, another goroutine gets
// the turn and continues to read. So no work delays the next message for long.
type ReadTurn struct {
	takeOver func()
	// state counts the beginnings and ends of works; it is odd during a work. The end of a work is counted when the work
	// returns, or when the goroutine loses its turn before.
	state atomic.Uint64
	armed atomic.Bool
	timer *time.Timer
	// seen is the state at the last check. Only check uses it.
	seen uint64
}

// NewReadTurn returns a turn that the calling goroutine has. takeOver is called when the goroutine with the turn has
// lost it, and must start a goroutine that continues to read.
func NewReadTurn(takeOver func()) *ReadTurn {
	t := &ReadTurn{takeOver: takeOver}
	t.timer = time.AfterFunc(time.Hour, t.check)
	t.timer.Stop()
	return t
}

// Do calls work. It returns false if the goroutine has lost its turn meanwhile, and must not read any more.
func (t *ReadTurn) Do(work func()) bool {
	during := t.state.Add(1)
	if !t.armed.Load() && t.armed.CompareAndSwap(false, true) {
		t.timer.Reset(turnCheckInterval)
	}
	work()
	return t.state.CompareAndSwap(during, during+1)
}

// check runs when the timer fires. If the same work is in progress as at the last check, another goroutine gets the
// turn. If no work has begun since the last check, the timer stops until the next work.
func (t *ReadTurn) check() {
	now := t.state.Load()
	switch {
	case now != t.seen:
		t.seen = now
	case now%2 == 0:
		t.armed.Store(false)
		if t.state.Load() == now || !t.armed.CompareAndSwap(false, true) {
			return
		}
	case t.state.CompareAndSwap(now, now+1):
		t.seen = now + 1
		t.takeOver()
	}
	t.timer.Reset(turnCheckInterval)
}
