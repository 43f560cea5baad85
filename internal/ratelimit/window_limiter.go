package ratelimit

import (
	"slices"
	"sync"
	"time"
)

// Window is the period over which calls are counted by a WindowLimiter and a LoopBreaker.
const Window = time.Minute

// A WindowLimiter limits the number of calls in any period of 60 seconds, separately for each name, such as a server's
// name. The zero value has counted no calls. Its methods may be called from several goroutines.
type WindowLimiter struct {
	mu sync.Mutex
	// calls contains the times of the last minute's calls by name, the oldest first.
	calls map[string][]time.Time
}

// Take counts a call for the name if fewer than max calls were counted in the last 60 seconds. Otherwise it counts
// nothing and returns the time when a call is permitted again. If max is 0 or negative, no call is permitted.
func (p *WindowLimiter) Take(name string, max int, now time.Time) (again time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if again, ok = p.pruneAndCheck(name, max, now); ok {
		p.calls[name] = append(p.calls[name], now)
	}
	return again, ok
}

// CheckRoom returns what Take would return, but counts nothing.
func (p *WindowLimiter) CheckRoom(name string, max int, now time.Time) (again time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pruneAndCheck(name, max, now)
}

// GiveBack removes a call that Take counted at the time at, but that was not made.
func (p *WindowLimiter) GiveBack(name string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls[name]
	for i, taken := range slices.Backward(calls) {
		if taken.Equal(at) {
			p.calls[name] = slices.Delete(calls, i, i+1)
			return
		}
	}
}

// pruneAndCheck deletes the calls older than a minute, and reports whether another call is permitted. If not, it
// returns the time when a call is permitted again. mu must be held.
func (p *WindowLimiter) pruneAndCheck(name string, max int, now time.Time) (again time.Time, ok bool) {
	calls := p.calls[name]
	gone := 0
	for gone < len(calls) && now.Sub(calls[gone]) >= Window {
		gone++
	}
	calls = calls[gone:]
	if p.calls == nil {
		p.calls = map[string][]time.Time{}
	}
	p.calls[name] = calls
	switch {
	case len(calls) < max:
		return time.Time{}, true
	case max <= 0:
		return now.Add(Window), false
	}
	return calls[len(calls)-max].Add(Window), false
}
