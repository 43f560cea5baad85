package index

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"
)

// MinTop is the number of tools that a ranking should contain: the scores Recall20 and All20 use the first 20 tools.
const MinTop = 20

// A RankFunc returns the IDs of at most most tools for a question, best first.
type RankFunc func(ctx context.Context, question string, most int) []string

// A Ranking contains the ranked tool IDs for a question. ID is the ID of the question.
type Ranking struct {
	ID     string   `json:"id"`
	Ranked []string `json:"ranked"`
	// Millis is the duration of the search in milliseconds.
	Millis float64 `json:"ms"`
}

// RunQueries calls rank for each question, one after the other, and returns the rankings. It returns the error of ctx
// if ctx is done.
func RunQueries(ctx context.Context, rank RankFunc, queries []EvalQuery, most int) ([]Ranking, error) {
	rows := make([]Ranking, 0, len(queries))
	for _, q := range queries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		begun := time.Now()
		ranked := rank(ctx, q.Query, most)
		rows = append(rows, Ranking{q.ID, ranked, float64(time.Since(begun).Microseconds()) / 1000})
	}
	return rows, nil
}

// LatencyPercentiles returns the median and the 95th percentile of the durations, in milliseconds.
func LatencyPercentiles(rows []Ranking) (p50, p95 float64) {
	if len(rows) == 0 {
		return 0, 0
	}
	all := make([]float64, len(rows))
	for i, r := range rows {
		all[i] = r.Millis
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*95/100]
}

// A Score contains measures of ranking quality, from 0 to 1. Each is the mean over all questions of a kind.
type Score struct {
	Kind    string `json:"kind"`
	Queries int    `json:"queries"`
	// Recall5 is the share of the needed tools that are among the first 5 tools of the ranking. Recall20 is the share
	// that are among the first 20 tools.
	Recall5  float64 `json:"recall@5"`
	Recall20 float64 `json:"recall@20"`
	// NDCG10 is the normalized discounted cumulative gain of the needed tools among the first 10 tools.
	NDCG10 float64 `json:"ndcg@10"`
	// Hit1 is the share of questions for which the first tool of the ranking is a needed tool. All20 is the share of
	// questions for which all needed tools are among the first 20 tools.
	Hit1  float64 `json:"hit@1"`
	All20 float64 `json:"all@20"`
}

// ScoreRankings returns the score over all questions, which has an empty Kind, and then the score of each kind,
// sorted by kind. Questions without needed tools are ignored; if all questions are ignored, the result is empty. A
// question without a ranking counts as a question whose needed tools were not found.
func ScoreRankings(queries []EvalQuery, rows []Ranking) []Score {
	found := map[string][]string{}
	for _, r := range rows {
		found[r.ID] = r.Ranked
	}
	sums := map[string]*Score{}
	for _, q := range queries {
		needed := q.NeededGroups()
		if len(needed) == 0 {
			continue
		}
		one := scoreQuery(needed, found[q.ID])
		for _, kind := range slices.Compact([]string{"", q.Kind}) {
			if sums[kind] == nil {
				sums[kind] = &Score{Kind: kind}
			}
			sums[kind].add(one, 1)
		}
	}
	var all []Score
	for _, s := range sums {
		all = append(all, s.dividedBy(float64(s.Queries)))
	}
	slices.SortFunc(all, func(a, b Score) int { return cmp.Compare(a.Kind, b.Kind) })
	return all
}

// MeanScore returns the mean of several scores. Each score has the same weight, even if it is a mean over fewer
// questions.
func MeanScore(scores []Score) Score {
	var sum Score
	for _, s := range scores {
		sum.add(s, s.Queries)
	}
	return sum.dividedBy(float64(max(len(scores), 1)))
}

func (s *Score) add(o Score, queries int) {
	s.Queries += queries
	s.Recall5 += o.Recall5
	s.Recall20 += o.Recall20
	s.NDCG10 += o.NDCG10
	s.Hit1 += o.Hit1
	s.All20 += o.All20
}

func (s Score) dividedBy(n float64) Score {
	return Score{s.Kind, s.Queries, s.Recall5 / n, s.Recall20 / n, s.NDCG10 / n, s.Hit1 / n, s.All20 / n}
}

// scoreQuery returns the score of one question. needed contains the groups of needed tools, and ranked the IDs in the
// ranking.
func scoreQuery(needed [][]string, ranked []string) Score {
	place := map[string]int{}
	for _, id := range ranked {
		if place[id] == 0 {
			place[id] = len(place) + 1
		}
	}
	var s Score
	var gain, possible float64
	missed := 0
	for i, group := range needed {
		at := math.MaxInt
		for _, id := range group {
			if n := place[id]; n > 0 {
				at = min(at, n)
			}
		}
		if at == 1 {
			s.Hit1 = 1
		}
		if at <= 5 {
			s.Recall5++
		}
		if at <= 20 {
			s.Recall20++
		} else {
			missed++
		}
		if at <= 10 {
			gain += 1 / math.Log2(float64(at)+1)
		}
		if i < 10 {
			possible += 1 / math.Log2(float64(i)+2)
		}
	}
	if missed == 0 {
		s.All20 = 1
	}
	s.Recall5 /= float64(len(needed))
	s.Recall20 /= float64(len(needed))
	s.NDCG10 = gain / possible
	return s
}
