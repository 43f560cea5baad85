package index

import (
	"cmp"
	"math"
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
	// clause is how much the best part of a question counts beside the whole of it.
	clause float64
}

// tuned are the weights that rank best on the development queries of five corpora: see docs/discovery.md.
var tuned = weights{
	saturation: 1.18,
	field:      [fields]float64{2.5, 1.18, 0.7, 0.7, 0.42},
	length:     [fields]float64{1, 0.3, 0.52, 0.75, 0.28},
	surface:    0.3,
	pair:       0.35,
	clause:     0.6,
}

const (
	// leastWords is how many words must be left for stop words to be dropped, and leastClause those that make a clause.
	leastWords, leastClause = 3, 3
	// maxQuery is the most bytes of a question that are read, maxClauses the most parts that are ranked apart.
	maxQuery, maxClauses = 8 << 10, 8
)

// A posting is a document that has a term, and how often in which field.
type posting struct {
	doc uint32
	tf  [fields]uint8
}

// Lexical is the index by words. It may be used from several goroutines.
type Lexical struct {
	weights weights
	stops   words.Stops
	scratch sync.Pool // of *search

	// mu guards what follows.
	mu    sync.RWMutex
	docs  []document
	free  []uint32 // places in docs without a document
	byID  map[string]uint32
	terms map[string][]posting // in the order of doc
	total [fields]int          // words of all documents
	// norms are what an occurrence in a field of a document counts; nil when they must be made.
	norms [][fields]float32
}

type document struct {
	Document
	words [fields]int
}

// NewLexical makes an index without documents.
func NewLexical() *Lexical {
	return &Lexical{weights: tuned, stops: words.NewStops(), byID: map[string]uint32{}, terms: map[string][]posting{}}
}

// Len is the number of documents.
func (x *Lexical) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.byID)
}

// Update takes documents in, each in the place of the one with its ID, and others out, at one moment. An ID that no document
// has is nothing to do.
func (x *Lexical) Update(put []Document, remove []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, id := range remove {
		x.remove(id)
	}
	for _, d := range put {
		x.remove(d.ID)
		x.put(d)
	}
	x.norms = nil
}

func (x *Lexical) put(d Document) {
	at := uint32(len(x.docs))
	if n := len(x.free); n > 0 {
		at, x.free = x.free[n-1], x.free[:n-1]
	} else {
		x.docs = append(x.docs, document{})
	}
	terms, count := analyse(&d)
	x.docs[at] = document{d, count}
	x.byID[d.ID] = at
	for f := range count {
		x.total[f] += count[f]
	}
	for term, tf := range terms {
		list := x.terms[term]
		i, _ := find(list, at)
		x.terms[term] = slices.Insert(list, i, posting{at, *tf})
	}
}

func (x *Lexical) remove(id string) {
	at, ok := x.byID[id]
	if !ok {
		return
	}
	d := &x.docs[at]
	terms, count := analyse(&d.Document)
	for term := range terms {
		list := x.terms[term]
		if i, ok := find(list, at); ok {
			list = slices.Delete(list, i, i+1)
		}
		if len(list) == 0 {
			delete(x.terms, term)
		} else {
			x.terms[term] = list
		}
	}
	for f := range count {
		x.total[f] -= count[f]
	}
	*d = document{}
	delete(x.byID, id)
	x.free = append(x.free, at)
}

func find(list []posting, doc uint32) (int, bool) {
	return slices.BinarySearchFunc(list, doc, func(p posting, doc uint32) int { return cmp.Compare(p.doc, doc) })
}

// analyse gives the terms of a document, with how often each stands in which field, and how many words each field has.
func analyse(d *Document) (map[string]*[fields]uint8, [fields]int) {
	terms := map[string]*[fields]uint8{}
	var count [fields]int
	for f, text := range d.texts() {
		all := words.Split(text)
		count[f] = len(all)
		eachTerm(all, func(term string, _ sort) {
			tf := terms[term]
			if tf == nil {
				tf = new([fields]uint8)
				terms[term] = tf
			}
			if tf[f] < math.MaxUint8 {
				tf[f]++
			}
		})
	}
	return terms, count
}

// A sort of terms: each counts with a weight of its own.
type sort int

const (
	stems sort = iota
	surfaces
	pairs
)

// eachTerm gives the terms of words in their order: the stem of each, the word as it stands, and the pair that it makes with
// the one before it. The three can not be taken for one another.
func eachTerm(all []string, yield func(term string, of sort)) {
	before := ""
	for _, word := range all {
		stem := words.Stem(word)
		yield(stem, stems)
		yield("="+word, surfaces)
		if before != "" {
			yield(before+" "+stem, pairs)
		}
		before = stem
	}
}
