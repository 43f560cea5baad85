package trust

import "time"

const (
	// minQuarantine is the minimum duration of the quarantine after a server's second fall. Each further fall doubles
	// this duration, up to maxQuarantine.
	minQuarantine = 15 * time.Minute
	maxQuarantine = 24 * time.Hour
	// minFallGap is the minimum time between two falls that count separately. After calmPeriod without a fall, the next
	// fall counts as the first.
	minFallGap = 5 * time.Minute
	calmPeriod = 2 * maxQuarantine
	// maxFalls is the maximum number of falls that are counted.
	maxFalls = 16
)

// A fallHistory counts the falls of a server. A fall is a moment at which events lower the score, and after which the
// score is below the threshold.
//
// Each quarantine removes the server's tools and later restores them, and both changes are stored permanently. A server
// that often misbehaves must not cause many such changes. Therefore each further quarantine lasts longer.
type fallHistory struct {
	count int
	// last is the time of the last counted fall. quarantinedUntil is the earliest end of the quarantine.
	last, quarantinedUntil time.Time
}

// fallsAfter returns the falls of a server in state s, including a possible fall at the time of its last events. More
// events against a server never shorten its quarantine. The reason is that a fall less than minFallGap after the last
// counted fall is not counted.
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

// fallsInSummary returns the fallHistory at the end of a summary. It limits the last fall to the time of the summary,
// and the quarantine to maxQuarantine after this time.
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
