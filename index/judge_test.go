package index_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/index"
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
	j := index.NewJudge(fakeReranker(func(_ context.Context, question string, texts []string) ([]float64, error) {
		judged = append([]string{question}, texts...)
		return []float64{-2, 0.1}, nil
	}), index.JudgeOptions{Most: 2})
	got := j.Order(t.Context(), "q", three(), func(id string) string { return "text of " + id })
	want := []index.Hit{{ID: "b", Score: 1}, {ID: "a", Score: 0.5}, {ID: "c", Score: 0.25}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"q", "text of a", "text of b"}, judged); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(index.JudgeStatus{Asked: 1}, j.Status()); diff != "" {
		t.Error(diff)
	}
}

func TestJudgeKeepsOrderOfEquals(t *testing.T) {
	j := index.NewJudge(fakeReranker(func(context.Context, string, []string) ([]float64, error) {
		return []float64{1, 1, 1}, nil
	}), index.JudgeOptions{})
	if diff := cmp.Diff(three(), j.Order(t.Context(), "q", three(), func(string) string { return "" })); diff != "" {
		t.Error(diff)
	}
}

// TestRerankerDown has the model that judges be slow, away, and wrong: hits stay as they are, within the deadline, and after a few
// times at once.
func TestRerankerDown(t *testing.T) {
	for name, model := range map[string]fakeReranker{
		"slow": func(ctx context.Context, _ string, _ []string) ([]float64, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"away":           func(context.Context, string, []string) ([]float64, error) { return nil, errors.New("refused") },
		"too few scores": func(context.Context, string, []string) ([]float64, error) { return []float64{1}, nil },
		"no numbers":     func(context.Context, string, []string) ([]float64, error) { return []float64{1, math.NaN(), 2}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, well := 0, false
				j := index.NewJudge(fakeReranker(func(ctx context.Context, question string, texts []string) ([]float64, error) {
					asked++
					if well {
						return []float64{1, 2, 3}, nil
					}
					return model(ctx, question, texts)
				}), index.JudgeOptions{})
				for range 10 {
					began := time.Now()
					if diff := cmp.Diff(three(), j.Order(t.Context(), "q", three(), func(string) string { return "" })); diff != "" {
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
				if got := j.Order(t.Context(), "q", three(), func(string) string { return "" }); got[0].ID != "c" {
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
	j := index.NewJudge(fakeReranker(func(ctx context.Context, _ string, _ []string) ([]float64, error) { return nil, ctx.Err() }), index.JudgeOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		j.Order(ctx, "q", three(), func(string) string { return "" })
	}
	if diff := cmp.Diff(index.JudgeStatus{}, j.Status()); diff != "" {
		t.Error(diff)
	}
}
