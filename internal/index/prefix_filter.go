package index

import "math/bits"

// A prefixFilter of a vocabulary says of most texts, without a look at it, that none of its words is that text or
// begins with it. It has a bit for each word and one for each beginning of a word, at a place that their bytes make;
// two may share a place, so that yes means perhaps (a Bloom filter of one hash).
type prefixFilter struct {
	bits []uint64
	// size is how many bits there are, as a power of two, used how many were asked for, also by words that are gone.
	size, used int
}

// bitsPerEntry is how many bits there are for each that was asked for, at least.
const bitsPerEntry = 8

// A textHash is made of the bytes of a text, one after the other, from emptyHash (FNV-1a: Fowler, Noll, Vo).
type textHash uint64

const emptyHash textHash = 0xcbf29ce484222325

func (m textHash) addByte(b byte) textHash { return (m ^ textHash(b)) * 0x100000001b3 }

func (m textHash) addText(text string) textHash {
	for i := range len(text) {
		m = m.addByte(text[i])
	}
	return m
}

// The bits of a mark: whether it is that of a word, what one begins with, or two stems beside each other.
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

// isFullFor reports whether so many words' bytes more would be too many.
func (s *prefixFilter) isFullFor(bytes int) bool { return (s.used+bytes)*bitsPerEntry > len(s.bits)*64 }

// addWord has a word, for which there is room.
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

// reset makes a sketch of nothing, with room for twice so many bytes.
func (s *prefixFilter) reset(bytes int) {
	s.size = max(10, bits.Len(uint(2*bytes*bitsPerEntry-1)))
	s.used, s.bits = 0, make([]uint64, 1<<s.size/64)
}
