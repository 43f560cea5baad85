package upstream

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// startsPerProcessor times the number of processors is how many servers may start in the background at once. At
	// least minStarts may start.
	startsPerProcessor = 2
	minStarts          = 4
	// startHold is how long a server that starts counts towards that number. After that time, it probably waits for
	// something other than a processor, or it never answers. Later servers must not wait for it.
	startHold = 100 * time.Millisecond
	// callPriority is how long a call that waits for the start of its server delays other starts, at most.
	callPriority = 500 * time.Millisecond
)

// A startGate delays the starts of servers for which no caller waits, so that they do not take the processors from each
// other and from the calls. Servers that failed before start after the others. Its methods may be called from several
// goroutines.
type startGate struct {
	mu      sync.Mutex
	free    int // how many more servers may start
	calls   int // how many calls wait for the start of their server
	waiting []*waitingStart
}

// A waitingStart is the start of a server that waits in a startGate. late is set if the server failed before.
type waitingStart struct {
	late    bool
	granted chan struct{} // closed when the server may start
}

func newStartGate() *startGate {
	return &startGate{free: max(minStarts, startsPerProcessor*runtime.GOMAXPROCS(0))}
}

// acquire waits until a server may start. It returns at once if ctx has ended or urgent is closed, also during the wait:
// then a caller waits for the server. release must be called when the start has ended.
func (g *startGate) acquire(ctx context.Context, urgent <-chan struct{}, late bool) (release func()) {
	if isClosed(urgent) {
		return func() {}
	}
	w := &waitingStart{late: late, granted: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, w)
	g.grantLocked()
	g.mu.Unlock()
	select {
	case <-w.granted:
	case <-urgent:
		g.leave(w)
		return func() {}
	case <-ctx.Done():
		g.leave(w)
		return func() {}
	}
	once := sync.OnceFunc(g.releaseStart)
	timer := time.AfterFunc(startHold, once)
	return func() {
		timer.Stop()
		once()
	}
}

// leave removes a start that does not wait any more. If it was permitted meanwhile, another may start instead.
func (g *startGate) leave(w *waitingStart) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isClosed(w.granted) {
		g.free++
		g.grantLocked()
		return
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(other *waitingStart) bool { return other == w })
}

func (g *startGate) releaseStart() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	g.grantLocked()
}

// grantLocked permits as many starts as possible: in their order, those that failed before at last.
func (g *startGate) grantLocked() {
	for g.free > 0 && g.calls == 0 && len(g.waiting) > 0 {
		next := max(0, slices.IndexFunc(g.waiting, func(w *waitingStart) bool { return !w.late }))
		close(g.waiting[next].granted)
		g.waiting = slices.Delete(g.waiting, next, next+1)
		g.free--
	}
}

// delayForCall delays all starts in the gate until the returned function is called, but at most for callPriority. It is
// called while a call waits for the start of its server.
func (g *startGate) delayForCall() (end func()) {
	g.mu.Lock()
	g.calls++
	g.mu.Unlock()
	ended := sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.calls--
		g.grantLocked()
	})
	timer := time.AfterFunc(callPriority, ended)
	return func() {
		timer.Stop()
		ended()
	}
}
