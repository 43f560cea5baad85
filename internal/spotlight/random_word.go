package spotlight

import (
	"crypto/rand"
	"sync"
)

const (
	// wordLength is how many letters a fence's word has, each of five random bits: 130.
	wordLength = 26
	// wordBatch are made at once: to ask the system takes longer than all the rest of a fence.
	wordBatch = 32
)

// wordSource are what fences are told by, which nobody can know before. The zero value works, for several goroutines.
type wordSource struct {
	mu   sync.Mutex
	room [wordBatch * wordLength]byte
	left []byte
}

// next gives a word that was never given before.
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
