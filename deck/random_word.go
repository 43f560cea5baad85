package deck

import (
	"crypto/rand"
	"sync"
)

const (
	// wordLength is the number of letters of a word. Each letter has five random bits, so a word has 130.
	wordLength = 26
	// wordBatch is the number of words for which random bytes are read at once. Reading random bytes takes longer than
	// the rest of the work for a marker.
	wordBatch = 32
)

// A wordSource generates unpredictable words for markers. The zero value is ready to use. It is safe for concurrent
// use.
type wordSource struct {
	mu   sync.Mutex
	room [wordBatch * wordLength]byte
	left []byte
}

// next returns a word that was not returned before.
func (w *wordSource) next() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	var word [wordLength]byte
	w.mu.Lock()
	if len(w.left) == 0 {
		_, _ = rand.Read(w.room[:]) // rand.Read never fails
		w.left = w.room[:]
	}
	w.left = w.left[copy(word[:], w.left):]
	w.mu.Unlock()
	for i, b := range word {
		word[i] = letters[b%byte(len(letters))]
	}
	return string(word[:])
}
