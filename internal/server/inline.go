package server

import (
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// An inlineCall is a call that runs in a coroutine. It is the sender and the Parker of the call.
type inlineCall struct {
	*stdioConn
	c *coroutine
	// over is set when the call has ended: the coroutine may run another call then. canPark is set when the call has
	// reached a connection on which it can park.
	over, canPark atomic.Bool
}

var (
	_ transport.Parker = (*inlineCall)(nil)
	_ sender           = (*inlineCall)(nil)
)

// Park waits until Wake or Resume is called.
func (l *inlineCall) Park() bool {
	if l.over.Load() {
		return false
	}
	return l.c.yield(struct{}{})
}

// Wake continues the call in a goroutine of the connection's workers.
func (l *inlineCall) Wake() {
	if l.c.wake() {
		l.workers.Go(l.c.drive)
	}
}

// Resume continues the call in the calling goroutine.
func (l *inlineCall) Resume() {
	if l.c.wake() {
		l.c.drive()
	}
}

// Parker returns the Parker of the request, or nil.
func (p *requestPeer) Parker() transport.Parker {
	if l, ok := p.sender.(*inlineCall); ok {
		l.canPark.Store(true)
		return l
	}
	return nil
}

const (
	// maxInlineRequest is the maximum size in bytes of a line with a call that runs inline.
	maxInlineRequest = 16 << 10
	// slowUnparkedCall is how long a call that cannot park may use the reading goroutine before it counts as slow. It
	// probably waited for something, such as a server over HTTP.
	slowUnparkedCall = 300 * time.Microsecond
	// minInlinePause and maxInlinePause are how many calls do not run inline after a slow one. The number doubles with
	// each slow call.
	minInlinePause = 16
	maxInlinePause = 512
)

// An inlineChoice decides which calls run inline: in the goroutine that reads the client's lines, and in the goroutine
// that reads the server's response. These are small calls of a client that has no other request in progress and no
// other line waiting. After a slow call, which took the turn from the
// reading goroutine or could not park, the next calls do not run inline.
type inlineChoice struct {
	// allowed is set while the current line may contain a call to run inline, and call is that call. The lock handling
	// of the connection guards both.
	allowed bool
	call    *inlineCall

	// pause is how many calls must not run inline. lastPause is the pause after the last slow call; 0 after a call that
	// was not slow.
	pause, lastPause atomic.Int32
}

// begin prepares the choice for a line of this size. more reports whether another line waits.
func (l *inlineChoice) begin(size int, more bool) { l.allowed = size <= maxInlineRequest && !more }

// forbid makes no call of the current line run inline.
func (l *inlineChoice) forbid() { l.allowed = false }

// isAllowed reports whether a call of the current line may run inline, and counts the call.
func (l *inlineChoice) isAllowed() bool {
	if !l.allowed || l.call != nil {
		return false
	}
	if n := l.pause.Load(); n > 0 {
		l.pause.Store(n - 1)
		return false
	}
	return true
}

// take returns the call of the current line that must run inline, or nil.
func (l *inlineChoice) take() *inlineCall {
	call := l.call
	l.call = nil
	return call
}

// run runs a call until it parks or ends. It returns false if the goroutine has lost its turn meanwhile.
func (l *inlineChoice) run(turn *transport.ReadTurn, call *inlineCall) bool {
	began := time.Now()
	kept := turn.Do(call.c.drive)
	if kept && (call.canPark.Load() || time.Since(began) <= slowUnparkedCall) {
		l.lastPause.Store(0)
		return true
	}
	pause := min(max(2*l.lastPause.Load(), minInlinePause), maxInlinePause)
	l.lastPause.Store(pause)
	l.pause.Store(pause)
	return kept
}
