package index

import (
	"math"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/index/words"
)

// A wanted term is one of a question: the documents that have it, what it counts, and in which parts of the question it
// stands, a bit for each.
type wanted struct {
	list   []posting
	weight float64
	parts  uint8
}

// An asking is a word of questions as the documents have it. It holds until a document changes.
type asking struct {
	at, stem     uint32 // the places of the word and of its stem, if some document has them
	known, found bool
	liked        bool // that like and apart are there
	like         []likeness
	apart        []parting
	// in is the number of the question that keys, what counted for the word besides, are of.
	in   uint64
	keys []uint64
}

// A likeness is a stem that a word counts for in part, a parting two stems that make the word.
type (
	likeness struct {
		stem   uint32
		weight float64
	}
	parting struct {
		one, two uint32
		list     []posting
	}
)

// A question is its words, without those that say little, and those of each of its parts. One that asks for a single thing, or
// for very many, has no parts.
type question struct {
	words []string
	parts [][]string
	read  words.Request
}

// read reads a question.
func (x *Lexical) read(text string) question {
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	r := x.stops.Read(text, leastClause)
	q := question{words: r.Keep(words.Whole, leastWords), read: r}
	if 1 < r.Parts && r.Parts <= maxClauses {
		for part := range r.Parts {
			q.parts = append(q.parts, r.Keep(part, leastWords))
		}
	}
	return q
}

// meant gives all words of each part, or of the whole if it has very many parts.
func (q question) meant() (all [][]string) {
	if q.read.Parts > maxClauses {
		return [][]string{q.read.Keep(words.Whole, math.MaxInt)}
	}
	for part := range q.read.Parts {
		all = append(all, q.read.Keep(part, math.MaxInt))
	}
	return all
}

// The sorts of terms, which are told apart in the keys of search.by. Those of pairs are two places, each less than 1<<31.
const (
	keyStem    = 1 << 63
	keySurface = 1<<63 | 1<<62
)

// want has the terms of words count: in the whole of a question, or, with a bit, in a part of it, whose words the whole has too.
func (x *Lexical) want(s *search, all []string, bit uint8) {
	s.words = s.words[:0]
	var before *asking
	for _, word := range all {
		w := x.look(s, word)
		s.words = append(s.words, w)
		if w.found {
			s.stems[w.stem] = true
			x.wantWord(s, w, bit)
		}
		if w.found && before != nil && before.found {
			beside := pair(before.stem, w.stem)
			if bit != 0 {
				s.alsoIn(beside, bit)
			} else {
				s.want(beside, wanted{list: x.terms.beside(before.stem, w.stem), weight: x.weights.pair})
			}
		}
		before = w
	}
	for i, w := range s.words {
		if w.in != s.number {
			w.in, w.keys = s.number, w.keys[:0]
			if bit == 0 {
				if i > 0 {
					x.wantJoined(s, w, all[i-1], all[i])
				}
				x.wantLike(s, w, all[i])
			}
		}
		if bit != 0 {
			for _, key := range w.keys {
				s.alsoIn(key, bit)
			}
		}
	}
}

// look finds a word, among those that were asked for since a document changed if it is there.
func (x *Lexical) look(s *search, word string) *asking {
	if w, ok := s.known[word]; ok {
		return w
	}
	w := x.find(word)
	s.known[strings.Clone(word)] = w // of the question nothing is kept
	return w
}

// find finds a word.
func (x *Lexical) find(word string) *asking {
	v, w := &x.terms, &asking{}
	if w.at, w.known = v.words.at[word]; w.known {
		w.stem, w.found = v.words.terms[w.at].stem, true
	} else {
		w.stem, w.found = v.stems.at[words.Stem(word)]
	}
	return w
}

