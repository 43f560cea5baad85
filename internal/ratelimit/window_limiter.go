package ratelimit

import (
	"slices"
	"sync"
	"time"
)

// Window is the period over which calls are counted by a WindowLimiter and a LoopBreaker.
const Window = time.Minute

// A WindowLimiter limits the calls of servers in any 60 seconds. The zero value has counted no call. Its methods may be
// called from several goroutines.
type WindowLimiter struct {
	mu sync.Mutex
	// calls holds the times of the last minute's calls by name, the oldest first.
	calls map[string][]time.Time
}

// Take counts a call if fewer than max were counted for the name in the last 60 seconds. Otherwise it returns when
// there is room again, and counts nothing. With a max of 0 or below no call is allowed.
func (p *WindowLimiter) Take(name string, max int, now time.Time) (again time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if again, ok = p.pruneAndCheck(name, max, now); ok {
		p.calls[name] = append(p.calls[name], now)
	}
	return again, ok
}

// CheckRoom returns the result of Take, and counts nothing.
func (p *WindowLimiter) CheckRoom(name string, max int, now time.Time) (again time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pruneAndCheck(name, max, now)
}

// GiveBack removes a call that Take counted at a time and that was not made.
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

// pruneAndCheck drops the calls older than a minute, and checks the rest. The caller holds mu.
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
