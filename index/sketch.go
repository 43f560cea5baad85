package index

import "math/bits"

// A sketch of a vocabulary says of most texts, without a look at it, that none of its words is that text or begins with it. It
// has a bit for each word and one for each beginning of a word, at a place that their bytes make; two may share a place, so that
// yes means perhaps (a Bloom filter of one hash).
type sketch struct {
	bits []uint64
	// size is how many bits there are, as a power of two, used how many were asked for, also by words that are gone.
	size, used int
}

// sparse is how many bits there are for each that was asked for, at least.
const sparse = 8

// A mark is made of the bytes of a text, one after the other, from noBytes (FNV-1a: Fowler, Noll, Vo).
type mark uint64

const noBytes mark = 0xcbf29ce484222325

func (m mark) then(b byte) mark { return (m ^ mark(b)) * 0x100000001b3 }

func (m mark) text(text string) mark {
	for i := range len(text) {
		m = m.then(text[i])
	}
	return m
}

// The bits of a mark: whether it is that of a word, what one begins with, or two stems beside each other.
const (
	whole  mark = 0x9e3779b97f4a7c15
	begun  mark = 0xc2b2ae3d27d4eb4f
	paired mark = 0xd6e8feb86659fd93
)

func (s *sketch) has(m, sort mark) bool {
	if s.size == 0 {
		return false
	}
	at := uint64(m*sort) >> (64 - s.size)
	return s.bits[at/64]>>(at%64)&1 != 0
}

func (s *sketch) set(m, sort mark) {
	at := uint64(m*sort) >> (64 - s.size)
	s.bits[at/64] |= 1 << (at % 64)
	s.used++
}

// full says whether so many words' bytes more would be too many.
func (s *sketch) full(bytes int) bool { return (s.used+bytes)*sparse > len(s.bits)*64 }

// draw has a word, for which there is room.
func (s *sketch) draw(word string) {
	m := noBytes
	for i := range len(word) {
		if i >= leastLike {
			s.set(m, begun)
		}
		m = m.then(word[i])
	}
	s.set(m, whole)
}

// empty makes a sketch of nothing, with room for twice so many bytes.
func (s *sketch) empty(bytes int) {
	s.size = max(10, bits.Len(uint(2*bytes*sparse-1)))
	s.used, s.bits = 0, make([]uint64, 1<<s.size/64)
}
