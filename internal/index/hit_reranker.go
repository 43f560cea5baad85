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

// DefaultRerankDeadline is how long a question waits for the rerank model by default.
const DefaultRerankDeadline = time.Second

// defaultReranked is how many hits are judged.
const defaultReranked = 20

// A HitReranker has a model that reads question and text together put the first hits of an answer in order. When the
// model is slow, or away, the hits stay as they are. Its methods may be called from several goroutines.
type HitReranker struct {
	reranker Reranker
	o        HitRerankerOptions

	mu      sync.Mutex
	breaker circuitBreaker
	last    lastError
	state   HitRerankerStatus
}

// HitRerankerOptions are what a judge can do without.
type HitRerankerOptions struct {
	// MaxHits is how many hits are judged; 0 means 20.
	MaxHits int
	// Deadline is how long a question waits; 0 means a second.
	Deadline time.Duration
	// Logger is told when the model goes away and comes back; nil is silence.
	Logger *slog.Logger
}

// HitRerankerStatus is the state of a HitReranker.
type HitRerankerStatus struct {
	// Asked are the questions that were judged, Missed those of them that kept the order that they had.
	Asked  int `json:"asked,omitempty"`
	Missed int `json:"missed,omitempty"`
	// Away is since when the model does not answer; zero where it does.
	Away time.Time `json:"away,omitzero"`
	// Err is what went wrong last, without secrets, and At when; empty where it went well since.
	Err string    `json:"error,omitempty"`
	At  time.Time `json:"error_at,omitzero"`
}

// NewHitReranker makes a judge.
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

// Rerank returns the hits, the first ones in the order of the model. The list of scores stays the same, so that it
// keeps falling. text returns the text of a document.
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

// allowRequest reports whether the model may be asked: while it is away one question now and then is.
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

// noteCancelled takes note of a question whose asker went away, which says nothing of the model.
func (j *HitReranker) noteCancelled() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.breaker.open.IsZero() {
		j.breaker.next = time.Now()
	}
}

// noteResult takes note of how a question fared.
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
