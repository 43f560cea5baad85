package index

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"
)

// DefaultRerankDeadline is the default time limit for reranking.
const DefaultRerankDeadline = time.Second

// defaultReranked is the default number of hits that are reranked.
const defaultReranked = 20

// A HitReranker sorts the first hits of a search with a rerank model. The model reads the question together with the
// text of each hit. If the model is slow or unreachable, the order of the hits does not change. The methods are safe
// for concurrent use.
type HitReranker struct {
	reranker Reranker
	o        HitRerankerOptions

	mu      sync.Mutex
	breaker circuitBreaker
	last    lastError
	state   HitRerankerStatus
}

// HitRerankerOptions are the optional settings of a HitReranker.
type HitRerankerOptions struct {
	// MaxHits is the number of hits that are reranked; 0 means 20.
	MaxHits int
	// Deadline is the time limit for reranking; 0 means DefaultRerankDeadline.
	Deadline time.Duration
	// Logger receives a message when the model stops answering and when it answers again; nil disables logging.
	Logger *slog.Logger
}

// HitRerankerStatus is the state of a HitReranker.
type HitRerankerStatus struct {
	// Asked is the number of questions sent to the model. Missed is the number of these questions for which the model
	// failed, so that the order of the hits did not change.
	Asked  int `json:"asked,omitempty"`
	Missed int `json:"missed,omitempty"`
	// Away is the time at which the model stopped answering; zero if it answers.
	Away time.Time `json:"away,omitzero"`
	// Err is the last error, without secrets, and At its time. Both are empty after a success.
	Err string    `json:"error,omitempty"`
	At  time.Time `json:"error_at,omitzero"`
}

// NewHitReranker returns a HitReranker that uses r.
func NewHitReranker(r Reranker, o HitRerankerOptions) *HitReranker {
	if o.MaxHits <= 0 {
		o.MaxHits = defaultReranked
	}
	if o.Deadline <= 0 {
		o.Deadline = DefaultRerankDeadline
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &HitReranker{reranker: r, o: o}
}

// Status returns the state of the reranker.
func (j *HitReranker) Status() HitRerankerStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.state
	s.Away, s.Err, s.At = j.breaker.open, j.last.text, j.last.at
	return s
}

// Rerank returns the hits, with the first MaxHits hits sorted by the model. If the model fails, it returns the hits
// in the given order. Each position in the list has the same score as before, so that scores still decrease. The
// function text returns the text of a document.
func (j *HitReranker) Rerank(ctx context.Context, question string, hits []Hit, text func(id string) string) []Hit {
	n := min(len(hits), j.o.MaxHits)
	if n < 2 || question == "" || !j.allowRequest() {
		return hits
	}
	texts := make([]string, n)
	for i, h := range hits[:n] {
		texts[i] = text(h.ID)
	}
	within, cancel := context.WithTimeout(ctx, j.o.Deadline)
	defer cancel()
	scores, err := j.reranker.Rerank(within, question, texts)
	if err == nil && len(scores) != n {
		err = fmt.Errorf("the model returned %d scores for %d texts", len(scores), n)
	}
	if err == nil && slices.ContainsFunc(scores, math.IsNaN) {
		err = fmt.Errorf("the model returned a score that is not a number")
	}
	if err != nil && ctx.Err() != nil {
		j.noteCancelled()
		return hits
	}
	j.noteResult(err)
	if err != nil {
		return hits
	}
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	ordered := slices.Clone(hits)
	for i, place := range places {
		ordered[i] = hits[place]
		ordered[i].Score = hits[i].Score
	}
	return ordered
}

// allowRequest reports whether a question may be sent to the model. While the model does not answer, one question is
// allowed after each pause, to test whether it answers again.
func (j *HitReranker) allowRequest() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := &j.breaker
	if c.open.IsZero() {
		return true
	}
	if time.Now().Before(c.next) {
		return false
	}
	c.pause = min(2*c.pause, maxProbePause)
	c.next = time.Now().Add(c.pause)
	return true
}

// noteCancelled is called for a question whose search was cancelled. The question counts neither as a success nor as
// a failure. If it was a test of an unreachable model, the next question is the test.
func (j *HitReranker) noteCancelled() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.breaker.open.IsZero() {
		j.breaker.next = time.Now()
	}
}

// noteResult updates the status after a question; err is nil after a success.
func (j *HitReranker) noteResult(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Asked++
	j.last = newLastError(err)
	if err != nil {
		j.state.Missed++
		if j.breaker.fail(time.Now(), maxMissesInRow) {
			j.o.Logger.Warn("tools keep their order: the rerank model does not answer", "err",
				err)
		}
		return
	}
	if !j.breaker.open.IsZero() {
		j.o.Logger.Info("the rerank model answers again")
	}
	j.breaker = circuitBreaker{}
}
