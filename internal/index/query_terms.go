package index

import (
	"math"
	"strings"
)

// A queryTerm is a term of a question. postings are the documents that contain the term. Bit i of parts is set if
// part i of the question contains the term.
type queryTerm struct {
	postings []posting
	weight   float64
	parts    uint8
}

// A wordLookup is the cached result of looking up a word in the index. It is valid until a document changes.
type wordLookup struct {
	place, stem  uint32 // positions of the word (valid if known is set) and of its stem (valid if found is set)
	known, found bool
	similarFound bool // whether similar and splits are set
	similar      []similarStem
	splits       []wordSplit
	// keys are the keys of the terms for similar words that were added to the question with the number in.
	in   uint64
	keys []uint64
}

// A similarStem is a stem that is similar to a word, with the weight of a match. A wordSplit is a pair of stems that
// together form a word, with the documents in which the two stems are neighbours.
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

// A parsedQuestion contains the words of a question and the words of each of its parts, without stop words. parts is
// empty if the question has only one part, or more than maxParts parts.
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

// wordGroups returns the words of each part, including stop words. If the question has too many parts, it returns
// one group with all words.
func (q parsedQuestion) wordGroups() (all [][]string) {
	if q.request.Parts > maxParts {
		return [][]string{q.request.ContentWords(WholeRequest, math.MaxInt)}
	}
	for part := range q.request.Parts {
		all = append(all, q.request.ContentWords(part, math.MaxInt))
	}
	return all
}

// The kinds of terms, as the highest bits of the keys of scoreState.by. stemKey marks a stem, and surfaceKey an exact
// word. The key of a pair has neither bit: it consists of two positions, each less than 1<<31.
const (
	stemKey    = 1 << 63
	surfaceKey = 1<<63 | 1<<62
)

// addTerms adds the terms of the whole question if bit is 0. Otherwise bit stands for a part of the question, and
// addTerms marks the added terms that belong to this part. The words of a part must also be words of the whole
// question.
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

// cachedLookup returns the lookup of a word. It searches the index only if the lookup is not in the cache of s.
func (x *LexicalIndex) cachedLookup(s *scoreState, word string) *wordLookup {
	if w, ok := s.known[word]; ok {
		return w
	}
	w := x.lookupWord(word)
	s.known[strings.Clone(word)] = w // the clone does not reference the memory of the question
	return w
}

// lookupWord searches the index for a word and its stem.
func (x *LexicalIndex) lookupWord(word string) *wordLookup {
	v, w := &x.terms, &wordLookup{}
	if w.place, w.known = v.words.at[word]; w.known {
		w.stem, w.found = v.words.terms[w.place].stem, true
	} else {
		w.stem, w.found = v.stems.at[StemWord(word)]
	}
	return w
}

// addWord adds the stem of a word as a term. If a document contains the exact word, it adds the exact word too.
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
	if len(word.list) == len(term.list) { // all documents with the stem contain the word: add only one term
		s.addTerm(stem, queryTerm{postings: term.list, weight: 1 + x.weights.surface})
		return
	}
	s.addTerm(stem, queryTerm{postings: term.list, weight: 1})
	s.addTerm(surface, queryTerm{postings: word.list, weight: x.weights.surface})
}

// addSimilar adds terms that are similar to a word. These are pairs of words that together form the word, shorter
// words with which the word begins, and longer words that begin with the word. It appends the keys of the added terms
// to w.keys.
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

// addStem adds a stem with the given weight, and appends its key to w.keys.
func (x *LexicalIndex) addStem(s *scoreState, w *wordLookup, stem uint32, weight float64) {
	key := stemKey | uint64(stem)
	w.keys = append(w.keys, key)
	s.addTerm(key, queryTerm{postings: x.terms.stems.terms[stem].list, weight: weight})
}

// findSimilar sets the similar stems and the splits in the lookup w of a word.
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

// addJoinedPair adds the compound of two neighbouring words, such as "keyvault" for "key vault", if the index
// contains it.
func (x *LexicalIndex) addJoinedPair(s *scoreState, w *wordLookup, first, second string) {
	v := &x.terms
	if m := emptyHash.addText(first).addText(second); !v.filter.has(m, wholeWordSalt) && !v.filter.has(m, prefixSalt) {
		return
	}
	word := first + second
	if _, known := v.words.at[word]; !known && len(v.wordsWithPrefix(word)) == 0 {
		return // then the index has no stem of this word either
	}
	joined := x.cachedLookup(s, word)
	if !joined.found || s.stems[joined.stem] {
		return
	}
	s.stems[joined.stem] = true
	x.addStem(s, w, joined.stem, x.weights.joined)
}

// addTerm adds a term, unless a term with this key was added before or no document contains it.
func (s *scoreState) addTerm(key uint64, w queryTerm) {
	if _, ok := s.by[key]; ok || len(w.postings) == 0 {
		return
	}
	s.by[key] = len(s.asked)
	s.asked = append(s.asked, w)
}

// addToPart marks a term of the whole question as a term of the part with the given bit.
func (s *scoreState) addToPart(key uint64, bit uint8) {
	if i, ok := s.by[key]; ok {
		s.asked[i].parts |= bit
	}
}
