package ratelimit

import (
	"slices"
	"sync"
	"time"
)

// Window is the window of a pace, and of a breaker.
const Window = time.Minute

// A WindowLimiter holds servers to so many calls in any 60 seconds. The zero value is one that nothing has called. Its
// methods may be called from several goroutines.
type WindowLimiter struct {
	mu sync.Mutex
	// calls has for each name when its calls of the last minute were, the oldest first.
	calls map[string][]time.Time
}

// Take takes one of the max calls that there are for a name in any 60 seconds. Where there is none left it says when
// there will be one, and takes nothing. A max of 0 or below is none at all.
func (p *WindowLimiter) Take(name string, max int, now time.Time) (again time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if again, ok = p.pruneAndCheck(name, max, now); ok {
		p.calls[name] = append(p.calls[name], now)
	}
	return again, ok
}

// CheckRoom says what Take would, and takes nothing.
func (p *WindowLimiter) CheckRoom(name string, max int, now time.Time) (again time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pruneAndCheck(name, max, now)
}

// GiveBack returns back a call that was taken at a time, and was not made after all.
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

// pruneAndCheck forgets the calls that are over a minute old, and looks at the rest. The lock is held.
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
