package index

import (
	"math"
	"strings"
)

// A queryTerm term is one of a question: the documents that have it, what it counts, and in which parts of the
// question it stands, a bit for each.
type queryTerm struct {
	postings []posting
	weight   float64
	parts    uint8
}

// A wordLookup is a word of questions as the documents have it. It holds until a document changes.
type wordLookup struct {
	place, stem  uint32 // the places of the word and of its stem, if some document has them
	known, found bool
	similarFound bool // that like and apart are there
	similar      []similarStem
	splits       []wordSplit
	// in is the number of the question that keys, what counted for the word besides, are of.
	in   uint64
	keys []uint64
}

// A likeness is a stem that a word counts for in part, a parting two stems that make the word.
type (
	similarStem struct {
		stem   uint32
		weight float64
	}
	wordSplit struct {
		one, two uint32
		list     []posting
	}
)

// A parsedQuestion is its words, without those that say little, and those of each of its parts. One that asks for a
// single thing, or for very many, has no parts.
type parsedQuestion struct {
	words   []string
	parts   [][]string
	request ParsedRequest
}

// parseQuestion reads a question.
func (x *LexicalIndex) parseQuestion(text string) parsedQuestion {
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	r := x.stops.Parse(text, minPartWords)
	q := parsedQuestion{words: r.ContentWords(WholeRequest, minContentWords), request: r}
	if 1 < r.Parts && r.Parts <= maxParts {
		for part := range r.Parts {
			q.parts = append(q.parts, r.ContentWords(part, minContentWords))
		}
	}
	return q
}

// wordGroups returns all words of each part, or of the whole if it has very many parts.
func (q parsedQuestion) wordGroups() (all [][]string) {
	if q.request.Parts > maxParts {
		return [][]string{q.request.ContentWords(WholeRequest, math.MaxInt)}
	}
	for part := range q.request.Parts {
		all = append(all, q.request.ContentWords(part, math.MaxInt))
	}
	return all
}

// The sorts of terms, which are told apart in the keys of scoreState.by. Those of pairs are two places, each less than
// 1<<31.
const (
	stemKey    = 1 << 63
	surfaceKey = 1<<63 | 1<<62
)

// addTerms has the terms of words count: in the whole of a question, or, with a bit, in a part of it, whose words the
// whole has too.
func (x *LexicalIndex) addTerms(s *scoreState, all []string, bit uint8) {
	s.words = s.words[:0]
	var before *wordLookup
	for _, word := range all {
		w := x.cachedLookup(s, word)
		s.words = append(s.words, w)
		if w.found {
			s.stems[w.stem] = true
			x.addWord(s, w, bit)
		}
		if w.found && before != nil && before.found {
			beside := pairKey(before.stem, w.stem)
			if bit != 0 {
				s.addToPart(beside, bit)
			} else {
				s.addTerm(beside, queryTerm{postings: x.terms.documentsWithPair(before.stem, w.stem),
					weight: x.weights.pair})
			}
		}
		before = w
	}
	for i, w := range s.words {
		if w.in != s.number {
			w.in, w.keys = s.number, w.keys[:0]
			if bit == 0 {
				if i > 0 {
					x.addJoinedPair(s, w, all[i-1], all[i])
				}
				x.addSimilar(s, w, all[i])
			}
		}
		if bit != 0 {
			for _, key := range w.keys {
				s.addToPart(key, bit)
			}
		}
	}
}

// cachedLookup finds a word, among those that were asked for since a document changed if it is there.
func (x *LexicalIndex) cachedLookup(s *scoreState, word string) *wordLookup {
	if w, ok := s.known[word]; ok {
		return w
	}
	w := x.lookupWord(word)
	s.known[strings.Clone(word)] = w // of the question nothing is kept
	return w
}

// lookupWord finds a word.
func (x *LexicalIndex) lookupWord(word string) *wordLookup {
	v, w := &x.terms, &wordLookup{}
	if w.place, w.known = v.words.at[word]; w.known {
		w.stem, w.found = v.words.terms[w.place].stem, true
	} else {
		w.stem, w.found = v.stems.at[StemWord(word)]
	}
	return w
}