// wantWord has a stem count, and the word that it is of where some document has it as it stands.
func (x *Lexical) wantWord(s *search, w *asking, bit uint8) {
	stem, surface := keyStem|uint64(w.stem), keySurface|uint64(w.at)
	if bit != 0 {
		s.alsoIn(stem, bit)
		if w.known {
			s.alsoIn(surface, bit)
		}
		return
	}
	term := &x.terms.stems.terms[w.stem]
	if !w.known {
		s.want(stem, wanted{list: term.list, weight: 1})
		return
	}
	word := &x.terms.words.terms[w.at]
	if len(word.list) == len(term.list) { // all documents with the stem have the word: it is one term
		s.want(stem, wanted{list: term.list, weight: 1 + x.weights.surface})
		return
	}
	s.want(stem, wanted{list: term.list, weight: 1})
	s.want(surface, wanted{list: word.list, weight: x.weights.surface})
}

// wantLike has the two words count that one is made of, where they stand beside each other, and the words that one begins
// with, or that begin with it. Like what follows it notes the keys of what counts.
func (x *Lexical) wantLike(s *search, w *asking, word string) {
	if !w.liked {
		x.liken(w, word)
	}
	for _, p := range w.apart {
		beside := pair(p.one, p.two)
		s.stems[p.one], s.stems[p.two] = true, true
		s.want(beside, wanted{list: p.list, weight: x.weights.joined})
		w.keys = append(w.keys, beside)
	}
	for _, l := range w.like {
		if !s.stems[l.stem] {
			x.wantStem(s, w, l.stem, l.weight)
		}
	}
}

// wantStem has a stem count besides the word that was asked for.
func (x *Lexical) wantStem(s *search, w *asking, stem uint32, weight float64) {
	key := keyStem | uint64(stem)
	w.keys = append(w.keys, key)
	s.want(key, wanted{list: x.terms.stems.terms[stem].list, weight: weight})
}

// liken finds what counts for a word besides itself.
func (x *Lexical) liken(w *asking, word string) {
	v := &x.terms
	w.liked = true
	m := noBytes.text(word[:min(leastLike-1, len(word))])
	for n := leastLike; n < len(word); n++ {
		if m = m.then(word[n-1]); !v.drawn.has(m, whole) {
			continue
		}
		first, ok := v.words.at[word[:n]]
		if !ok {
			continue
		}
		one := v.words.terms[first].stem
		w.like = append(w.like, likeness{one, x.weights.shorter * float64(n) / float64(len(word))})
		if n > len(word)-leastLike {
			continue
		}
		if second, ok := v.words.at[word[n:]]; ok {
			two := v.words.terms[second].stem
			if list := v.beside(one, two); len(list) > 0 {
				w.apart = append(w.apart, parting{one, two, list})
			}
		}
	}
	if !v.drawn.has(noBytes.text(word), begun) {
		return
	}
	longer := v.longer(word)
	if len(longer) > mostLike {
		return // what so many words begin with says little
	}
	for _, at := range longer {
		longer := &v.words.terms[at]
		w.like = append(w.like, likeness{longer.stem, x.weights.longer * float64(len(word)) / float64(len(longer.text))})
	}
}

// wantJoined has the word count that two make where nothing stands between them, as "key vault" does in "keyvault".
func (x *Lexical) wantJoined(s *search, w *asking, first, second string) {
	v := &x.terms
	if m := noBytes.text(first).text(second); !v.drawn.has(m, whole) && !v.drawn.has(m, begun) {
		return
	}
	word := first + second
	if _, known := v.words.at[word]; !known && len(v.longer(word)) == 0 {
		return // nor will its stem be there
	}
	joined := x.look(s, word)
	if !joined.found || s.stems[joined.stem] {
		return
	}
	s.stems[joined.stem] = true
	x.wantStem(s, w, joined.stem, x.weights.joined)
}

// want has one term count, unless it does already.
func (s *search) want(key uint64, w wanted) {
	if _, ok := s.by[key]; ok || len(w.list) == 0 {
		return
	}
	s.by[key] = len(s.asked)
	s.asked = append(s.asked, w)
}

// alsoIn has a term that counts in the whole of a question count in a part of it.
func (s *search) alsoIn(key uint64, bit uint8) {
	if i, ok := s.by[key]; ok {
		s.asked[i].parts |= bit
	}
}
