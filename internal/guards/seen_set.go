package guards

import (
	"crypto/sha256"
	"sync"
	"time"
)

// A seenSet stores texts that have been used, so that each text is accepted only once. Each text is valid for a limited
// time. The methods may be called from several goroutines.
type seenSet struct {
	// ttl is how long a text is valid after it was made. The caller must refuse older texts.
	ttl time.Duration

	mu sync.Mutex
	// current contains the hashes of the texts that were added after the time in the field since. previous contains the
	// hashes of the texts that were added in the ttl before that time.
	current, previous map[[sha256.Size]byte]bool
	since             time.Time
}

// maxSeenTexts bounds the texts that are stored per ttl. When the bound is reached, no text counts as new.
const maxSeenTexts = 1 << 16

// addIfNew adds a text if the set does not contain it and is not full. It reports whether the text was added.
func (o *seenSet) addIfNew(text string, now time.Time) bool {
	sum := sha256.Sum256([]byte(text))
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.contains(sum, now) || len(o.current) >= maxSeenTexts {
		return false
	}
	o.current[sum] = true
	return true
}

// isNew reports whether addIfNew would add the text. It adds nothing.
func (o *seenSet) isNew(text string, now time.Time) bool {
	sum := sha256.Sum256([]byte(text))
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.contains(sum, now) && len(o.current) < maxSeenTexts
}

// contains deletes the hashes of texts that are not valid any more, and then reports whether the set contains the hash
// sum. mu must be held.
func (o *seenSet) contains(sum [sha256.Size]byte, now time.Time) bool {
	if gone := now.Sub(o.since); gone >= o.ttl || o.current == nil {
		if o.previous = o.current; gone >= 2*o.ttl {
			o.previous = nil
		}
		o.current, o.since = map[[sha256.Size]byte]bool{}, now
	}
	return o.current[sum] || o.previous[sum]
}
