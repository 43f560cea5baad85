package index

import (
	"cmp"
	"slices"
)

// fieldShares contains the weight of the words of each field in the vector of a document. A field that is not listed
// has weight 0: its words do not influence the vector.
var fieldShares = [...]int64{fieldName: 2, fieldServer: 2, fieldLead: 2, fieldRest: 2, fieldParameters: 1}

// A meaningIndex ranks documents by the vectors of the built-in encoder. A search compares the question with the
// vector of every document. Callers synchronize access with Index.mu.
type meaningIndex struct {
	encoder *WordEncoder
	byID    map[string]int
	ids     []string
	rows    []packedVector
	// keyed specifies whether keys contains the text keys of the documents, which only a remote ranker needs. An
	// update changes a copy of keys, so that a search can use the previous slice without the lock.
	keyed bool
	keys  []TextKey
}

func newMeaningIndex(keyed bool) *meaningIndex {
	return &meaningIndex{byID: map[string]int{}, keyed: keyed}
}

// update removes documents by ID and adds documents that are already split into words.
func (x *meaningIndex) update(put []Document, read []documentWords, remove []string) {
	x.keys = slices.Clone(x.keys)
	for _, id := range remove {
		x.remove(id)
	}
	x.ids, x.rows = slices.Grow(x.ids, len(put)), slices.Grow(x.rows, len(put))
	if len(x.byID) == 0 {
		x.byID = make(map[string]int, len(put))
	}
	for i := range put {
		x.put(&put[i], &read[i])
	}
}

func (x *meaningIndex) put(d *Document, read *documentWords) {
	at, ok := x.byID[d.ID]
	if !ok {
		at = len(x.ids)
		x.byID[d.ID] = at
		x.ids, x.rows = append(x.ids, d.ID), append(x.rows, packedVector{})
		if x.keyed {
			x.keys = append(x.keys, TextKey{})
		}
	}
	x.rows[at] = x.documentVector(read)
	if x.keyed {
		x.keys[at] = d.TextKey()
	}
}

// remove removes a document and moves the last document to its position.
func (x *meaningIndex) remove(id string) {
	at, ok := x.byID[id]
	if !ok {
		return
	}
	last := len(x.ids) - 1
	x.ids[at], x.rows[at] = x.ids[last], x.rows[last]
	x.byID[x.ids[at]] = at
	delete(x.byID, id)
	x.ids, x.rows = slices.Delete(x.ids, last, last+1), x.rows[:last]
	if x.keyed {
		x.keys[at] = x.keys[last]
		x.keys = x.keys[:last]
	}
}

func (x *meaningIndex) documentVector(read *documentWords) packedVector {
	if x.encoder == nil {
		x.encoder = BuiltInEncoder()
	}
	var sum VectorSum
	for f, share := range fieldShares {
		x.encoder.AddWords(&sum, read.words[f], share)
	}
	v := sum.UnitVector()
	return packVector(&v)
}

// A queryVectors contains the vectors of the parts of a question.
type queryVectors []packedQuery

// queryVectors returns the vectors of texts, which are given as words. It omits texts without a vector.
func (x *meaningIndex) queryVectors(texts [][]string) queryVectors {
	all := make(queryVectors, 0, len(texts))
	for _, words := range texts {
		var sum VectorSum
		x.encoder.AddWords(&sum, words, 1)
		v := sum.UnitVector()
		if q := packQuery(&v); q.per != 0 {
			all = append(all, q)
		}
	}
	return all
}

// bestCosine returns the cosine between the vector r of a document and the nearest vector of the question's parts. A
// negative cosine counts as 0.
func (s queryVectors) bestCosine(r *packedVector) float64 {
	best := 0.0
	for i := range s {
		if c := s[i].cosine(r); c > best {
			best = c
		}
	}
	if best > 1 { // a rounding error
		return 1
	}
	return best
}

// nearest returns the positions of the documents that are nearest to one of the texts, at most most, in arbitrary
// order. If several documents are equally near, smaller IDs are preferred. It reads all rows only once for all texts,
// because the rows do not fit into the processor's cache.
func (x *meaningIndex) nearest(s queryVectors, most int) []int {
	var at []int
	var scores []float64
	least, full := 0.0, 2*most
	for i := range x.rows {
		score := s.bestCosine(&x.rows[i])
		if score <= 0 || score < least {
			continue
		}
		at, scores = append(at, i), append(scores, score)
		if len(at) < full {
			continue
		}
		least = nthScore(scores, most)
		n := 0
		for j, score := range scores {
			if score >= least {
				at[n], scores[n] = at[j], score
				n++
			}
		}
		at, scores, full = at[:n], scores[:n], max(full, 2*n)
	}
	if len(at) <= most {
		return at
	}
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if scores[a] != scores[b] {
			return cmp.Compare(scores[b], scores[a])
		}
		return cmp.Compare(x.ids[at[a]], x.ids[at[b]])
	})
	for i, from := range order[:most] {
		order[i] = at[from]
	}
	return order[:most]
}
