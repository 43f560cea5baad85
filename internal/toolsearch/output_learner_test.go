package toolsearch

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// An outputBook keeps what a learner stores; each string is a schema of one tool.
type outputBook struct {
	mu      sync.Mutex
	err     error
	schemas map[string]string
	results map[string]int
}

func newOutputBook() *outputBook {
	return &outputBook{schemas: map[string]string{}, results: map[string]int{}}
}

func (b *outputBook) UpdateLearnedOutput(ctx context.Context, tool LearnedTool, _ string, results int,
	update func(json.RawMessage) json.RawMessage) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	b.schemas[tool.Tool] = string(update(json.RawMessage(b.schemas[tool.Tool])))
	b.results[tool.Tool] += results
	return ctx.Err()
}

func (b *outputBook) LearnedOutput(_ context.Context, tool LearnedTool, _ string) (LearnedOutput, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return LearnedOutput{Schema: json.RawMessage(b.schemas[tool.Tool]), Results: b.results[tool.Tool], Version: 1}, b.err
}

func (b *outputBook) ForgetLearnedOutputs(context.Context, []string) error { return b.err }

func (b *outputBook) learned() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]int{}
	for tool, n := range b.results {
		all[tool] = n
	}
	return all
}

// TestLearnerRuns has results learned from soon after they were submitted, and the last ones at the end.
func TestLearnerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newOutputBook()
		l := NewOutputLearner(b, NameCheck{}, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.Run(ctx) }()
		result := json.RawMessage(`{"structuredContent":{"a":1}}`)
		l.Submit(LearnedTool{Tool: "x"}, result)
		l.Submit(LearnedTool{Tool: "x"}, result)
		l.Submit(LearnedTool{Tool: "error"}, json.RawMessage(`{"isError":true,"structuredContent":{"a":1}}`))
		synctest.Wait()
		if got := b.learned(); len(got) > 0 {
			t.Errorf("learned on the path of the call: %v", got)
		}
		<-time.After(learnDelay)
		synctest.Wait()
		if diff := cmp.Diff(map[string]int{"x": 2}, b.learned()); diff != "" {
			t.Errorf("after the delay (-want +got):\n%s", diff)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		l.Submit(LearnedTool{Tool: "y"}, result)
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		l.Submit(LearnedTool{Tool: "z"}, result)
		if diff := cmp.Diff(map[string]int{"x": 2, "y": 1}, b.learned()); diff != "" {
			t.Errorf("after the end (-want +got):\n%s", diff)
		}
	})
}

// TestLearnerIsBounded has more results than the queue takes, and a result that is too large.
func TestLearnerIsBounded(t *testing.T) {
	b := newOutputBook()
	l := NewOutputLearner(b, NameCheck{}, slog.New(slog.DiscardHandler))
	l.Submit(LearnedTool{Tool: "large"}, json.RawMessage(`"`+strings.Repeat("x", MaxLearnedResult)+`"`))
	half := json.RawMessage(`{"structuredContent":"` + strings.Repeat("x", MaxLearnedResult/2) + `"}`)
	for range maxQueuedResults {
		l.Submit(LearnedTool{Tool: "half"}, half)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := maxQueuedBytes / len(half)
	if diff := cmp.Diff(map[string]int{"half": n}, b.learned()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLearnerReadsOnlyItsOwnSchemas has a store with a schema that the learner did not write, and one that fails.
func TestLearnerReadsOnlyItsOwnSchemas(t *testing.T) {
	b := newOutputBook()
	b.schemas["x"] = `{"type":"string","description":"obey"}`
	var logged strings.Builder
	l := NewOutputLearner(b, NameCheck{}, slog.New(slog.NewTextHandler(&logged, nil)))
	b.results["x"] = 1
	if out, ok := l.Output(t.Context(), LearnedTool{Tool: "x"}); ok {
		t.Errorf("a damaged schema was returned: %+v", out)
	}
	l.Submit(LearnedTool{Tool: "x"}, json.RawMessage(`{"structuredContent":1}`))
	out, ok := l.Output(t.Context(), LearnedTool{Tool: "x"})
	if diff := cmp.Diff(LearnedOutput{Schema: json.RawMessage(`{"type":"integer"}`), Results: 2, Version: 1}, out); diff != "" || !ok {
		t.Errorf("%v (-want +got):\n%s", ok, diff)
	}
	b.err = errors.New("the disk is full")
	l.Submit(LearnedTool{Tool: "x"}, json.RawMessage(`{"structuredContent":"secret"}`))
	if out, ok := l.Output(t.Context(), LearnedTool{Tool: "x"}); ok {
		t.Errorf("a store that fails returned %+v", out)
	}
	if got := logged.String(); !strings.Contains(got, "the disk is full") || strings.Contains(got, "secret") {
		t.Errorf("logged %s", got)
	}
	var none *OutputLearner
	none.Submit(LearnedTool{}, nil)
	if _, ok := none.Output(t.Context(), LearnedTool{}); ok || none.Forget(t.Context(), "h") != nil || none.Close(t.Context()) != nil {
		t.Error("a nil learner learned")
	}
}
