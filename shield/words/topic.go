package words

import "github.com/drawbridge-mcp/drawbridge/shield/scale"

// A Topic is what a definition or an answer is about: how often each of its words stands in it. An honest sentence has words of
// what stands around it; one that was put there to give orders often has none, and counts at less weight.
type Topic map[uint32]int

// Topic gives what the texts are about.
func (in *Inspector) Topic(texts ...string) Topic {
	t := Topic{}
	for _, text := range texts {
		room := in.reader.read(text[:min(len(text), MostText)])
		for i := range room.all {
			if h, ok := in.scale.topical(&room.all[i]); ok {
				t[h]++
			}
		}
		in.reader.free(room)
	}
	return t
}

// strange says whether no word of a sentence stands in what is around it. Own says that the sentence is a part of that.
func (s *Scale) strange(sentence []word, t Topic, own bool) bool {
	mine := map[uint32]int{}
	for i := range sentence {
		if h, ok := s.topical(&sentence[i]); ok {
			mine[h]++
		}
	}
	for h, n := range mine {
		if !own {
			n = 0
		}
		if t[h] > n {
			return false
		}
	}
	return true
}

// fewestLetters is how many bytes a word has that says what a text is about.
const fewestLetters = 4

// topical gives the hash of a word's beginning, without the ends of its forms, and whether it says what a text is about: small
// words do not, nor do those that all definitions have.
func (s *Scale) topical(w *word) (uint32, bool) {
	stem := w.folded
	if len(stem) < fewestLetters || w.has == 0 && stem[0] >= '0' && stem[0] <= '9' {
		return 0, false
	}
	if k := s.kind(w) &^ inflected; k > 0 && k <= s.lastPlain || s.everywhere[k] {
		return 0, false
	}
	for _, end := range [...]string{"ing", "ed", "es", "s", "e"} {
		if n := len(stem) - len(end); n >= fewestLetters-1 && stem[n:] == end {
			stem = stem[:n]
			break
		}
	}
	return scale.Hash(stem[:min(len(stem), 7)]), true
}
