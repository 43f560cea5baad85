package upstream

import (
	"slices"
	"sync"
)

// A sessionCalls tracks the calls of one session, to find the one that a message of the server belongs to. The zero
// value has had none. Its methods may be called from several goroutines, and call nothing that takes another lock.
type sessionCalls struct {
	mu       sync.Mutex
	inFlight []*inFlightCall // the newest last
	called   bool            // there was a call
	// firstCaller is the first caller's session; several is set if there were others.
	firstCaller string
	several     bool
}

// add adds a call in flight.
func (c *sessionCalls) add(x *inFlightCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight = append(c.inFlight, x)
	if caller := x.Call().Caller.Session; !c.called {
		c.firstCaller = caller
	} else if caller != c.firstCaller {
		c.several = true
	}
	c.called = true
}

// remove removes a call that has ended.
func (c *sessionCalls) remove(x *inFlightCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.inFlight, x); i >= 0 {
		c.inFlight = slices.Delete(c.inFlight, i, i+1)
	}
}

// current returns the calls in flight, the newest last.
func (c *sessionCalls) current() []*inFlightCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.inFlight)
}

// hadCall reports whether there was a call.
func (c *sessionCalls) hadCall() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.called
}

// hadSeveralCallers reports whether there were calls of more than one caller's session.
func (c *sessionCalls) hadSeveralCallers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.several
}

// areAllOf reports whether every call so far was of one caller's session.
func (c *sessionCalls) areAllOf(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.several && c.firstCaller == session
}
