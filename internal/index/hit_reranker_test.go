package index_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/google/go-cmp/cmp"
)

// A fakeReranker says what it is told to.
type fakeReranker func(ctx context.Context, question string, texts []string) ([]float64, error)

func (f fakeReranker) Rerank(ctx context.Context, question string, texts []string) ([]float64, error) {
	return f(ctx, question, texts)
}

func three() []index.Hit {
	return []index.Hit{{ID: "a", Score: 1}, {ID: "b", Score: 0.5}, {ID: "c", Score: 0.25}}
}

func TestJudgePutsTheFirstInOrder(t *testing.T) {
	var judged []string
	j := index.NewHitReranker(fakeReranker(func(_ context.Context, question string, texts []string) ([]float64, error) {
		judged = append([]string{question}, texts...)
		return []float64{-2, 0.1}, nil
	}), index.HitRerankerOptions{MaxHits: 2})
	got := j.Rerank(t.Context(), "q", three(), func(id string) string { return "text of " + id })
	want := []index.Hit{{ID: "b", Score: 1}, {ID: "a", Score: 0.5}, {ID: "c", Score: 0.25}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"q", "text of a", "text of b"}, judged); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(index.HitRerankerStatus{Asked: 1}, j.Status()); diff != "" {
		t.Error(diff)
	}
}

func TestJudgeKeepsOrderOfEquals(t *testing.T) {
	j := index.NewHitReranker(fakeReranker(func(context.Context, string, []string) ([]float64, error) {
		return []float64{1, 1, 1}, nil
	}), index.HitRerankerOptions{})
	if diff := cmp.Diff(three(), j.Rerank(t.Context(), "q", three(), func(string) string { return "" })); diff != "" {
		t.Error(diff)
	}
}

// TestRerankerDown has the model that judges be slow, away, and wrong: hits stay as they are, within the deadline, and
// after a few times at once.
func TestRerankerDown(t *testing.T) {
	for name, model := range map[string]fakeReranker{
		"slow": func(ctx context.Context, _ string, _ []string) ([]float64, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"away": func(context.Context, string, []string) ([]float64, error) {
			return nil,
				errors.New("refused")
		},
		"too few scores": func(context.Context, string, []string) ([]float64, error) { return []float64{1}, nil },
		"no numbers": func(context.Context, string, []string) ([]float64, error) {
			return []float64{1,
				math.NaN(), 2}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, well := 0, false
				j := index.NewHitReranker(fakeReranker(func(ctx context.Context, question string,
					texts []string) ([]float64, error) {
					asked++
					if well {
						return []float64{1, 2, 3}, nil
					}
					return model(ctx, question, texts)
				}), index.HitRerankerOptions{})
				for range 10 {
					began := time.Now()
					if diff := cmp.Diff(three(), j.Rerank(t.Context(), "q", three(),
						func(string) string { return "" })); diff != "" {
						t.Error(diff)
					}
					if took := time.Since(began); took > time.Second {
						t.Error(took)
					}
				}
				if s := j.Status(); asked != 3 || s.Away.IsZero() || s.Err == "" || s.Missed != 3 {
					t.Errorf("asked %d times: %+v", asked, s)
				}
				well = true
				<-time.After(time.Minute)
				if got := j.Rerank(t.Context(), "q", three(), func(string) string { return "" }); got[0].ID != "c" {
					t.Error(got)
				}
				if s := j.Status(); !s.Away.IsZero() || s.Err != "" {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestAskerGone has who asks go away: that is no fault of the model's.
func TestAskerGone(t *testing.T) {
	j := index.NewHitReranker(fakeReranker(func(ctx context.Context, _ string, _ []string) ([]float64,
		error) {
		return nil, ctx.Err()
	}), index.HitRerankerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		j.Rerank(ctx, "q", three(), func(string) string { return "" })
	}
	if diff := cmp.Diff(index.HitRerankerStatus{}, j.Status()); diff != "" {
		t.Error(diff)
	}
}

// TestFindIsJudged has an index ask a model that judges about what its documents say now.
func TestFindIsJudged(t *testing.T) {
	var judged []string
	x := index.New(index.Options{Reranker: index.NewHitReranker(fakeReranker(func(_ context.Context, _ string,
		texts []string) ([]float64, error) {
		judged = texts
		scores := make([]float64, len(texts))
		scores[len(scores)-1] = 1
		return scores, nil
	}), index.HitRerankerOptions{})})
	old := tool("fs", "read_file", "Read the file of old", "path")
	docs := desk()
	x.Update([]index.Document{old}, nil)
	x.Update(docs, []string{"github__get_file_contents"})
	plain := index.New(index.Options{})
	plain.Update(docs, nil)
	search := index.Query{Text: "read a file", Limit: 2}
	want, got := plain.Find(t.Context(), search), x.Find(t.Context(), search)
	if len(got) != 2 || got[0].ID != want[1].ID || got[1].ID != want[0].ID || got[0].Score != 1 {
		t.Errorf("%v, want the other way round %v", got, want)
	}
	byID := map[string]string{}
	for _, d := range docs {
		byID[d.ID] = d.EmbeddingText()
	}
	if diff := cmp.Diff([]string{byID[want[0].ID], byID[want[1].ID]}, judged); diff != "" {
		t.Error(diff)
	}
}

// TestIndexTellsALibrary has documents reach a library by way of an index.
func TestIndexTellsALibrary(t *testing.T) {
	m := newModel(26)
	l := index.NewEmbeddingIndex(m, index.EmbeddingIndexOptions{})
	x := index.New(index.Options{Remote: l})
	x.Update(desk(), nil)
	if err := l.EmbedAll(t.Context(), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if s := l.Status(); s.Vectors != len(desk()) {
		t.Errorf("%+v", s)
	}
}
