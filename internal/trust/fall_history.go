package trust

import "time"

const (
	// minQuarantine is how long a quarantine lasts at least once a server has fallen under the threshold for the
	// second time; with each further time it is twice as long, up to maxQuarantine.
	minQuarantine = 15 * time.Minute
	maxQuarantine = 24 * time.Hour
	// minFallGap is how long after one time another one counts. After calm without any the next one counts as the
	// first.
	minFallGap = 5 * time.Minute
	calmPeriod = 2 * maxQuarantine
	// maxFalls is how many are counted.
	maxFalls = 16
)

// fallHistory say how often a server did something while its score was under the threshold, or with which it fell
// there. Each time that a server is quarantined its cards leave the deck, and come back, and all of that is on record
// for ever: one that misbehaves as soon as it is back stays away for longer each time.
type fallHistory struct {
	count int
	// last is when the last one was counted, least until when the server is quarantined at least.
	last, quarantinedUntil time.Time
}

// fallsAfter are those of a state with what happened at its last moment. To do more never makes a stay shorter: what
// counts is how many moments there are that lie apart from each other.
func (r ScoreRules) fallsAfter(s ScoreState) fallHistory {
	f := s.falls
	if s.pendingMilli >= 0 || !r.isBelowThreshold(s) || s.at.Sub(f.last) < minFallGap {
		return f
	}
	if s.at.Sub(laterTime(f.last, f.quarantinedUntil)) > calmPeriod {
		f.count = 0
	}
	f.count, f.last = min(f.count+1, maxFalls), s.at
	if f.count > 1 {
		f.quarantinedUntil = laterTime(f.quarantinedUntil, s.at.Add(min(minQuarantine<<(f.count-2), maxQuarantine)))
	}
	return f
}

// fallsInSummary are those at the end of a summary: none of a time that is still to come.
func fallsInSummary(e Event) fallHistory {
	f := fallHistory{min(max(0, e.Falls), maxFalls), e.LastFall, e.QuarantinedUntil}
	if f.last.After(e.At) {
		f.last = e.At
	}
	if most := e.At.Add(maxQuarantine); f.quarantinedUntil.After(most) {
		f.quarantinedUntil = most
	}
	return f
}

func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
