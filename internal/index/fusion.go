package index

import (
	"context"
	"slices"
)

// The weights of the rankers in the score of a hit. The ranking by words has weight 1. The scores of each ranker are
// first divided by the best score of that ranker.
//
// The fusion adds scores, not ranks. A fusion of ranks with equal weights (reciprocal rank fusion, RRF) had 5 points
// less nDCG@10 than words alone. The reason is that the built-in encoder is a weaker ranker than words. The weights
// were chosen by cross-validation, which leaves out one corpus at a time; see docs/encoder.md.
const (
	// meaningWeight is the weight of the built-in encoder for a question with one part, and multiPartWeight for a
	// question with several parts. The second weight is lower because the encoder compares a document only with the
	// nearest part, while words compare it with all parts.
	meaningWeight, multiPartWeight = 0.7, 0.3
	// remoteWeight is the weight of an external model, which is used instead of the built-in encoder. Such a model is
	// about as reliable as words.
	remoteWeight = 1
	// fusedHits is the number of best hits of each ranker that are fused. A document that is not among them for any
	// ranker is not a hit.
	fusedHits = 200
)

// fusedSearch ranks documents with all rankers and adds their scores. Only the external model may make it wait, for
// the vector of the question.
func (x *Index) fusedSearch(ctx context.Context, s Query) []Hit {
	most := max(fusedHits, 2*s.Limit)
	var far map[TextKey]float64
	var under map[TextKey]bool
	if !s.LocalOnly {
		far, under = x.remoteScores(ctx, s.Text, most)
	}
	q := x.lexical.parseQuestion(s.Text)
	x.mu.RLock()
	defer x.mu.RUnlock()
	f := hitFusion{hits: x.lexical.searchQuestion(q, most), at: make(map[string]int, 2*most)}
	for i := range f.hits {
		f.hits[i].Words = f.hits[i].Score
		f.at[f.hits[i].ID] = i
	}
	if far != nil {
		for i, key := range x.meaning.keys {
			if score := far[key]; score > 0 {
				h := f.hitFor(x.meaning.ids[i])
				h.Far = score
				h.Score += remoteWeight * score
			}
		}
	} else {
		f.addMeaningScores(x.meaning, q.wordGroups(), most, s.Limit)
	}
	if len(under) > 0 {
		f.dropFarHits(x.meaning, under)
	}
	return f.topHits(s.Limit)
}

// A hitFusion contains the hits for one question while the scores of the rankers are added to them.
type hitFusion struct {
	hits []Hit
	at   map[string]int // index of a hit by document ID
}

func (f *hitFusion) hitFor(id string) *Hit {
	at, ok := f.at[id]
	if !ok {
		at = len(f.hits)
		f.at[id] = at
		f.hits = append(f.hits, Hit{ID: id})
	}
	return &f.hits[at]
}

// addMeaningScores adds the scores of the built-in encoder. The document nearest to a part of the question has the
// score 1, and others have 0 to 1. The function scores the hits that the words found, and the documents nearest to
// the question. It skips the nearest documents if wanted hits already have a score that no other document can exceed.
func (f *hitFusion) addMeaningScores(x *meaningIndex, parts [][]string, most, wanted int) {
	if len(x.rows) == 0 {
		return
	}
	s := x.queryVectors(parts)
	share := meaningWeight
	if len(parts) > 1 {
		share = multiPartWeight
	}
	if len(f.hits) < wanted || f.hits[wanted-1].Score < share {
		for _, at := range x.nearest(s, most) {
			f.hitFor(x.ids[at])
		}
	}
	top := 0.0
	for i := range f.hits {
		h := &f.hits[i]
		h.Meaning = s.bestCosine(&x.rows[x.byID[h.ID]])
		top = max(top, h.Meaning)
	}
	if top == 0 {
		return
	}
	for i := range f.hits {
		h := &f.hits[i]
		h.Meaning /= top
		h.Score += share * h.Meaning
	}
}

// topHits returns the hits with the highest scores, at most most. It scales the scores so that the best score is 1.
func (f *hitFusion) topHits(most int) []Hit {
	slices.SortFunc(f.hits, compareHits)
	hits := f.hits[:min(len(f.hits), most)]
	for i := len(hits) - 1; i >= 0; i-- {
		hits[i].Score /= hits[0].Score
	}
	return hits
}

// dropFarHits removes the hits whose texts are in under, which contains the texts with a cosine below
// Options.MinCosine. It does not remove the best hit.
func (f *hitFusion) dropFarHits(x *meaningIndex, under map[TextKey]bool) {
	slices.SortFunc(f.hits, compareHits)
	best := true
	f.hits = slices.DeleteFunc(f.hits, func(h Hit) bool {
		out := !best && under[x.keys[x.byID[h.ID]]]
		best = false
		return out
	})
}

// remoteScores returns the scores of the external model, by text: 1 for the nearest of the requested texts and 0 for
// the farthest. Scores are relative to the farthest text, because the cosine of unrelated texts differs between
// models. under contains the texts whose cosine is below Options.MinCosine; it is nil if there is no minimum. If the
// model returns no result, both maps are nil.
func (x *Index) remoteScores(ctx context.Context, question string, most int) (scores map[TextKey]float64,
	under map[TextKey]bool) {
	x.mu.RLock()
	keys := x.meaning.keys
	x.mu.RUnlock()
	if x.o.Remote == nil || len(keys) == 0 {
		return nil, nil
	}
	asked := most
	if x.o.MinCosine > 0 {
		asked = max(most, len(keys)) // the cosine of every text is needed
	}
	near, err := x.o.Remote.Nearest(ctx, question, asked, keys)
	if err != nil || len(near) == 0 {
		return nil, nil
	}
	if x.o.MinCosine > 0 {
		under = map[TextKey]bool{}
		for _, n := range near {
			if float64(n.Cosine) < x.o.MinCosine {
				under[n.Key] = true
			}
		}
	}
	near = near[:min(len(near), most)]
	top, least := near[0].Cosine, near[len(near)-1].Cosine
	if len(near) == len(keys) || top <= least {
		least = min(least, 0) // all texts are in the result, so the last one may be near
	}
	scores = make(map[TextKey]float64, len(near))
	for _, n := range near {
		scores[n.Key] = max(0, float64(n.Cosine-least)/max(float64(top-least), 1e-9))
	}
	return scores, under
}
