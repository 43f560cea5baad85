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
// none less than 0. It is nil if no word of the texts has a vector.
func (x *near) nearness(texts []string) []float64 {
	if len(x.rows) == 0 {
		return nil
	}
	scores, known := make([]float64, len(x.rows)), false
	for _, text := range texts {
		known = x.compare(text, scores) || known
	}
	if most := slices.Max(scores); known && most > 0 {
		for i := range scores {
			scores[i] /= most
		}
		return scores
	}
	return nil
}

// compare raises each score to the cosine with a text, and says whether the text has a vector.
func (x *near) compare(text string, scores []float64) bool {
	var sum encoder.Sum
	x.enc.Add(&sum, text, 1)
	v := sum.Unit()
	q := newAsked(&v)
	if q.length == 0 {
		return false
	}
	for i := range x.rows {
		scores[i] = max(scores[i], q.cosine(&x.rows[i]))
	}
	return true
}

// highest gives the places of at most so many documents with the highest scores, those with the same score in the order of
// their IDs.
func (x *near) highest(scores []float64, most int) []int {
	var out []int
	order := func(a, b int) int {
		if c := cmp.Compare(scores[b], scores[a]); c != 0 {
			return c
		}
		return cmp.Compare(x.ids[a], x.ids[b])
	}
	least := 0.0 // of what comes in
	for i, score := range scores {
		if n := len(out); score <= 0 || score < least || n == most && order(out[n-1], i) < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(out, i, order)
		out = slices.Insert(out, at, i)
		if out = out[:min(len(out), most)]; len(out) == most {
			least = scores[out[most-1]]
		}
	}
	return out
}
