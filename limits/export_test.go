package limits

import (
	"math"
	"time"
)

// Size counts the runs that a breaker remembers.
func (b *Breaker) Size() (n int) {
	for _, minute := range []map[Site]map[uint64]*run{b.now, b.before} {
		for _, runs := range minute {
			n += len(runs)
		}
	}
	return n
}

// Longest is how many calls it remembers of the run that has most.
func (b *Breaker) Longest() (n int) {
	for _, runs := range b.now {
		for _, r := range runs {
			n = max(n, len(r.at))
		}
	}
	return n
}

// Texts is how many texts a Once remembers in one Life.
const Texts = texts

// HeldAnyway is Held where any run may be long enough.
func (b *Breaker) HeldAnyway(at Site, args func() []byte, now time.Time) (Loop, bool) {
	b.near(now)
	kept := b.longest
	defer func() { b.longest = kept }()
	b.longest = lengths{math.MaxInt, math.MaxInt}
	return b.Held(at, args, now)
}
