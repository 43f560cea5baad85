package ratelimit

import (
	"crypto/sha256"
	"sync"
	"time"
)

// A SeenSet remembers texts that are valid for a limited time, so that each can be used once. Its methods may be called
// from several goroutines.
type SeenSet struct {
	// TTL is how long a text is valid after it was made. The caller must refuse older ones.
	TTL time.Duration

	mu sync.Mutex
	// current holds the hashes of texts of the TTL that began at since, previous those of the TTL before.
	current, previous map[[sha256.Size]byte]bool
	since             time.Time
}

// maxSeenTexts bounds the texts of one TTL. When it is full, no text counts as new.
const maxSeenTexts = 1 << 16

// AddIfNew reports whether the text was never added before, and adds it.
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

// IsNew reports whether AddIfNew would return true, and adds nothing.
func (o *SeenSet) IsNew(text string, now time.Time) bool {
	sum := sha256.Sum256([]byte(text))
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.contains(sum, now) && len(o.current) < maxSeenTexts
}

// contains reports whether a text was added before. The caller holds mu.
func (o *SeenSet) contains(sum [sha256.Size]byte, now time.Time) bool {
	if gone := now.Sub(o.since); gone >= o.TTL || o.current == nil {
		if o.previous = o.current; gone >= 2*o.TTL {
			o.previous = nil
		}
		o.current, o.since = map[[sha256.Size]byte]bool{}, now
	}
	return o.current[sum] || o.previous[sum]
}
