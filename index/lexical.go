package index

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/index/words"
)

// weights are what the ranking is tuned by. It is BM25F (Robertson, Zaragoza, Taylor 2004): the occurrences of a term in all
// fields are added up by weight before they saturate.
type weights struct {
	// saturation is the k1 of BM25F: how much a term's further occurrences count.
	saturation float64
	// field is how much a field counts, length how much of that a long one loses: 0 nothing, 1 in proportion.
	field, length [fields]float64
	// surface is how much the word as it stands counts beside its stem, pair two neighbouring words beside each.
	surface, pair float64
	// joined is how much it counts that two words are written as one, or one as two.
	joined float64
	// shorter is how much a word counts that another begins with, as "config" does for "configuration", and longer the other
	// way round; both in proportion to what they have in common.
	shorter, longer float64
	// clause is how much the best part of a question counts beside the whole of it.
	clause float64
	// named is how much it counts that all words of a name are asked for.
	named float64
}

// tuned are the weights that rank best on the development queries of five corpora: see docs/discovery.md.
var tuned = weights{
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
	// leastWords is how many words must be left for stop words to be dropped, and leastClause those that make a clause.
	leastWords, leastClause = 3, 3
	// leastLike is how many bytes a word has at least that another one begins with.
	leastLike = 3
	// mostLike is how many words may begin with another for that to say something.
	mostLike = 24
	// maxQuery is the most bytes of a question that are read, maxClauses the most parts that are ranked apart.
	maxQuery, maxClauses = 8 << 10, 8
)

// Lexical is the index by words. It may be used from several goroutines.
type Lexical struct {
	weights weights
	stops   words.Stops
	scratch sync.Pool // of *search

	// mu guards what follows.
	mu   sync.RWMutex
	docs []document
	// lengths has how many words each field of a document has.
	lengths [][fields]uint16
	free    []uint32 // places in docs without a document
	byID    map[string]uint32
	terms   vocabulary
	total   [fields]int // words of all documents
	scale   scale
	change  uint64 // of the documents, the last
}

// A document, of which nothing is kept but what it is found by.
type document struct {
	id    string
	words []uint32 // of all fields, one after the other
	name  []uint32 // the stems of its name
}

// NewLexical makes an index without documents.
func NewLexical() *Lexical {
	return &Lexical{weights: tuned, stops: words.NewStops(), byID: map[string]uint32{}, terms: newVocabulary()}
}

// Len is the number of documents.
func (x *Lexical) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.byID)
}

// Update takes documents in, each in the place of the one with its ID, and others out, at one moment. An ID that no document
// has is nothing to do.
func (x *Lexical) Update(put []Document, remove []string) { x.update(put, readAll(put), remove) }

// update takes in documents that were read already.
func (x *Lexical) update(put []Document, read []reading, remove []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, id := range remove {
		x.remove(id)
	}
	n := 0
	for i := range read {
		n += read[i].len()
	}
	x.terms.pairs.expect(n)
	x.docs, x.lengths = slices.Grow(x.docs, len(put)), slices.Grow(x.lengths, len(put))
	if len(x.byID) == 0 {
		x.byID = make(map[string]uint32, len(put))
	}
	for i, d := range put {
		x.remove(d.ID)
		x.put(d.ID, &read[i])
	}
	x.change++
	if x.rescale() {
		x.terms.lists(x.weighAll)
		return
	}
	for _, d := range put {
		at := x.byID[d.ID]
		x.terms.each(x.docs[at].words, &x.lengths[at], func(_ int, word, stem uint32, beside uint64) {
			x.weighIn(x.terms.words.terms[word].list, at)
			x.weighIn(x.terms.stems.terms[stem].list, at)
			if beside != 0 {
				x.weighIn(*x.terms.couple(beside), at)
			}
		})
	}
}

// A scale is what an occurrence of a term counts in a field with so many words, and a term that so many documents have. What
// it has no place for is 1/(base+slope·length), and idf.
type scale struct {
	rare        [256]float64
	short       [fields][64]float32
	average     [fields]float64
	base, slope [fields]float32
}

func (s *scale) of(field int, length uint16) float32 {
	if int(length) < len(s.short[field]) {
		return s.short[field][length]
	}
	return 1 / (s.base[field] + s.slope[field]*float32(length))
}

// averages is how finely averages are told apart: so many steps until one is twice another. They are that coarse so that one
// document more or less changes the weight of no other, but for once in a while.
const averages = 32

// rescale makes the scale for the documents as they are. It says whether what an occurrence counts has changed.
func (x *Lexical) rescale() (changed bool) {
	s := &x.scale
	for some := range s.rare {
		s.rare[some] = idf(len(x.byID), some)
	}
	n := float64(max(len(x.byID), 1))
	for f := range fields {
		average := math.Exp2(math.Round(math.Log2(max(float64(x.total[f])/n, 1))*averages) / averages)
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

// weigh is what a term counts in a document that has it so often: from nothing to saturation.
func (x *Lexical) weigh(doc, times uint32) float32 {
	k := float32(x.weights.saturation)
	length := &x.lengths[doc]
	var tf float32
	for times != 0 { // from one field that has it to the next
		f := bits.TrailingZeros32(times) / timesBits
		n := times >> (timesBits * f) & timesMask
		tf += float32(n) * x.scale.of(f, length[f])
		times &^= timesMask << (timesBits * f)
	}
	return (k + 1) * tf / (k + tf)
}

// weighAll weighs a term in each document that has it.
func (x *Lexical) weighAll(list []posting) {
	for i := range list {
		list[i].weight = x.weigh(list[i].doc, list[i].times)
	}
}

// weighIn weighs a term in a document that has it.
func (x *Lexical) weighIn(list []posting, doc uint32) {
	if i, ok := find(list, doc); ok {
		list[i].weight = x.weigh(doc, list[i].times)
	}
}

func (x *Lexical) put(id string, read *reading) {
	at := uint32(len(x.docs))
	if n := len(x.free); n > 0 {
		at, x.free = x.free[n-1], x.free[:n-1]
	} else {
		x.docs, x.lengths = append(x.docs, document{}), append(x.lengths, [fields]uint16{})
	}
	n := read.len()
	all := make([]uint32, 0, n+len(read.words[fieldName]))
	d := document{id: id, words: all[:0:n], name: all[n:n]}
	for f, all := range read.words {
		x.lengths[at][f] = uint16(len(all))
		x.total[f] += len(all)
		for _, word := range all {
			d.words = append(d.words, x.terms.intern(word))
		}
	}
	for _, word := range d.words[:len(read.words[fieldName])] {
		d.name = append(d.name, x.terms.words.terms[word].stem)
	}
	x.docs[at] = d
	x.byID[id] = at
	x.terms.add(at, d.words, &x.lengths[at])
}

func (x *Lexical) remove(id string) {
	at, ok := x.byID[id]
	if !ok {
		return
	}
	d := x.docs[at]
	x.terms.drop(at, d.words, &x.lengths[at])
	for f, n := range x.lengths[at] {
		x.total[f] -= int(n)
	}
	x.docs[at], x.lengths[at] = document{}, [fields]uint16{}
	delete(x.byID, id)
	x.free = append(x.free, at)
}
