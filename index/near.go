package index

import (
	"cmp"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/index/encoder"
)

// shares are what the words of a document's fields count in its vector; those after them count nothing.
var shares = [...]int64{fieldName: 2, fieldServer: 2, fieldLead: 2, fieldRest: 2, fieldParameters: 1}

// near is the index by meaning: a row for each document, all of which are compared with a question. Its Index guards it.
type near struct {
	enc  *encoder.Encoder
	byID map[string]int
	ids  []string
	rows []row
	// keyed says that the keys of the documents' texts are wanted. They are never changed, but made anew.
	keyed bool
	keys  []Key
}

func newNear(keyed bool) *near { return &near{byID: map[string]int{}, keyed: keyed} }

// update takes in documents that were read already, and others out.
func (x *near) update(put []Document, read []reading, remove []string) {
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

func (x *near) put(d *Document, read *reading) {
	at, ok := x.byID[d.ID]
	if !ok {
		at = len(x.ids)
		x.byID[d.ID] = at
		x.ids, x.rows = append(x.ids, d.ID), append(x.rows, row{})
		if x.keyed {
			x.keys = append(x.keys, Key{})
		}
	}
	x.rows[at] = x.row(read)
	if x.keyed {
		x.keys[at] = d.Key()
	}
}

// remove puts the last document in the place of the one that goes.
func (x *near) remove(id string) {
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

func (x *near) row(read *reading) row {
	if x.enc == nil {
		x.enc = encoder.BuiltIn()
	}
	var sum encoder.Sum
	for f, share := range shares {
		x.enc.Add(&sum, read.words[f], share)
	}
	v := sum.Unit()
	return newRow(&v)
}

// A sought is what documents are compared with: a vector of each of several texts.
type sought []asked

// sought gives the vectors of the texts that have one.
func (x *near) sought(texts [][]string) sought {
	all := make(sought, 0, len(texts))
	for _, words := range texts {
		var sum encoder.Sum
		x.enc.Add(&sum, words, 1)
		v := sum.Unit()
		if q := newAsked(&v); q.per != 0 {
			all = append(all, q)
		}
	}
	return all
}

// nearness is how near a row lies to the nearest of the texts: from 0 to 1.
func (s sought) nearness(r *row) float64 {
	best := 0.0
	for i := range s {
		if c := s[i].cosine(r); c > best {
			best = c
		}
	}
	if best > 1 { // by what is rounded
		return 1
	}
	return best
}

// nearest gives the places of at most so many documents that lie nearest, in no order; of those that lie as near the ones whose
// IDs come first. All rows, which are more than a core keeps at hand, are gone through once, whatever number of texts there is.
func (x *near) nearest(s sought, most int) []int {
	var at []int
	var scores []float64
	least, full := 0.0, 2*most
	for i := range x.rows {
		score := s.nearness(&x.rows[i])
		if score <= 0 || score < least {
			continue
		}
		at, scores = append(at, i), append(scores, score)
		if len(at) < full {
			continue
		}
		least = nth(scores, most)
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
