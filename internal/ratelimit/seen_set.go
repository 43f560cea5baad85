package ratelimit

import (
	"crypto/sha256"
	"sync"
	"time"
)

// A SeenSet tells what comes for the first time from what comes again, among texts that mean something for a Life
// only. Its methods may be called from several goroutines.
type SeenSet struct {
	// TTL is how long a text means something after it was made: one that comes later is somebody else's to refuse.
	TTL time.Duration

	mu sync.Mutex
	// current and before have the texts of the Life that began at since, and of the one before it.
	current, previous map[[sha256.Size]byte]bool
	since             time.Time
}

// maxSeenTexts is how many texts are remembered in one Life. What there is no room for is not taken for new.
const maxSeenTexts = 1 << 16

// AddIfNew reports whether the text comes for the first time, and remembers it.
func (o *SeenSet) AddIfNew(text string, now time.Time) bool {
	sum := sha256.Sum256([]byte(text))
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.contains(sum, now) || len(o.current) >= maxSeenTexts {
		return false
	}
	o.current[sum] = true
	return true
}

// IsNew says what First would, and remembers nothing.
func (o *SeenSet) IsNew(text string, now time.Time) bool {
	sum := sha256.Sum256([]byte(text))
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.contains(sum, now) && len(o.current) < maxSeenTexts
}

// contains reports whether a text has come before. The lock is held.
func (o *SeenSet) contains(sum [sha256.Size]byte, now time.Time) bool {
	if gone := now.Sub(o.since); gone >= o.TTL || o.current == nil {
		if o.previous = o.current; gone >= 2*o.TTL {
			o.previous = nil
		}
		o.current, o.since = map[[sha256.Size]byte]bool{}, now
	}
	return o.current[sum] || o.previous[sum]
}
