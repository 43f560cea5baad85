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
func (x *near) update(put []Document, read [][fields]string, remove []string) {
	x.keys = slices.Clone(x.keys)
	for _, id := range remove {
		x.remove(id)
	}
	for i := range put {
		x.put(&put[i], &read[i])
	}
}

func (x *near) put(d *Document, texts *[fields]string) {
	at, ok := x.byID[d.ID]
	if !ok {
		at = len(x.ids)
		x.byID[d.ID] = at
		x.ids, x.rows = append(x.ids, d.ID), append(x.rows, row{})
		if x.keyed {
			x.keys = append(x.keys, Key{})
		}
	}
	x.rows[at] = x.row(texts)
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

func (x *near) row(texts *[fields]string) row {
	if x.enc == nil {
		x.enc = encoder.BuiltIn()
	}
	var sum encoder.Sum
	for f, share := range shares {
		x.enc.Add(&sum, texts[f], share)
	}
	v := sum.Unit()
	return newRow(&v)
}

// nearness gives for each document how near it lies to the nearest of several texts: of all documents the nearest has 1, and
// none less than 0. It is nil if no word of the texts has a vector. The rows, which are more than a core keeps at hand, are gone
// through once, whatever number of texts there is.
func (x *near) nearness(texts []string) []float64 {
	if len(x.rows) == 0 {
		return nil
	}
	all := x.asked(texts)
	scores, most := make([]float64, len(x.rows)), 0.0
	for i := range x.rows {
		best := 0.0
		for q := range all {
			if c := all[q].cosine(&x.rows[i]); c > best {
				best = c
			}
		}
		scores[i] = best
		most = max(most, best)
	}
	if most == 0 {
		return nil
	}
	for i := range scores {
		scores[i] /= most
	}
	return scores
}

// asked gives the vectors of the texts that have one.
func (x *near) asked(texts []string) []asked {
	all := make([]asked, 0, len(texts))
	for _, text := range texts {
		var sum encoder.Sum
		x.enc.Add(&sum, text, 1)
		v := sum.Unit()
		if q := newAsked(&v); q.length != 0 {
			all = append(all, q)
		}
	}
	return all
}

// highest gives the places of at most so many documents with the highest scores, in no order; of those with the same score
// the ones whose IDs come first.
func (x *near) highest(scores []float64, most int) []int {
	least := nth(scores, most)
	out := make([]int, 0, 2*most)
	for i, score := range scores {
		if score > 0 && score >= least {
			out = append(out, i)
		}
	}
	if len(out) <= most {
		return out
	}
	slices.SortFunc(out, func(a, b int) int {
		if scores[a] != scores[b] {
			return cmp.Compare(scores[b], scores[a])
		}
		return cmp.Compare(x.ids[a], x.ids[b])
	})
	return out[:most]
}
