package index

import (
	"math"
	"math/bits"
	"slices"
	"sync"
)

// rankWeights are the parameters of the ranking function BM25F (Robertson, Zaragoza, Taylor 2004). For each term,
// BM25F first adds the weighted numbers of occurrences in all fields. It then limits the sum, so that many
// occurrences of one term do not dominate (saturation).
type rankWeights struct {
	// saturation is the parameter k1 of BM25F. With a larger value, additional occurrences of a term increase the
	// score more.
	saturation float64
	// field is the weight of each field. length is the parameter b of each field, the discount for long fields: 0
	// means no discount, 1 a discount in proportion to the length.
	field, length [fields]float64
	// surface is the weight of the exact word, relative to the weight of its stem. pair is the weight of two
	// neighbouring words that are also neighbours in the document, relative to the weight of one word.
	surface, pair float64
	// joined is the weight of a match between two neighbouring words and one compound word, such as "key vault" and
	// "keyvault". Either may be in the question.
	joined float64
	// shorter is the weight of a shorter word in the document, such as "config" for "configuration" in the question.
	// longer is the weight of a longer word. Both are multiplied by the length of the shorter word divided by that
	// of the longer word.
	shorter, longer float64
	// clause is the weight of the best part of a question, relative to the weight of the whole question. For parts
	// see ParsedRequest.
	clause float64
	// named is the bonus for a document whose whole name occurs in the question.
	named float64
}

// tunedWeights are the weights with the best ranking for the development queries of five corpora: see
// docs/discovery.md.
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
	// Stop words are dropped only if at least minContentWords other words remain. minPartWords is the minimum number
	// of words, other than stop words, in a part of a question.
	minContentWords, minPartWords = 3, 3
	// minPrefixBytes is the minimum length in bytes of a word that is compared with the beginning of longer words.
	minPrefixBytes = 3
	// maxPrefixMatches is the maximum number of words that begin with a word of the question. If there are more, that
	// word is too general, and none of them match it.
	maxPrefixMatches = 24
	// maxQuery is the maximum number of bytes of a question that are read. maxParts is the maximum number of parts of
	// a question that are ranked separately. If a question has more parts, only the whole question is ranked.
	maxQuery, maxParts = 8 << 10, 8
)

// A LexicalIndex ranks documents by words. It is safe for concurrent use.
type LexicalIndex struct {
	weights rankWeights
	stops   StopWords
	scratch sync.Pool // of *scoreState

	// mu guards the fields below.
	mu   sync.RWMutex
	docs []indexedDocument
	// lengths contains the number of words in each field of each document.
	lengths         [][fields]uint16
	free            []uint32 // unused indexes of docs
	byID            map[string]uint32
	terms           vocabulary
	fieldWordTotals [fields]int // number of words of all documents
	scale           scoreScale
	changeCount     uint64 // number of changes to the documents
}

// An indexedDocument contains the words of a document, as positions in the vocabulary.
type indexedDocument struct {
	id    string
	words []uint32 // the words of all fields, one field after the other
	name  []uint32 // the stems of the words of the document's name
}

// NewLexicalIndex returns an index without documents.
func NewLexicalIndex() *LexicalIndex {
	return &LexicalIndex{weights: tunedWeights, stops: NewStopWords(), byID: map[string]uint32{},
		terms: newVocabulary()}
}

// Len returns the number of documents.
func (x *LexicalIndex) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.byID)
}

// Update removes documents by ID and adds others in one step. An added document replaces the document with the same
// ID. Unknown IDs in remove are ignored.
func (x *LexicalIndex) Update(put []Document, remove []string) {
	x.updateRead(put, splitDocuments(put), remove)
}

// updateRead is like Update, for documents that splitDocuments has already split into words.
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

// A scoreScale contains precomputed factors of term weights. rare[n] is the inverse document frequency of a term that
// n documents contain. The factor for a field of a given length is 1/(base+slope·length); short contains this factor
// for short fields. average is the average length of each field.
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

// averageSteps is the number of steps between a length and its double. Average lengths are rounded to a step. So
// adding or removing one document rarely changes an average, and with it the weights in all documents.
const averageSteps = 32

// updateScale computes the scale for the current documents. It reports whether a length factor has changed; then the
// weights of all terms must be computed again.
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

// termWeight returns the weight of a term in a document: at least 0 and less than saturation + 1. times contains the
// number of occurrences in each field, with timesBits bits for each field.
func (x *LexicalIndex) termWeight(doc, times uint32) float32 {
	k := float32(x.weights.saturation)
	length := &x.lengths[doc]
	var tf float32
	for times != 0 { // for each field that contains the term
		f := bits.TrailingZeros32(times) / timesBits
		n := times >> (timesBits * f) & timesMask
		tf += float32(n) * x.scale.lengthFactor(f, length[f])
		times &^= timesMask << (timesBits * f)
	}
	return (k + 1) * tf / (k + tf)
}

// weighPostings updates the weight of a term in each document that contains the term. list is the posting list of the
// term.
func (x *LexicalIndex) weighPostings(list []posting) {
	for i := range list {
		list[i].weight = x.termWeight(list[i].doc, list[i].times)
	}
}

// weightInDocument updates the weight of a term in one document.
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
