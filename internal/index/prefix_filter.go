package index

import "math/bits"

// A prefixFilter tests quickly whether a vocabulary may contain a given word, prefix or pair of stems. It is a Bloom
// filter with one hash function: each entry sets one bit. Two entries may set the same bit. So if the filter reports
// an entry, the vocabulary may not contain it; if it does not report an entry, the vocabulary does not contain it.
type prefixFilter struct {
	bits []uint64
	// size is the binary logarithm of the number of bits. used is the number of added entries; it includes entries of
	// words that were removed from the vocabulary.
	size, used int
}

// bitsPerEntry is the minimum number of bits for each entry.
const bitsPerEntry = 8

// A textHash is the FNV-1a hash (Fowler, Noll, Vo) of the bytes of a text. The hash of an empty text is emptyHash.
type textHash uint64

const emptyHash textHash = 0xcbf29ce484222325

func (m textHash) addByte(b byte) textHash { return (m ^ textHash(b)) * 0x100000001b3 }

func (m textHash) addText(text string) textHash {
	for i := range len(text) {
		m = m.addByte(text[i])
	}
	return m
}

// The kinds of entries: a word, a prefix of a word, and a pair of neighbouring stems. The hash of an entry is
// multiplied by the constant of its kind, so that equal texts of different kinds set different bits.
const (
	wholeWordSalt textHash = 0x9e3779b97f4a7c15
	prefixSalt    textHash = 0xc2b2ae3d27d4eb4f
	pairSalt      textHash = 0xd6e8feb86659fd93
)

func (s *prefixFilter) has(m, sort textHash) bool {
	if s.size == 0 {
		return false
	}
	at := uint64(m*sort) >> (64 - s.size)
	return s.bits[at/64]>>(at%64)&1 != 0
}

func (s *prefixFilter) set(m, sort textHash) {
	at := uint64(m*sort) >> (64 - s.size)
	s.bits[at/64] |= 1 << (at % 64)
	s.used++
}

// isFullFor reports whether the filter is too small for additional words. bytes is the total number of bytes of these
// words.
func (s *prefixFilter) isFullFor(bytes int) bool { return (s.used+bytes)*bitsPerEntry > len(s.bits)*64 }

// addWord adds a word and its prefixes. The caller must check isFullFor first.
func (s *prefixFilter) addWord(word string) {
	m := emptyHash
	for i := range len(word) {
		if i >= minPrefixBytes {
			s.set(m, prefixSalt)
		}
		m = m.addByte(word[i])
	}
	s.set(m, wholeWordSalt)
}

// reset empties the filter and sets its size. bytes is the total number of bytes of the words to be added; the filter
// gets room for twice as many.
func (s *prefixFilter) reset(bytes int) {
	s.size = max(10, bits.Len(uint(2*bytes*bitsPerEntry-1)))
	s.used, s.bits = 0, make([]uint64, 1<<s.size/64)
}
