package index

import "github.com/drawbridge-mcp/drawbridge/index/words"

// A wanted term is one of a question: the documents that have it, what it counts, and in which parts of the question it
// stands, a bit for each.
type wanted struct {
	list   []posting
	weight float64
	parts  uint8
}

// An asking is a word of a question: its place and that of its stem, if some document has them, and what counts for it besides.
type asking struct {
	at, stem     uint32
	known, found bool
	like         []uint64
}

// A question is its words, without those that say little, and those of each of its parts.
type question struct {
	words []string
	parts [][]string
}

// read reads a question. One that asks for a single thing has no parts.
func (x *Lexical) read(text string) question {
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	q := question{words: x.stops.Keep(text, leastWords)}
	clauses := words.Clauses(text, x.stops, leastClause)
	if len(clauses) < 2 || len(clauses) > maxClauses {
		return q
	}
	for _, clause := range clauses {
		q.parts = append(q.parts, x.stops.Keep(clause, leastWords))
	}
	return q
}

// The sorts of terms, which are told apart in the keys of search.by. Those of pairs are two places, each less than 1<<31.
const (
	keyStem    = 1 << 63
	keySurface = 1<<63 | 1<<62
)

// want has the terms of words count: in the whole of a question, or, with a bit, in a part of it, whose words the whole has too.
func (x *Lexical) want(s *search, all []string, bit uint8) {
	s.places = s.places[:0]
	before := asking{}
	for _, word := range all {
		at, ok := s.words[word]
		if !ok {
			at = int32(len(s.asking))
			s.words[word] = at
			s.asking = append(s.asking, x.look(word))
		}
		s.places = append(s.places, at)
		w := s.asking[at]
		if w.found {
			s.stems[w.stem] = true
			x.wantWord(s, w.at, w.stem, w.known, bit)
		}
		if w.found && before.found {
			beside := pair(before.stem, w.stem)
			s.want(beside, x.terms.pairs[beside], x.weights.pair, bit)
		}
		before = w
	}
	for i, word := range all {
		w := &s.asking[s.places[i]]
		if bit == 0 && w.like == nil {
			w.like = []uint64{}
			if i > 0 {
				w.like = x.wantJoined(s, w.like, all[i-1]+word)
			}
			w.like = x.wantApart(s, w.like, word)
			w.like = x.wantLike(s, w.like, word)
		}
		for _, key := range w.like {
			s.want(key, nil, 0, bit)
		}
	}
}

// look finds a word.
func (x *Lexical) look(word string) (w asking) {
	v := &x.terms
	if w.at, w.known = v.words.at[word]; w.known {
		w.stem, w.found = v.words.terms[w.at].stem, true
	} else {
		w.stem, w.found = v.stems.at[words.Stem(word)]
	}
	return w
}

// wantWord has a stem count, and the word that it is of where some document has it as it stands.
func (x *Lexical) wantWord(s *search, at, stem uint32, known bool, bit uint8) {
	list := x.terms.stems.terms[stem].list
	if !known {
		s.want(keyStem|uint64(stem), list, 1, bit)
		return
	}
	as := x.terms.words.terms[at].list
	if len(as) == len(list) { // all documents with the stem have the word: it is one term
		s.want(keyStem|uint64(stem), list, 1+x.weights.surface, bit)
		return
	}
	s.want(keyStem|uint64(stem), list, 1, bit)
	s.want(keySurface|uint64(at), as, x.weights.surface, bit)
}

// wantLike has words count that a word begins with, or that begin with it. Like those below it appends the keys of what counts.
func (x *Lexical) wantLike(s *search, keys []uint64, word string) []uint64 {
	v := &x.terms
	want := func(at uint32, weight float64) {
		if stem := v.words.terms[at].stem; !s.stems[stem] {
			keys = append(keys, keyStem|uint64(stem))
			s.want(keyStem|uint64(stem), v.stems.terms[stem].list, weight, 0)
		}
	}
	for n := leastLike; n < len(word); n++ {
		if at, ok := v.words.at[word[:n]]; ok {
			want(at, x.weights.shorter*float64(n)/float64(len(word)))
		}
	}
	longer := v.longer(word)
	if len(longer) > mostLike {
		return keys // what so many words begin with says little
	}
	for _, at := range longer {
		want(at, x.weights.longer*float64(len(word))/float64(len(v.words.terms[at].text)))
	}
	return keys
}

// wantJoined has the word count that two make where nothing stands between them, as "key vault" does in "keyvault".
func (x *Lexical) wantJoined(s *search, keys []uint64, word string) []uint64 {
	v := &x.terms
	if _, known := v.words.at[word]; !known && len(v.longer(word)) == 0 {
		return keys // nor will its stem be there
	}
	w := x.look(word)
	if !w.found || s.stems[w.stem] {
		return keys
	}
	s.stems[w.stem] = true
	s.want(keyStem|uint64(w.stem), v.stems.terms[w.stem].list, x.weights.joined, 0)
	return append(keys, keyStem|uint64(w.stem))
}

// wantApart has the two words count that one is made of, where they stand beside each other.
func (x *Lexical) wantApart(s *search, keys []uint64, word string) []uint64 {
	v := &x.terms
	for cut := leastLike; cut <= len(word)-leastLike; cut++ {
		first, ok := v.words.at[word[:cut]]
		if !ok {
			continue
		}
		second, ok := v.words.at[word[cut:]]
		if !ok {
			continue
		}
		one, two := v.words.terms[first].stem, v.words.terms[second].stem
		beside := pair(one, two)
		if list := v.pairs[beside]; len(list) > 0 {
			s.stems[one], s.stems[two] = true, true
			s.want(beside, list, x.weights.joined, 0)
			keys = append(keys, beside)
		}
	}
	return keys
}

// want has one term count. A part counts nothing that the whole does not.
func (s *search) want(key uint64, list []posting, weight float64, bit uint8) {
	i, ok := s.by[key]
	if !ok && (bit != 0 || len(list) == 0) {
		return
	}
	if !ok {
		i = len(s.asked)
		s.by[key] = i
		s.asked = append(s.asked, wanted{list: list, weight: weight})
	}
	s.asked[i].parts |= bit
}
