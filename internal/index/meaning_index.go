package index

import (
	"cmp"
	"slices"
)

// fieldShares are what the words of a document's fields count in its vector; those after them count nothing.
var fieldShares = [...]int64{fieldName: 2, fieldServer: 2, fieldLead: 2, fieldRest: 2, fieldParameters: 1}

// meaningIndex is the index by meaning: a row for each document, all of which are compared with a question. Its Index
// guards it.
type meaningIndex struct {
	encoder *WordEncoder
	byID    map[string]int
	ids     []string
	rows    []packedVector
	// keyed reports that the keys of the documents' texts are wanted. They are never changed, but made again.
	keyed bool
	keys  []TextKey
}

func newMeaningIndex(keyed bool) *meaningIndex {
	return &meaningIndex{byID: map[string]int{}, keyed: keyed}
}

// update takes in documents that were read already, and others out.
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

// remove puts the last document in the place of the one that goes.
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

// A queryVectors is what documents are compared with: a vector of each of several texts.
type queryVectors []packedQuery

// queryVectors returns the vectors of the texts that have one.
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

// bestCosine is how near a row lies to the nearest of the texts: from 0 to 1.
func (s queryVectors) bestCosine(r *packedVector) float64 {
	best := 0.0
	for i := range s {
		if c := s[i].cosine(r); c > best {
			best = c
		}
	}
	if best > 1 { // by rounding
		return 1
	}
	return best
}

// nearest returns the places of at most so many documents that lie nearest, in no order; of those that lie as near the
// ones whose IDs come first. All rows, which are more than a core keeps at hand, are gone through once, whatever
// number of texts there is.
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
