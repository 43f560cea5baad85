package upstream

import (
	"slices"
	"sync"
)

// A sessionCalls tracks the calls of one session, to find the call that a server message belongs to. The zero value has
// no calls. Its methods may be called from several goroutines. They do not acquire any other lock.
type sessionCalls struct {
	mu       sync.Mutex
	inFlight []*inFlightCall // the newest last
	called   bool            // set at the first call
	// firstCaller is the session ID of the first caller. several is set if there was a call of another caller.
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

// hadCall reports whether there was any call on the session.
func (c *sessionCalls) hadCall() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.called
}

// hadSeveralCallers reports whether callers with different session IDs made calls.
func (c *sessionCalls) hadSeveralCallers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.several
}

// areAllOf reports whether every call so far was made by the caller with that session ID.
func (c *sessionCalls) areAllOf(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.several && c.firstCaller == session
}
