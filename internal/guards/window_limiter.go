package guards

import (
	"slices"
	"sync"
	"time"
)

// rateWindow is the period over which calls are counted by a windowLimiter and a loopBreaker.
const rateWindow = time.Minute

// A windowLimiter limits the number of calls in any period of 60 seconds, separately for each name, such as a server's
// name. The zero value has counted no calls. Its methods may be called from several goroutines.
type windowLimiter struct {
	mu sync.Mutex
	// calls contains the times of the last minute's calls by name, the oldest first.
	calls map[string][]time.Time
}

// take counts a call for the name if fewer than max calls were counted in the last 60 seconds. Otherwise it counts
// nothing and returns the time when a call is permitted again. If max is 0 or negative, no call is permitted.
func (p *windowLimiter) take(name string, max int, now time.Time) (again time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if again, ok = p.pruneAndCheck(name, max, now); ok {
		p.calls[name] = append(p.calls[name], now)
	}
	return again, ok
}

// checkRoom returns what take would return, but counts nothing.
func (p *windowLimiter) checkRoom(name string, max int, now time.Time) (again time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pruneAndCheck(name, max, now)
}

// giveBack removes a call that take counted at the time at, but that was not made.
func (p *windowLimiter) giveBack(name string, at time.Time) {
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
func (p *windowLimiter) pruneAndCheck(name string, max int, now time.Time) (again time.Time, ok bool) {
	calls := p.calls[name]
	gone := 0
	for gone < len(calls) && now.Sub(calls[gone]) >= rateWindow {
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
		return now.Add(rateWindow), false
	}
	return calls[len(calls)-max].Add(rateWindow), false
}
