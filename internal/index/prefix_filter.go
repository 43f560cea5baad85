package index

import "math/bits"

// A prefixFilter tests quickly whether a vocabulary may have a word with a given text or prefix. It is a Bloom filter
// with one hash: a bit for each word and each prefix, at a position derived from the bytes. Bits can collide, so a
// positive answer may be wrong.
type prefixFilter struct {
	bits []uint64
	// size is the binary logarithm of the number of bits. used counts the bits that were set, including those of
	// removed words.
	size, used int
}

// bitsPerEntry is the smallest number of bits for each entry.
const bitsPerEntry = 8

// A textHash is the FNV-1a hash (Fowler, Noll, Vo) of the bytes of a text. It starts with emptyHash.
type textHash uint64

const emptyHash textHash = 0xcbf29ce484222325

func (m textHash) addByte(b byte) textHash { return (m ^ textHash(b)) * 0x100000001b3 }

func (m textHash) addText(text string) textHash {
	for i := range len(text) {
		m = m.addByte(text[i])
	}
	return m
}

// Start values of a hash, one for each kind of entry: a word, a prefix of a word, or two neighbouring stems.
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

// isFullFor reports whether there is no room for words with that many bytes.
func (s *prefixFilter) isFullFor(bytes int) bool { return (s.used+bytes)*bitsPerEntry > len(s.bits)*64 }

// addWord adds a word and its prefixes. The caller has checked that there is room.
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

// reset empties the filter and makes room for twice that many bytes of words.
func (s *prefixFilter) reset(bytes int) {
	s.size = max(10, bits.Len(uint(2*bytes*bitsPerEntry-1)))
	s.used, s.bits = 0, make([]uint64, 1<<s.size/64)
}
