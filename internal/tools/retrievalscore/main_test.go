package main

import (
	"bytes"
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/google/go-cmp/cmp"
)

// sample is the sample that is in the tree.
func sample(t *testing.T) []corpus {
	t.Helper()
	corpora, err := read(filepath.Join("..", "..", "..", "testdata", "retrieval"))
	if err != nil {
		t.Fatal(err)
	}
	return corpora
}

// TestArmsOnTheSample holds what each arm finds of the sample: on no corpus less than it did, and on the whole better
// than plain BM25 by a margin, and than FTS5.
func TestArmsOnTheSample(t *testing.T) {
	corpora := sample(t)
	scores, err := scoreAll(context.Background(), corpora)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []gain{{index.RankLexical, plainBM25, 16}, {index.RankLexical, sqliteFTS, 1.3},
		{index.RankHybrid, plainBM25, 16.3}} {
		if _, got := over(scores, want.arm, want.than); got < want.least {
			t.Errorf("%s is %+.1f points over %s, want %+.1f", want.arm, got, want.than, want.least)
		}
	}
	for arm, least := range map[string]map[string]float64{ // in points of nDCG@10: the same on every machine
		index.RankLexical: {"bfcl": 80.3, "mcp": 81.5, "metatool": 76.6, "sealtools": 100, "toolbench": 91.7},
		index.RankHybrid:  {"bfcl": 83.2, "mcp": 79.0, "metatool": 77.7, "sealtools": 100, "toolbench": 91.7},
	} {
		for i, s := range scores[arm] {
			if want, ok := least[corpora[i].name]; !ok || 100*s[0].NDCG10 < want-0.1 {
				t.Errorf("%s, %s: nDCG@10 is %.2f, and was %.1f", arm, corpora[i].name, 100*s[0].NDCG10, want)
			}
		}
	}
	for _, arm := range []string{index.RankLexical, index.RankHybrid} {
		if m := macro(scores[arm]); m.Recall20 < 0.85 || m.Recall5 < 0.84 {
			t.Errorf("%s finds %.3f among five, %.3f among twenty", arm, m.Recall5, m.Recall20)
		}
	}
}

// TestNobodyIsLeftWithNothing asks all questions of all tools of the sample: each has answers, the best first, each
// one once.
func TestNobodyIsLeftWithNothing(t *testing.T) {
	corpora := sample(t)
	tools := pool(corpora, math.MaxInt16)[:180]
	x, words := index.New(index.Options{}), index.NewLexicalIndex()
	x.Update(tools, nil)
	words.Update(tools, nil)
	for _, c := range corpora {
		for _, q := range c.queries {
			for arm, hits := range map[string][]index.Hit{index.RankLexical: words.Search(q.Query, 20),
				index.RankHybrid: x.Find(t.Context(), index.Query{Text: q.Query, Limit: 20})} {
				seen := map[string]bool{}
				for i, h := range hits {
					if seen[h.ID] || h.Score > 1 || h.Score <= 0 || i > 0 && h.Score > hits[i-1].Score {
						t.Errorf("%s: %q: %v", arm, q.Query, hits)
					}
					seen[h.ID] = true
				}
				if len(hits) == 0 {
					t.Errorf("%s: %q finds nothing", arm, q.Query)
				}
			}
		}
	}
}

func TestPool(t *testing.T) {
	corpora := sample(t)
	for _, n := range []int{1, 180, 1000} {
		ids := map[string]bool{}
		for _, tool := range pool(corpora, n) {
			ids[tool.ID] = true
		}
		if len(ids) != n {
			t.Errorf("%d tools of %d", len(ids), n)
		}
	}
}

func TestReport(t *testing.T) {
	asked := make([]index.EvalQuery, 300)
	corpora := []corpus{{name: "one", queries: asked}, {name: "two", queries: asked}}
	kinds := func(n float64) []index.Score {
		return []index.Score{{Queries: 2, NDCG10: n}, {Kind: "a", Queries: 1, NDCG10: n},
			{Kind: "b", Queries: 1, NDCG10: n}}
	}
	scores := map[string][][]index.Score{}
	for i, arm := range arms {
		n := 0.5 + 0.0625*float64(i)
		scores[arm] = [][]index.Score{kinds(n), kinds(n - 0.25)[:1]}
	}
	var b bytes.Buffer
	reportGains(&b, corpora, scores)
	want := `
Won and lost, in points of nDCG@10:

| | one | two | mean | wanted | |
|---|---|---|---|---|---|
| lexical over plain BM25 | +12.5 | +12.5 | **+12.5** | +10.0 | kept |
| lexical over SQLite FTS5 | +6.2 | +6.2 | **+6.2** | +2.5 | kept |
| hybrid over lexical | +6.2 | +6.2 | **+6.2** | +0.8 | kept |
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	reportGains(&b, []corpus{{name: "one", queries: asked[:9]}, {name: "two", queries: asked}}, scores)
	if text := b.String(); !strings.Contains(text, "| lexical over plain BM25 | +12.5 | +12.5 | **+12.5** |\n") ||
		strings.Contains(text, "kept") {
		t.Errorf("of few questions:\n%s", text)
	}
	b.Reset()
	reportScores(&b, corpora, scores)
	if n := strings.Count(b.String(), "\n| one | "); n != 2 {
		t.Errorf("%d kinds:\n%s", n, b.String())
	}
	b.Reset()
	judge(&b, index.RankLexical, map[int]speed{1500: {p95: 0.2}, few: {build: 400, p50: 1, p95: 0.2, heap: 41},
		many: {p50: 11, build: 3000}})
	if n := strings.Count(b.String(), verdict(false)); n != 3 {
		t.Errorf("%d bars are missed:\n%s", n, b.String())
	}
}