// addWord has a stem count, and the word that it is of where some document has it as it stands.
func (x *LexicalIndex) addWord(s *scoreState, w *wordLookup, bit uint8) {
	stem, surface := stemKey|uint64(w.stem), surfaceKey|uint64(w.place)
	if bit != 0 {
		s.addToPart(stem, bit)
		if w.known {
			s.addToPart(surface, bit)
		}
		return
	}
	term := &x.terms.stems.terms[w.stem]
	if !w.known {
		s.addTerm(stem, queryTerm{postings: term.list, weight: 1})
		return
	}
	word := &x.terms.words.terms[w.place]
	if len(word.list) == len(term.list) { // all documents with the stem have the word: it is one term
		s.addTerm(stem, queryTerm{postings: term.list, weight: 1 + x.weights.surface})
		return
	}
	s.addTerm(stem, queryTerm{postings: term.list, weight: 1})
	s.addTerm(surface, queryTerm{postings: word.list, weight: x.weights.surface})
}

// addSimilar counts the two words that form a word when they stand side by side, and words of which one is a prefix of
// the other. Like the functions below, it records the keys of the words that count.
func (x *LexicalIndex) addSimilar(s *scoreState, w *wordLookup, word string) {
	if !w.similarFound {
		x.findSimilar(w, word)
	}
	for _, p := range w.splits {
		beside := pairKey(p.one, p.two)
		s.stems[p.one], s.stems[p.two] = true, true
		s.addTerm(beside, queryTerm{postings: p.list, weight: x.weights.joined})
		w.keys = append(w.keys, beside)
	}
	for _, l := range w.similar {
		if !s.stems[l.stem] {
			x.addStem(s, w, l.stem, l.weight)
		}
	}
}

// addStem has a stem count besides the word that was asked for.
func (x *LexicalIndex) addStem(s *scoreState, w *wordLookup, stem uint32, weight float64) {
	key := stemKey | uint64(stem)
	w.keys = append(w.keys, key)
	s.addTerm(key, queryTerm{postings: x.terms.stems.terms[stem].list, weight: weight})
}

// findSimilar finds what counts for a word besides itself.
func (x *LexicalIndex) findSimilar(w *wordLookup, word string) {
	v := &x.terms
	w.similarFound = true
	m := emptyHash.addText(word[:min(minPrefixBytes-1, len(word))])
	for n := minPrefixBytes; n < len(word); n++ {
		if m = m.addByte(word[n-1]); !v.filter.has(m, wholeWordSalt) {
			continue
		}
		first, ok := v.words.at[word[:n]]
		if !ok {
			continue
		}
		one := v.words.terms[first].stem
		w.similar = append(w.similar, similarStem{one, x.weights.shorter * float64(n) / float64(len(word))})
		if n > len(word)-minPrefixBytes {
			continue
		}
		if second, ok := v.words.at[word[n:]]; ok {
			two := v.words.terms[second].stem
			if list := v.documentsWithPair(one, two); len(list) > 0 {
				w.splits = append(w.splits, wordSplit{one, two, list})
			}
		}
	}
	if !v.filter.has(emptyHash.addText(word), prefixSalt) {
		return
	}
	longer := v.wordsWithPrefix(word)
	if len(longer) > maxPrefixMatches {
		return // what so many words begin with says little
	}
	for _, at := range longer {
		longer := &v.words.terms[at]
		w.similar = append(w.similar, similarStem{longer.stem, x.weights.longer * float64(len(word)) / float64(
			len(longer.text))})
	}
}

// addJoinedPair has the word count that two make where nothing stands between them, as "key vault" does in "keyvault".
func (x *LexicalIndex) addJoinedPair(s *scoreState, w *wordLookup, first, second string) {
	v := &x.terms
	if m := emptyHash.addText(first).addText(second); !v.filter.has(m, wholeWordSalt) && !v.filter.has(m, prefixSalt) {
		return
	}
	word := first + second
	if _, known := v.words.at[word]; !known && len(v.wordsWithPrefix(word)) == 0 {
		return // nor will its stem be there
	}
	joined := x.cachedLookup(s, word)
	if !joined.found || s.stems[joined.stem] {
		return
	}
	s.stems[joined.stem] = true
	x.addStem(s, w, joined.stem, x.weights.joined)
}

// addTerm has one term count, unless it does already.
func (s *scoreState) addTerm(key uint64, w queryTerm) {
	if _, ok := s.by[key]; ok || len(w.postings) == 0 {
		return
	}
	s.by[key] = len(s.asked)
	s.asked = append(s.asked, w)
}

// addToPart has a term that counts in the whole of a question count in a part of it.
func (s *scoreState) addToPart(key uint64, bit uint8) {
	if i, ok := s.by[key]; ok {
		s.asked[i].parts |= bit
	}
}
