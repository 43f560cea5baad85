package ratelimit

import (
	"math"
	"time"
)

// Size counts the runs that a breaker remembers.
func (b *LoopBreaker) Size() (n int) {
	for _, minute := range []map[CallSite]map[uint64]*callRun{b.current, b.previous} {
		for _, runs := range minute {
			n += len(runs)
		}
	}
	return n
}

// Longest is how many calls it remembers of the run that has most.
func (b *LoopBreaker) Longest() (n int) {
	for _, runs := range b.current {
		for _, r := range runs {
			n = max(n, len(r.times))
		}
	}
	return n
}

// Texts is how many texts a Once remembers in one Life.
const Texts = maxSeenTexts

// HeldAnyway is Held where any run may be long enough.
func (b *LoopBreaker) HeldAnyway(at CallSite, args func() []byte, now time.Time) (LoopState, bool) {
	b.isNearLimit(now)
	kept := b.longest
	defer func() { b.longest = kept }()
	b.longest = runLengths{math.MaxInt, math.MaxInt}
	return b.CheckCall(at, args, now)
}
