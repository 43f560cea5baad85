package index

import (
	"cmp"
	"slices"
	"strings"
)

// A posting is one document in the list of documents that contain a term. times is the number of occurrences of the
// term in each field, with timesBits bits for each field. weight is the resulting weight of the term in the document.
type posting struct {
	doc, times uint32
	weight     float32
}

const (
	timesBits = 5
	timesMask = 1<<timesBits - 1
)

// A term is an exact word or a stem. list contains the documents that contain the term, sorted by doc.
type term struct {
	text string
	stem uint32 // for a word: the position of its stem
	list []posting
}

// A termTable maps texts to terms.
type termTable struct {
	at    map[string]uint32
	terms []term
	free  []uint32 // unused positions in terms
}

// A pairTable maps pairs of neighbouring stems to the documents that contain the pair.
type pairTable struct {
	at    map[uint64]uint32
	lists [][]posting
	free  []uint32 // unused positions in lists
}

// A vocabulary contains the terms of the current documents: exact words, their stems, and pairs of neighbouring
// stems.
type vocabulary struct {
	words, stems termTable
	pairs        pairTable
	// byPrefix maps a prefix of prefixBytes bytes to the longer words with that prefix, sorted by text.
	byPrefix map[string][]uint32
	filter   prefixFilter
}

// prefixBytes is the length of the keys of byPrefix.
const prefixBytes = 4

func newVocabulary() vocabulary {
	return vocabulary{
		words: termTable{at: map[string]uint32{}}, stems: termTable{at: map[string]uint32{}},
		pairs: pairTable{at: map[uint64]uint32{}}, byPrefix: map[string][]uint32{},
	}
}

// pairKey returns the key of a pair of stems.
func pairKey(first, second uint32) uint64 { return uint64(first)<<32 | uint64(second) }

// wordPlace returns the position of a word in the vocabulary. If the word is new, wordPlace adds it; the caller must
// then add a document that contains the word.
func (v *vocabulary) wordPlace(word string) uint32 {
	if at, ok := v.words.at[word]; ok {
		return at
	}
	stem := StemWord(word)
	on, ok := v.stems.at[stem]
	if !ok {
		on = v.stems.addTerm(stem)
	}
	at := v.words.addTerm(word)
	v.words.terms[at].stem = on
	v.addToFilter(word)
	if len(word) > prefixBytes {
		list := v.byPrefix[word[:prefixBytes]]
		i, _ := slices.BinarySearchFunc(list, word, v.compare)
		v.byPrefix[word[:prefixBytes]] = slices.Insert(list, i, at)
	}
	return at
}

// addToFilter adds a word to the prefix filter. It rebuilds the filter if the filter is full.
func (v *vocabulary) addToFilter(word string) {
	if v.filter.isFullFor(len(word)) {
		v.rebuildFilter()
	}
	v.filter.addWord(word)
}

// pairPostings returns the list of documents that contain a pair of stems, for modification. If the pair is new,
// pairPostings adds it with an empty list.
func (v *vocabulary) pairPostings(beside uint64) *[]posting {
	at, ok := v.pairs.at[beside]
	if !ok {
		at = v.pairs.addPair(beside)
		if v.filter.isFullFor(1) {
			v.rebuildFilter()
		}
		v.filter.set(textHash(beside), pairSalt)
	}
	return &v.pairs.lists[at]
}

// rebuildFilter builds the prefix filter from the current words and pairs.
func (v *vocabulary) rebuildFilter() {
	bits := len(v.pairs.at)
	for word := range v.words.at {
		bits += len(word)
	}
	v.filter.reset(bits)
	for word := range v.words.at {
		v.filter.addWord(word)
	}
	for beside := range v.pairs.at {
		v.filter.set(textHash(beside), pairSalt)
	}
}

// documentsWithPair returns the documents in which the stem second directly follows the stem first in a field.
func (v *vocabulary) documentsWithPair(first, second uint32) []posting {
	if !v.filter.has(textHash(pairKey(first, second)), pairSalt) {
		return nil
	}
	at, ok := v.pairs.at[pairKey(first, second)]
	if !ok {
		return nil
	}
	return v.pairs.lists[at]
}

// compare compares the text of the word at a position with the given word.
func (v *vocabulary) compare(at uint32, word string) int {
	return cmp.Compare(v.words.terms[at].text, word)
}

// wordsWithPrefix returns the positions of the longer words that begin with word, sorted by text. If word is shorter
// than prefixBytes, it returns none.
func (v *vocabulary) wordsWithPrefix(word string) []uint32 {
	if len(word) < prefixBytes {
		return nil
	}
	list := v.byPrefix[word[:prefixBytes]]
	from, same := slices.BinarySearchFunc(list, word, v.compare)
	if same {
		from++
	}
	list = list[from:]
	for i, at := range list {
		if !strings.HasPrefix(v.words.terms[at].text, word) {
			return list[:i]
		}
	}
	return list
}

// removeFromHeads removes a word from byPrefix.
func (v *vocabulary) removeFromHeads(word string) {
	if len(word) <= prefixBytes {
		return
	}
	list := v.byPrefix[word[:prefixBytes]]
	if i, ok := slices.BinarySearchFunc(list, word, v.compare); ok {
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		delete(v.byPrefix, word[:prefixBytes])
	} else {
		v.byPrefix[word[:prefixBytes]] = list
	}
}

