package index

import (
	"context"
	"slices"
)

// The weights of the rankers in the score of a hit, relative to the ranking by words, which has weight 1. The scores
// of each ranker are first divided by its best score.
//
// The fusion adds scores, not ranks. A fusion of ranks with equal weights (RRF) had 5 points less nDCG@10 than words
// alone. The reason is that the built-in encoder is a weaker ranker than words. The weights were chosen by leaving
// out one corpus at a time; see docs/encoder.md.
const (
	// meaningWeight is the weight of the built-in encoder. multiPartWeight replaces it for a question with several
	// parts. For such a question only the nearest part counts, because a vector describes one thing, while the word
	// scores of all parts add up.
	meaningWeight, multiPartWeight = 0.7, 0.3
	// remoteWeight is the weight of the vectors of an external model, which replace the built-in encoder. Such a
	// model is about as reliable as words.
	remoteWeight = 1
	// fusedHits is the number of hits of each ranker that are fused. A document with a lower rank in all rankers is
	// not a hit.
	fusedHits = 200
)

// fusedSearch ranks documents with all rankers. It waits only for the vector of the question from the external
// model.
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

// A hitFusion contains the hits of one question, to which the scores of the rankers are added.
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

// addMeaningScores adds the scores of the built-in encoder: 1 for the document nearest to a part of the question,
// and 0 to 1 for others. It scores the documents found by words and the nearest documents. It omits the nearest
// documents if enough documents found by words rank higher in any case.
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

// topHits returns the most hits with the highest scores, scaled so that the best score is 1.
func (f *hitFusion) topHits(most int) []Hit {
	slices.SortFunc(f.hits, compareHits)
	hits := f.hits[:min(len(f.hits), most)]
	for i := len(hits) - 1; i >= 0; i-- {
		hits[i].Score /= hits[0].Score
	}
	return hits
}

// dropFarHits removes the hits whose texts have a cosine below the minimum, except the best hit.
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
// the farthest. Scores are relative to the farthest text, because each model has a different cosine for unrelated
// texts. The set under contains the texts whose cosine is below MinCosine. If the model returns no result, both maps
// are nil.
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
