package trust

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Rules say when a server is quarantined, and how trust comes back. A zero field means the default.
type Rules struct {
	// Threshold is the score under which a server is quarantined; below 0 none is.
	Threshold float64
	// HalfLife is how long it takes until half of what is missing is back.
	HalfLife time.Duration
}

// The defaults, and how far above the threshold a server must be to come back.
const (
	DefaultThreshold = 0.4
	DefaultHalfLife  = time.Hour
	margin           = 0.05
)

// longest is the longest half-life: the time that it takes until all is back can be told.
const longest = 10 * 365 * 24 * time.Hour

// nothing is so little that it counts as nothing: without it no server would ever be trusted again as it was.
const nothing = 0.0005

func (r Rules) threshold() float64 {
	if r.Threshold == 0 {
		return DefaultThreshold
	}
	return r.Threshold
}

// release is the score at which a server comes back.
func (r Rules) release() float64 { return min(1, r.threshold()+margin) }

func (r Rules) halfLife() time.Duration {
	if r.HalfLife <= 0 {
		return DefaultHalfLife
	}
	return min(r.HalfLife, longest)
}

// A State is where a server stands after its events. The zero value is that of a server that nothing speaks against.
type State struct {
	// at is the moment of the last events, lost what was missing from 1 before them, sum what they do, in thousandths: those
	// of one moment are added up before anything is cut off at 0 or 1, so that their order does not count.
	at   time.Time
	lost float64
	sum  int
	// held says that the server was quarantined before that moment, falls how often it fell so low before.
	held  bool
	falls falls
}

// missing is what is missing from 1 at the moment of the last events.
func (s State) missing() float64 {
	return min(1, max(0, s.lost-float64(s.sum)/1000))
}

// missing is what is missing from 1 at a time. A time before the last events is that of the events.
func (r Rules) missing(s State, now time.Time) float64 {
	lost := s.missing()
	if d := now.Sub(s.at); d > 0 && lost > 0 {
		lost *= math.Exp2(-float64(d) / float64(r.halfLife()))
	}
	if lost < nothing {
		return 0
	}
	return lost
}

// Score is how far a server is trusted at a time: 1 − (1 − s)·2^(−t/half-life), where s is the score after its last event and t
// the time since.
func (r Rules) Score(s State, now time.Time) float64 { return 1 - r.missing(s, now) }

// Quarantined says whether a server is quarantined at a time.
func (r Rules) Quarantined(s State, now time.Time) bool {
	held := s.held || r.low(s)
	return held && (r.Score(s, now) < r.release() || now.Before(r.falls(s).least))
}

// low says whether the score is under the threshold at the moment of the last events.
func (r Rules) low(s State) bool { return 1-s.missing() < r.threshold() }

// Until is when a quarantine ends if nothing more happens: the first millisecond at which Quarantined says so. It is zero
// where there is none at that time.
func (r Rules) Until(s State, now time.Time) time.Time {
	if !r.Quarantined(s, now) {
		return time.Time{}
	}
	at := s.at
	if left := max(nothing, 1-r.release()); s.missing() > left {
		halves := math.Log2(s.missing() / left)
		at = s.at.Add(time.Duration(halves * float64(r.halfLife()))).Truncate(time.Millisecond)
	}
	if least := r.falls(s).least; at.Before(least) {
		at = least
	}
	for r.Quarantined(s, at) {
		at = at.Add(time.Millisecond)
	}
	return at
}

// After is the state after one more event. One of an earlier moment than the last counts as of that moment.
func (r Rules) After(s State, e Event) State {
	if e.At.After(s.at) {
		s = State{at: e.At, lost: r.missing(s, e.At), held: r.Quarantined(s, e.At), falls: r.falls(s)}
	}
	switch e.Kind {
	case Reset:
		s.lost, s.held, s.falls = 0, false, falls{}
	case Summary:
		s.lost, s.held, s.falls = min(1, max(0, e.Lost)), e.Held, fallsOf(e)
	default:
		s.sum = min(1_000_000, max(-1_000_000, s.sum+e.thousandths()))
	}
	return s
}

// Fold is the state after events, in the order in which they happened, whatever that in which they are given.
func (r Rules) Fold(events []Event) (s State) {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, byTime)
	for _, e := range sorted {
		s = r.After(s, e)
	}
	return s
}

// byTime orders events by their moments. In one moment what sets the score comes first, a summary before a reset.
func byTime(a, b Event) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(rank(a.Kind), rank(b.Kind)))
}

func rank(k Kind) int {
	switch k {
	case Summary:
		return 0
	case Reset:
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

// LevelOf is the level that a score comes to: from 0.8 on trusted, from 0.4 on untrusted. It is never above the ceiling, which
// the row sets; an empty one is Untrusted.
func LevelOf(score float64, ceiling Level) Level {
	switch {
	case score < 0.4 || ceiling == Sandboxed:
		return Sandboxed
	case score < 0.8 || ceiling != Trusted:
		return Untrusted
	}
	return Trusted
}
