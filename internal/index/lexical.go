package index

import (
	"math"
	"math/bits"
	"slices"
	"sync"
)

// rankWeights are what the ranking is tuned by. It is BM25F (Robertson, Zaragoza, Taylor 2004): the occurrences of a
// term in all fields are added up by weight before they saturate.
type rankWeights struct {
	// saturation is the k1 of BM25F: how much a term's further occurrences count.
	saturation float64
	// field is how much a field counts, length how much of that a long one loses: 0 nothing, 1 in proportion.
	field, length [fields]float64
	// surface is how much the word as it stands counts beside its stem, pair two neighbouring words beside each.
	surface, pair float64
	// joined is how much it counts that two words are written as one, or one as two.
	joined float64
	// shorter is how much a word counts of which the word searched for is an extension, as "config" of "configuration";
	// longer is the reverse. Both are scaled by the shared part.
	shorter, longer float64
	// clause is how much the best part of a question counts beside the whole of it.
	clause float64
	// named is how much it counts that all words of a name are asked for.
	named float64
}

// tunedWeights are the weights that rank best on the development queries of five corpora: see docs/discovery.md.
var tunedWeights = rankWeights{
	saturation: 1.18,
	field:      [fields]float64{2.5, 1.18, 1, 0.45, 0.7, 0.42},
	length:     [fields]float64{1, 0.3, 0.52, 0.52, 0.75, 0.28},
	surface:    0.3,
	pair:       0.35,
	joined:     0.3,
	shorter:    0.6,
	longer:     0.3,
	clause:     0.6,
	named:      0.2,
}

const (
	// minContentWords is how many words must be left for stop words to be dropped, and minPartWords those that make a
	// clause.
	minContentWords, minPartWords = 3, 3
	// minPrefixBytes is how many bytes a word has at least that another one begins with.
	minPrefixBytes = 3
	// maxPrefixMatches is how many words may begin with another for that to say something.
	maxPrefixMatches = 24
	// maxQuery is the most bytes of a question that are read, maxParts the most parts that are ranked apart.
	maxQuery, maxParts = 8 << 10, 8
)

// LexicalIndex is the index by words. It may be used from several goroutines.
type LexicalIndex struct {
	weights rankWeights
	stops   StopWords
	scratch sync.Pool // of *search

	// mu guards what follows.
	mu   sync.RWMutex
	docs []indexedDocument
	// lengths has how many words each field of a document has.
	lengths         [][fields]uint16
	free            []uint32 // places in docs without a document
	byID            map[string]uint32
	terms           vocabulary
	fieldWordTotals [fields]int // words of all documents
	scale           scoreScale
	changeCount     uint64 // of the documents, the last
}

// An indexedDocument, of which nothing is kept but what it is found by.
type indexedDocument struct {
	id    string
	words []uint32 // of all fields, one after the other
	name  []uint32 // the stems of its name
}

// NewLexicalIndex makes an index without documents.
func NewLexicalIndex() *LexicalIndex {
	return &LexicalIndex{weights: tunedWeights, stops: NewStopWords(), byID: map[string]uint32{},
		terms: newVocabulary()}
}

// Len is the number of documents.
func (x *LexicalIndex) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.byID)
}

// Update takes documents in, each in the place of the one with its ID, and others out, at one moment. An ID that no
// document has is nothing to do.
func (x *LexicalIndex) Update(put []Document, remove []string) {
	x.updateRead(put, splitDocuments(put), remove)
}

// updateRead takes in documents that were read already.
func (x *LexicalIndex) updateRead(put []Document, read []documentWords, remove []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, id := range remove {
		x.removeDocument(id)
	}
	n := 0
	for i := range read {
		n += read[i].wordCount()
	}
	x.terms.pairs.reserve(n)
	x.docs, x.lengths = slices.Grow(x.docs, len(put)), slices.Grow(x.lengths, len(put))
	if len(x.byID) == 0 {
		x.byID = make(map[string]uint32, len(put))
	}
	for i, d := range put {
		x.removeDocument(d.ID)
		x.putDocument(d.ID, &read[i])
	}
	x.changeCount++
	if x.updateScale() {
		x.terms.eachPostingList(x.weighPostings)
		return
	}
	for _, d := range put {
		at := x.byID[d.ID]
		x.terms.eachWord(x.docs[at].words, &x.lengths[at], func(_ int, word, stem uint32, beside uint64) {
			x.weightInDocument(x.terms.words.terms[word].list, at)
			x.weightInDocument(x.terms.stems.terms[stem].list, at)
			if beside != 0 {
				x.weightInDocument(*x.terms.pairPostings(beside), at)
			}
		})
	}
}