// addTerm adds a new term and returns its position.
func (t *termTable) addTerm(text string) uint32 {
	text = strings.Clone(text) // the clone does not reference the memory of the whole text
	at := uint32(len(t.terms))
	if n := len(t.free); n > 0 {
		at, t.free = t.free[n-1], t.free[:n-1]
		t.terms[at] = term{text: text}
	} else {
		t.terms = append(t.terms, term{text: text})
	}
	t.at[text] = at
	return at
}

// addDocument adds a document to the lists of its words, stems and pairs. all contains the positions of its words,
// one field after the other.
func (v *vocabulary) addDocument(doc uint32, all []uint32, lengths *[fields]uint16) {
	v.eachWord(all, lengths, func(field int, word, stem uint32, beside uint64) {
		w, s := &v.words.terms[word], &v.stems.terms[stem]
		w.list = countOccurrence(w.list, doc, field)
		s.list = countOccurrence(s.list, doc, field)
		if beside != 0 {
			list := v.pairPostings(beside)
			*list = countOccurrence(*list, doc, field)
		}
	})
}

// removeDocument removes a document from the lists of its terms. It also removes terms that no other document
// contains.
func (v *vocabulary) removeDocument(doc uint32, all []uint32, lengths *[fields]uint16) {
	v.eachWord(all, lengths, func(_ int, word, stem uint32, beside uint64) {
		if v.words.removeDocument(word, doc) {
			v.removeFromHeads(v.words.terms[word].text)
		}
		v.stems.removeDocument(stem, doc)
		if beside != 0 {
			v.pairs.removeDocument(beside, doc)
		}
	})
}

// eachPostingList calls do with the list of documents of each word, each stem and each pair.
func (v *vocabulary) eachPostingList(do func([]posting)) {
	for _, terms := range [][]term{v.words.terms, v.stems.terms} {
		for i := range terms {
			do(terms[i].list)
		}
	}
	for _, list := range v.pairs.lists {
		do(list)
	}
}

// eachWord calls do with each word of a document, its stem, and the pair of the previous word's stem and this stem.
// For the first word of a field, the pair is 0.
func (v *vocabulary) eachWord(all []uint32, lengths *[fields]uint16, do func(field int, word, stem uint32,
	beside uint64)) {
	for field, n := range lengths {
		var before uint32
		for i, word := range all[:n] {
			stem := v.words.terms[word].stem
			beside := uint64(0)
			if i > 0 {
				beside = pairKey(before, stem)
			}
			do(field, word, stem, beside)
			before = stem
		}
		all = all[n:]
	}
}

// removeDocument removes a document from the list of a term. If the list is then empty, it removes the term and
// returns true.
func (t *termTable) removeDocument(at, doc uint32) (gone bool) {
	term := &t.terms[at]
	list, had := removePosting(term.list, doc)
	term.list = list
	if had && len(list) == 0 {
		delete(t.at, term.text)
		t.free = append(t.free, at)
	}
	return had && len(list) == 0
}

// reserve allocates memory for the pairs of new documents, if the table is empty. words is the number of words in
// these documents.
func (c *pairTable) reserve(words int) {
	const each = 6 // number of words for each new pair, measured on several corpora
	if n := words / each; len(c.at) == 0 {
		c.at, c.lists, c.free = make(map[uint64]uint32, n), make([][]posting, 0, n), nil
	}
}

// addPair adds a new pair and returns its position.
func (c *pairTable) addPair(beside uint64) uint32 {
	at := uint32(len(c.lists))
	if n := len(c.free); n > 0 {
		at, c.free = c.free[n-1], c.free[:n-1]
	} else {
		c.lists = append(c.lists, nil)
	}
	c.at[beside] = at
	return at
}

// removeDocument removes a document from the list of a pair. It removes the pair if no other document contains it.
func (c *pairTable) removeDocument(beside uint64, doc uint32) {
	at, ok := c.at[beside]
	if !ok {
		return
	}
	if c.lists[at], _ = removePosting(c.lists[at], doc); len(c.lists[at]) == 0 {
		c.lists[at] = nil
		delete(c.at, beside)
		c.free = append(c.free, at)
	}
}

// countOccurrence adds one occurrence of a term in a field of a document.
func countOccurrence(list []posting, doc uint32, field int) []posting {
	one := uint32(1) << (timesBits * field)
	i := len(list)
	switch {
	case i == 0 || list[i-1].doc < doc:
		return append(list, posting{doc: doc, times: one})
	case list[i-1].doc == doc:
		i--
	default:
		var ok bool
		if i, ok = findPosting(list, doc); !ok {
			return slices.Insert(list, i, posting{doc: doc, times: one})
		}
	}
	if p := &list[i]; p.times>>(timesBits*field)&timesMask < timesMask {
		p.times += one
	}
	return list
}

// removePosting removes a document from a list. had reports whether the list contained the document.
func removePosting(list []posting, doc uint32) (rest []posting, had bool) {
	i, ok := findPosting(list, doc)
	if !ok {
		return list, false
	}
	return slices.Delete(list, i, i+1), true
}

func findPosting(list []posting, doc uint32) (int, bool) {
	return slices.BinarySearchFunc(list, doc, func(p posting, doc uint32) int { return cmp.Compare(p.doc, doc) })
}
