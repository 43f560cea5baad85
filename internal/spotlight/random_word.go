package spotlight

import (
	"crypto/rand"
	"sync"
)

const (
	// wordLength is the number of letters of a word, with five random bits each: 130.
	wordLength = 26
	// wordBatch is the number of words made at once: reading random bytes takes longer than the rest of a marker.
	wordBatch = 32
)

// A wordSource makes unpredictable words for markers. The zero value is ready, and it is safe for concurrent use.
type wordSource struct {
	mu   sync.Mutex
	room [wordBatch * wordLength]byte
	left []byte
}

// next returns a fresh word.
func (w *wordSource) next() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	var word [wordLength]byte
	w.mu.Lock()
	if len(w.left) == 0 {
		_, _ = rand.Read(w.room[:]) // it never fails
		w.left = w.room[:]
	}
	w.left = w.left[copy(word[:], w.left):]
	w.mu.Unlock()
	for i, b := range word {
		word[i] = letters[b%byte(len(letters))]
	}
	return string(word[:])
}
