package limits

import (
	"sync"
	"time"
)

// Minute is the window of a pace, and of a breaker.
const Minute = time.Minute

// A Pace holds servers to so many calls in any 60 seconds. The zero value is one that nothing has called. Its methods may be
// called from several goroutines.
type Pace struct {
	mu sync.Mutex
	// calls has for each name when its calls of the last minute were, the oldest first.
	calls map[string][]time.Time
}

// Take takes one of the max calls that there are for a name in any 60 seconds. Where there is none left it says when there
// will be one, and takes nothing. A max of 0 or below is none at all.
func (p *Pace) Take(name string, max int, now time.Time) (again time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls[name]
	gone := 0
	for gone < len(calls) && now.Sub(calls[gone]) >= Minute {
		gone++
	}
	calls = calls[gone:]
	if len(calls) >= max {
		p.keep(name, calls)
		if max <= 0 {
			return now.Add(Minute), false
		}
		return calls[len(calls)-max].Add(Minute), false
	}
	p.keep(name, append(calls, now))
	return time.Time{}, true
}

func (p *Pace) keep(name string, calls []time.Time) {
	if p.calls == nil {
		p.calls = map[string][]time.Time{}
	}
	p.calls[name] = calls
}
