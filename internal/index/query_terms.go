package index

import (
	"math"
	"strings"
)

// A queryTerm is a term of a question: the documents that have it, its weight, and a bit for each part of the question
// that contains it.
type queryTerm struct {
	postings []posting
	weight   float64
	parts    uint8
}

// A wordLookup is the cached result of looking up a word of a question. It is valid until a document changes.
type wordLookup struct {
	place, stem  uint32 // positions of the word and its stem, if a document has them
	known, found bool
	similarFound bool // whether the similar words were searched
	similar      []similarStem
	splits       []wordSplit
	// in is the number of the question that the keys belong to. The keys are those of the similar words that were
	// counted.
	in   uint64
	keys []uint64
}

// A similarStem is a stem that counts for a word, with its weight. A wordSplit is two stems that form the word together.
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

// A parsedQuestion holds the words of a question and of each of its parts, without stop words. A question for a single
// thing, or for very many, has no parts.
type parsedQuestion struct {
	words   []string
	parts   [][]string
	request ParsedRequest
}

// parseQuestion splits a question into words and parts.
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

// wordGroups returns all words of each part, or those of the whole question if it has too many parts.
func (q parsedQuestion) wordGroups() (all [][]string) {
	if q.request.Parts > maxParts {
		return [][]string{q.request.ContentWords(WholeRequest, math.MaxInt)}
	}
	for part := range q.request.Parts {
		all = append(all, q.request.ContentWords(part, math.MaxInt))
	}
	return all
}

// The kinds of terms, as part of the keys of scoreState.by. The key of a pair consists of two positions, each less
// than 1<<31.
const (
	stemKey    = 1 << 63
	surfaceKey = 1<<63 | 1<<62
)

// addTerms adds the terms of words to the whole question (bit 0), or to the part with the given bit. The words of a
// part are also words of the whole question.
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

// cachedLookup looks up a word in the cache, which is valid until a document changes, and then in the index.
func (x *LexicalIndex) cachedLookup(s *scoreState, word string) *wordLookup {
	if w, ok := s.known[word]; ok {
		return w
	}
	w := x.lookupWord(word)
	s.known[strings.Clone(word)] = w // do not keep the memory of the question
	return w
}

// lookupWord looks up a word in the index.
func (x *LexicalIndex) lookupWord(word string) *wordLookup {
	v, w := &x.terms, &wordLookup{}
	if w.place, w.known = v.words.at[word]; w.known {
		w.stem, w.found = v.words.terms[w.place].stem, true
	} else {
		w.stem, w.found = v.stems.at[StemWord(word)]
	}
	return w
}

// addWord adds the stem of a word, and the exact word if a document has it.
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
	if len(word.list) == len(term.list) { // all documents with the stem have the word: one term suffices
		s.addTerm(stem, queryTerm{postings: term.list, weight: 1 + x.weights.surface})
		return
	}
	s.addTerm(stem, queryTerm{postings: term.list, weight: 1})
	s.addTerm(surface, queryTerm{postings: word.list, weight: x.weights.surface})
}

// addSimilar adds words that are similar to a word: two words that form it when written as one, and words of which one
// is a prefix of the other. It records the keys of the added terms, as do the functions below.
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

// addStem adds a similar stem with the given weight.
func (x *LexicalIndex) addStem(s *scoreState, w *wordLookup, stem uint32, weight float64) {
	key := stemKey | uint64(stem)
	w.keys = append(w.keys, key)
	s.addTerm(key, queryTerm{postings: x.terms.stems.terms[stem].list, weight: weight})
}

// findSimilar searches the vocabulary for words that are similar to a word.
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
		return // too many words have this prefix
	}
	for _, at := range longer {
		longer := &v.words.terms[at]
		w.similar = append(w.similar, similarStem{longer.stem, x.weights.longer * float64(len(word)) / float64(
			len(longer.text))})
	}
}

// addJoinedPair adds the compound of two words, such as "keyvault" for "key vault".
func (x *LexicalIndex) addJoinedPair(s *scoreState, w *wordLookup, first, second string) {
	v := &x.terms
	if m := emptyHash.addText(first).addText(second); !v.filter.has(m, wholeWordSalt) && !v.filter.has(m, prefixSalt) {
		return
	}
	word := first + second
	if _, known := v.words.at[word]; !known && len(v.wordsWithPrefix(word)) == 0 {
		return // then its stem is missing too
	}
	joined := x.cachedLookup(s, word)
	if !joined.found || s.stems[joined.stem] {
		return
	}
	s.stems[joined.stem] = true
	x.addStem(s, w, joined.stem, x.weights.joined)
}

// addTerm adds a term unless it was already added.
func (s *scoreState) addTerm(key uint64, w queryTerm) {
	if _, ok := s.by[key]; ok || len(w.postings) == 0 {
		return
	}
	s.by[key] = len(s.asked)
	s.asked = append(s.asked, w)
}

// addToPart marks a term of the whole question as a term of a part.
func (s *scoreState) addToPart(key uint64, bit uint8) {
	if i, ok := s.by[key]; ok {
		s.asked[i].parts |= bit
	}
}
