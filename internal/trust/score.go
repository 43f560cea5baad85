package trust

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// ScoreRules say when a server is quarantined, and how trust comes back. A zero field means the default.
type ScoreRules struct {
	// Threshold is the score under which a server is quarantined; below 0 none is.
	Threshold float64
	// HalfLife is how long it takes until half of what is missing is back.
	HalfLife time.Duration
}

// The defaults, and how far above the threshold a server must be to come back.
const (
	DefaultThreshold = 0.4
	DefaultHalfLife  = time.Hour
	releaseMargin    = 0.05
)

// maxHalfLife is the longest half-life: the time that it takes until all is back can be told.
const maxHalfLife = 10 * 365 * 24 * time.Hour

// negligibleLoss is so little that it counts as nothing: without it no server would ever be trusted again as it was.
const negligibleLoss = 0.0005

func (r ScoreRules) threshold() float64 {
	if r.Threshold == 0 {
		return DefaultThreshold
	}
	return r.Threshold
}

// releaseScore is the score at which a server comes back.
func (r ScoreRules) releaseScore() float64 { return min(1, r.threshold()+releaseMargin) }

func (r ScoreRules) halfLife() time.Duration {
	if r.HalfLife <= 0 {
		return DefaultHalfLife
	}
	return min(r.HalfLife, maxHalfLife)
}

// A ScoreState is where a server stands after its events. The zero value is that of a server that nothing speaks
// against.
type ScoreState struct {
	// at is the moment of the last events, lost what was missing from 1 before them, sum what they do, in thousandths:
	// those of one moment are added up before anything is cut off at 0 or 1, so that their order does not count.
	at            time.Time
	missingBefore float64
	pendingMilli  int
	// quarantined reports that the server was quarantined before that moment, falls how often it fell so low before.
	quarantined bool
	falls       fallHistory
}

// missingScore is what is missing from 1 at the moment of the last events.
func (s ScoreState) missingScore() float64 {
	return min(1, max(0, s.missingBefore-float64(s.pendingMilli)/1000))
}

// missingScoreAt is what is missing from 1 at a time. A time before the last events is that of the events.
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

// Score is how far a server is trusted at a time: 1 − (1 − s)·2^(−t/half-life), where s is the score after its last
// event and t the time since.
func (r ScoreRules) Score(s ScoreState, now time.Time) float64 { return 1 - r.missingScoreAt(s, now) }

// IsQuarantined reports whether a server is quarantined at a time.
func (r ScoreRules) IsQuarantined(s ScoreState, now time.Time) bool {
	held := s.quarantined || r.isBelowThreshold(s)
	return held && (r.Score(s, now) < r.releaseScore() || now.Before(r.fallsAfter(s).quarantinedUntil))
}

// isBelowThreshold reports whether the score is under the threshold at the moment of the last events.
func (r ScoreRules) isBelowThreshold(s ScoreState) bool { return 1-s.missingScore() < r.threshold() }

// QuarantineEnd is when a quarantine ends if nothing more happens: the first millisecond at which Quarantined says so.
// It is zero where there is none at that time.
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

// Apply is the state after one more event. One of an earlier moment than the last counts as of that moment.
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

// Fold is the state after events, in the order in which they happened, whatever that in which they are given.
func (r ScoreRules) Fold(events []Event) (s ScoreState) {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, compareEvents)
	for _, e := range sorted {
		s = r.Apply(s, e)
	}
	return s
}

// compareEvents orders events by their moments. In one moment what sets the score comes first, a summary before a
// reset.
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

// A Level is how much a server may do, for rules that ask.
type Level string

// The levels, as a row's member "trust" names them.
const (
	Trusted   Level = "trusted"
	Untrusted Level = "untrusted"
	Sandboxed Level = "sandboxed"
)

// LevelForScore is the level that a score comes to: from 0.8 on trusted, from 0.4 on untrusted. It is never above the
// ceiling, which the row sets; an empty one is Untrusted.
func LevelForScore(score float64, ceiling Level) Level {
	switch {
	case score < 0.4 || ceiling == Sandboxed:
		return Sandboxed
	case score < 0.8 || ceiling != Trusted:
		return Untrusted
	}
	return Trusted
}
