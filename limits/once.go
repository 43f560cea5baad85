package limits

import (
	"crypto/sha256"
	"sync"
	"time"
)

// A Once tells what comes for the first time from what comes again, among texts that mean something for a Life only. Its
// methods may be called from several goroutines.
type Once struct {
	// Life is how long a text means something after it was made: one that comes later is somebody else's to refuse.
	Life time.Duration

	mu sync.Mutex
	// now and before have the texts of the Life that began at since, and of the one before it.
	now, before map[[sha256.Size]byte]bool
	since       time.Time
}

// texts is how many texts are remembered in one Life. What there is no room for is not taken for new.
const texts = 1 << 16

// First says whether the text comes for the first time, and remembers it.
func (o *Once) First(text string, now time.Time) bool {
	sum := sha256.Sum256([]byte(text))
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known(sum, now) || len(o.now) >= texts {
		return false
	}
	o.now[sum] = true
	return true
}

// New says what First would, and remembers nothing.
func (o *Once) New(text string, now time.Time) bool {
	sum := sha256.Sum256([]byte(text))
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.known(sum, now) && len(o.now) < texts
}

// known says whether a text has come before. The lock is held.
func (o *Once) known(sum [sha256.Size]byte, now time.Time) bool {
	if gone := now.Sub(o.since); gone >= o.Life || o.now == nil {
		if o.before = o.now; gone >= 2*o.Life {
			o.before = nil
		}
		o.now, o.since = map[[sha256.Size]byte]bool{}, now
	}
	return o.now[sum] || o.before[sum]
}
