package index

import (
	"context"
	"slices"
)

// How the arms count in a hit's score, each by its own best: words count 1.
//
// Scores are added up, not ranks: to mix ranks alike (RRF) lost 5 points of nDCG@10 against words alone, since the
// built-in encoder is the weaker of the two. The shares were chosen leaving one corpus out at a time: see
// docs/encoder.md.
const (
	// meaningWeight is that of the built-in encoder, and multiPartWeight what it is for a question in several parts: a
	// vector is of one thing, so there the nearest part counts, and words, which add up, are surer.
	meaningWeight, multiPartWeight = 0.7, 0.3
	// remoteWeight is that of vectors made elsewhere, which then take the built-in's place: a whole model is about as
	// sure as words.
	remoteWeight = 1
	// fusedHits is how many hits of each arm are fused: what is deeper in all of them comes into no answer.
	fusedHits = 200
)

// fusedSearch ranks with all rankers. Only the vector of the question itself is waited for.
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

// A hitFusion is the hits of one question while their scores are added up.
type hitFusion struct {
	hits []Hit
	at   map[string]int // by ID
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

// addMeaningScores adds how near documents lie to a question in parts: the nearest has 1 and none less than 0. Those
// count that words found and those that lie nearest, unless words found so many as are wanted that what only lies near
// can come behind them alone.
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

// topHits returns the hits with the highest scores, the best of which is 1.
func (f *hitFusion) topHits(most int) []Hit {
	slices.SortFunc(f.hits, compareHits)
	hits := f.hits[:min(len(f.hits), most)]
	for i := len(hits) - 1; i >= 0; i-- {
		hits[i].Score /= hits[0].Score
	}
	return hits
}

// dropFarHits lets go of the hits whose texts lie too far from the question, except for the best of all.
func (f *hitFusion) dropFarHits(x *meaningIndex, under map[TextKey]bool) {
	slices.SortFunc(f.hits, compareHits)
	best := true
	f.hits = slices.DeleteFunc(f.hits, func(h Hit) bool {
		out := !best && under[x.keys[x.byID[h.ID]]]
		best = false
		return out
	})
}

// remoteScores returns what vectors made elsewhere say, by the text: the nearest has 1, the farthest of those that were
// asked for 0. It is nil if they have no answer. How near a model puts what has nothing to do with the question is the
// model's own, so cosines count from the farthest up. Under are the texts whose cosine is under Least.
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
		asked = max(most, len(keys)) // the cosine of each is wanted
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
		least = min(least, 0) // none is left out, so the last need not be far
	}
	scores = make(map[TextKey]float64, len(near))
	for _, n := range near {
		scores[n.Key] = max(0, float64(n.Cosine-least)/max(float64(top-least), 1e-9))
	}
	return scores, under
}