// A scoreScale is what an occurrence of a term counts in a field with so many words, and a term that so many documents
// have. What it has no place for is 1/(base+slope·length), and idf.
type scoreScale struct {
	rare        [256]float64
	short       [fields][64]float32
	average     [fields]float64
	base, slope [fields]float32
}

func (s *scoreScale) lengthFactor(field int, length uint16) float32 {
	if int(length) < len(s.short[field]) {
		return s.short[field][length]
	}
	return 1 / (s.base[field] + s.slope[field]*float32(length))
}

// averageSteps is how finely averages are told apart: so many steps until one is twice another. They are that coarse
// so that one document more or less changes the weight of no other, except for once in a while.
const averageSteps = 32

// updateScale computes the scale for the current documents. It reports whether the weight of an occurrence has changed.
func (x *LexicalIndex) updateScale() (changed bool) {
	s := &x.scale
	for some := range s.rare {
		s.rare[some] = inverseDocumentFrequency(len(x.byID), some)
	}
	n := float64(max(len(x.byID), 1))
	for f := range fields {
		average := math.Exp2(math.Round(math.Log2(max(float64(x.fieldWordTotals[f])/n, 1))*averageSteps) / averageSteps)
		if average == s.average[f] {
			continue
		}
		changed, s.average[f] = true, average
		w, b := x.weights.field[f], x.weights.length[f]
		s.base[f], s.slope[f] = float32((1-b)/w), float32(b/(w*average))
		for length := range s.short[f] {
			s.short[f][length] = 1 / (s.base[f] + s.slope[f]*float32(length))
		}
	}
	return changed
}

// termWeight is what a term counts in a document that has it so often: from nothing to saturation.
func (x *LexicalIndex) termWeight(doc, times uint32) float32 {
	k := float32(x.weights.saturation)
	length := &x.lengths[doc]
	var tf float32
	for times != 0 { // from one field that has it to the next
		f := bits.TrailingZeros32(times) / timesBits
		n := times >> (timesBits * f) & timesMask
		tf += float32(n) * x.scale.lengthFactor(f, length[f])
		times &^= timesMask << (timesBits * f)
	}
	return (k + 1) * tf / (k + tf)
}

// weighPostings weighs a term in each document that has it.
func (x *LexicalIndex) weighPostings(list []posting) {
	for i := range list {
		list[i].weight = x.termWeight(list[i].doc, list[i].times)
	}
}

// weightInDocument weighs a term in a document that has it.
func (x *LexicalIndex) weightInDocument(list []posting, doc uint32) {
	if i, ok := findPosting(list, doc); ok {
		list[i].weight = x.termWeight(doc, list[i].times)
	}
}

func (x *LexicalIndex) putDocument(id string, read *documentWords) {
	at := uint32(len(x.docs))
	if n := len(x.free); n > 0 {
		at, x.free = x.free[n-1], x.free[:n-1]
	} else {
		x.docs, x.lengths = append(x.docs, indexedDocument{}), append(x.lengths, [fields]uint16{})
	}
	n := read.wordCount()
	all := make([]uint32, 0, n+len(read.words[fieldName]))
	d := indexedDocument{id: id, words: all[:0:n], name: all[n:n]}
	for f, all := range read.words {
		x.lengths[at][f] = uint16(len(all))
		x.fieldWordTotals[f] += len(all)
		for _, word := range all {
			d.words = append(d.words, x.terms.wordPlace(word))
		}
	}
	for _, word := range d.words[:len(read.words[fieldName])] {
		d.name = append(d.name, x.terms.words.terms[word].stem)
	}
	x.docs[at] = d
	x.byID[id] = at
	x.terms.addDocument(at, d.words, &x.lengths[at])
}

func (x *LexicalIndex) removeDocument(id string) {
	at, ok := x.byID[id]
	if !ok {
		return
	}
	d := x.docs[at]
	x.terms.removeDocument(at, d.words, &x.lengths[at])
	for f, n := range x.lengths[at] {
		x.fieldWordTotals[f] -= int(n)
	}
	x.docs[at], x.lengths[at] = indexedDocument{}, [fields]uint16{}
	delete(x.byID, id)
	x.free = append(x.free, at)
}
