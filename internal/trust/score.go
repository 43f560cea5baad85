package trust

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// ScoreRules determine when a server is quarantined and how fast its score recovers. A zero field means the default.
type ScoreRules struct {
	// Threshold is the score below which a server is quarantined; a negative value disables the quarantine.
	Threshold float64
	// HalfLife is the time in which half of the difference between the score and 1 is restored.
	HalfLife time.Duration
}

// The default values of ScoreRules. releaseMargin is how far the score must be above the threshold to end a quarantine.
const (
	DefaultThreshold = 0.4
	DefaultHalfLife  = time.Hour
	releaseMargin    = 0.05
)

// maxHalfLife is the maximum half-life. With this limit, the end of a quarantine can be represented as a time.
const maxHalfLife = 10 * 365 * 24 * time.Hour

// negligibleLoss is the largest difference between the score and 1 that counts as 0. Without it, a score would never
// return to exactly 1.
const negligibleLoss = 0.0005

func (r ScoreRules) threshold() float64 {
	if r.Threshold == 0 {
		return DefaultThreshold
	}
	return r.Threshold
}

// releaseScore returns the score at which a quarantine ends.
func (r ScoreRules) releaseScore() float64 { return min(1, r.threshold()+releaseMargin) }

func (r ScoreRules) halfLife() time.Duration {
	if r.HalfLife <= 0 {
		return DefaultHalfLife
	}
	return min(r.HalfLife, maxHalfLife)
}

// A ScoreState is the state of a server after its events. The zero value is the state of a server without events.
type ScoreState struct {
	// at is the time of the last events. missingBefore is 1 minus the score directly before these events. pendingMilli
	// is the sum of the changes by these events, in thousandths. Changes at the same time are added before the score is
	// limited to the range from 0 to 1, so their order does not matter.
	at            time.Time
	missingBefore float64
	pendingMilli  int
	// quarantined reports whether the server was quarantined directly before the last events. falls are the falls
	// before these events.
	quarantined bool
	falls       fallHistory
}

// missingScore returns 1 minus the score at the time of the last events.
func (s ScoreState) missingScore() float64 {
	return min(1, max(0, s.missingBefore-float64(s.pendingMilli)/1000))
}

// missingScoreAt returns 1 minus the score at a time. A time before the last events counts as the time of these events.
func (r ScoreRules) missingScoreAt(s ScoreState, now time.Time) float64 {
	lost := s.missingScore()
	if d := now.Sub(s.at); d > 0 && lost > 0 {
		lost *= math.Exp2(-float64(d) / float64(r.halfLife()))
	}
	if lost < negligibleLoss {
		return 0
	}
	return lost
}

// Score returns the trust score at a time: 1 − (1 − s)·2^(−t/half-life). s is the score after the last events,
// and t is the time since then.
func (r ScoreRules) Score(s ScoreState, now time.Time) float64 { return 1 - r.missingScoreAt(s, now) }

// IsQuarantined reports whether a server is quarantined at a time.
func (r ScoreRules) IsQuarantined(s ScoreState, now time.Time) bool {
	held := s.quarantined || r.isBelowThreshold(s)
	return held && (r.Score(s, now) < r.releaseScore() || now.Before(r.fallsAfter(s).quarantinedUntil))
}

// isBelowThreshold reports whether the score is below the threshold at the time of the last events.
func (r ScoreRules) isBelowThreshold(s ScoreState) bool { return 1-s.missingScore() < r.threshold() }

// QuarantineEnd returns the time at which the present quarantine of a server ends if there are no further events. It is
// the first millisecond at which IsQuarantined returns false. If the server is not quarantined at now, the result is
// the zero time.
func (r ScoreRules) QuarantineEnd(s ScoreState, now time.Time) time.Time {
	if !r.IsQuarantined(s, now) {
		return time.Time{}
	}
	at := s.at
	if left := max(negligibleLoss, 1-r.releaseScore()); s.missingScore() > left {
		halves := math.Log2(s.missingScore() / left)
		at = s.at.Add(time.Duration(halves * float64(r.halfLife()))).Truncate(time.Millisecond)
	}
	if least := r.fallsAfter(s).quarantinedUntil; at.Before(least) {
		at = least
	}
	for r.IsQuarantined(s, at) {
		at = at.Add(time.Millisecond)
	}
	return at
}

// Apply returns the state after one more event. An event with a time before the last events is treated as if it had
// their time.
func (r ScoreRules) Apply(s ScoreState, e Event) ScoreState {
	if e.At.After(s.at) {
		s = ScoreState{at: e.At, missingBefore: r.missingScoreAt(s, e.At), quarantined: r.IsQuarantined(s, e.At),
			falls: r.fallsAfter(s)}
	}
	switch e.Kind {
	case TrustReset:
		s.missingBefore, s.quarantined, s.falls = 0, false, fallHistory{}
	case EventSummary:
		s.missingBefore, s.quarantined, s.falls = min(1, max(0, e.MissingScore)), e.Quarantined, fallsInSummary(e)
	default:
		s.pendingMilli = min(1_000_000, max(-1_000_000, s.pendingMilli+e.scoreChangeMilli()))
	}
	return s
}

// Fold returns the state after the events. It applies them ordered by time; their order in the slice does not matter.
func (r ScoreRules) Fold(events []Event) (s ScoreState) {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, compareEvents)
	for _, e := range sorted {
		s = r.Apply(s, e)
	}
	return s
}

// compareEvents orders events by time. At the same time, events that set the score come first: a summary, then a reset.
func compareEvents(a, b Event) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(sameTimeRank(a.Kind), sameTimeRank(b.Kind)))
}

func sameTimeRank(k EventKind) int {
	switch k {
	case EventSummary:
		return 0
	case TrustReset:
		return 1
	}
	return 2
}

// A Level is a trust level of a server. A rule of the policy can be limited to servers of certain levels.
type Level string

// The levels, as in the member "trust" of a row.
const (
	Trusted   Level = "trusted"
	Untrusted Level = "untrusted"
	Sandboxed Level = "sandboxed"
)

// LevelForScore returns the trust level for a score: trusted from 0.8, untrusted from 0.4, otherwise sandboxed. The
// result is never higher than ceiling, the member "trust" of the server's row. An empty ceiling means Untrusted.
func LevelForScore(score float64, ceiling Level) Level {
	switch {
	case score < 0.4 || ceiling == Sandboxed:
		return Sandboxed
	case score < 0.8 || ceiling != Trusted:
		return Untrusted
	}
	return Trusted
}
