package trust

import "time"

const (
	// firstStay is how long a quarantine lasts at least once a server has fallen under the threshold for the second time; with each
	// further time it is twice as long, up to longestStay.
	firstStay   = 15 * time.Minute
	longestStay = 24 * time.Hour
	// apart is how long after one time another one counts. After calm without any the next one counts as the first.
	apart = 5 * time.Minute
	calm  = 2 * longestStay
	// mostFalls is how many are counted.
	mostFalls = 16
)

// falls say how often a server did something while its score was under the threshold, or with which it fell there. Each time that a
// server is quarantined its cards leave the deck, and come back, and all of that is on record for ever: one that misbehaves as soon
// as it is back stays away for longer each time.
type falls struct {
	times int
	// last is when the last one was counted, least until when the server is quarantined at least.
	last, least time.Time
}

// falls are those of a state with what happened at its last moment. To do more never makes a stay shorter: what counts is how many
// moments there are that lie apart from each other.
func (r Rules) falls(s State) falls {
	f := s.falls
	if s.sum >= 0 || !r.low(s) || s.at.Sub(f.last) < apart {
		return f
	}
	if s.at.Sub(later(f.last, f.least)) > calm {
		f.times = 0
	}
	f.times, f.last = min(f.times+1, mostFalls), s.at
	if f.times > 1 {
		f.least = later(f.least, s.at.Add(min(firstStay<<(f.times-2), longestStay)))
	}
	return f
}

// fallsOf are those at the end of a summary: none of a time that is still to come.
func fallsOf(e Event) falls {
	f := falls{min(max(0, e.Falls), mostFalls), e.Fell, e.Least}
	if f.last.After(e.At) {
		f.last = e.At
	}
	if most := e.At.Add(longestStay); f.least.After(most) {
		f.least = most
	}
	return f
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
