package ratelimit

import (
	"crypto/sha256"
	"sync"
	"time"
)

// A SeenSet stores texts that have been used, so that each text is accepted only once. Each text is valid for a limited
// time. The methods may be called from several goroutines.
type SeenSet struct {
	// TTL is how long a text is valid after it was made. The caller must refuse older texts.
	TTL time.Duration

	mu sync.Mutex
	// current contains the hashes of the texts that were added after the time in the field since. previous contains the
	// hashes of the texts that were added in the TTL before that time.
	current, previous map[[sha256.Size]byte]bool
	since             time.Time
}

// maxSeenTexts bounds the texts that are stored per TTL. When the bound is reached, no text counts as new.
const maxSeenTexts = 1 << 16

// AddIfNew adds a text if the set does not contain it and is not full. It reports whether the text was added.
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

// IsNew reports whether AddIfNew would add the text. It adds nothing.
func (o *SeenSet) IsNew(text string, now time.Time) bool {
	sum := sha256.Sum256([]byte(text))
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.contains(sum, now) && len(o.current) < maxSeenTexts
}

// contains deletes the hashes of texts that are not valid any more, and then reports whether the set contains the hash
// sum. mu must be held.
func (o *SeenSet) contains(sum [sha256.Size]byte, now time.Time) bool {
	if gone := now.Sub(o.since); gone >= o.TTL || o.current == nil {
		if o.previous = o.current; gone >= 2*o.TTL {
			o.previous = nil
		}
		o.current, o.since = map[[sha256.Size]byte]bool{}, now
	}
	return o.current[sum] || o.previous[sum]
}
