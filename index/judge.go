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

// DefaultJudgeDeadline is how long a question waits for a model that judges where nobody says otherwise.
const DefaultJudgeDeadline = time.Second

// defaultJudged is how many hits are judged.
const defaultJudged = 20

// A Judge has a model that reads question and text together put the first hits of an answer in order. When the model is slow, or
// away, the hits stay as they are. Its methods may be called from several goroutines.
type Judge struct {
	reranker Reranker
	o        JudgeOptions

	mu      sync.Mutex
	circuit circuit
	last    fault
	state   JudgeStatus
}

// JudgeOptions are what a judge can do without.
type JudgeOptions struct {
	// Most is how many hits are judged; 0 means 20.
	Most int
	// Deadline is how long a question waits; 0 means a second.
	Deadline time.Duration
	// Logger is told when the model goes away and comes back; nil is silence.
	Logger *slog.Logger
}

// A JudgeStatus says how a judge is.
type JudgeStatus struct {
	// Asked are the questions that were judged, Missed those of them that kept the order that they had.
	Asked  int `json:"asked,omitempty"`
	Missed int `json:"missed,omitempty"`
	// Away is since when the model does not answer; zero where it does.
	Away time.Time `json:"away,omitzero"`
	// Err is what went wrong last, without secrets, and At when; empty where it went well since.
	Err string    `json:"error,omitempty"`
	At  time.Time `json:"error_at,omitzero"`
}

// NewJudge makes a judge.
func NewJudge(r Reranker, o JudgeOptions) *Judge {
	if o.Most <= 0 {
		o.Most = defaultJudged
	}
	if o.Deadline <= 0 {
		o.Deadline = DefaultJudgeDeadline
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Judge{reranker: r, o: o}
}

// Status says how it is.
func (j *Judge) Status() JudgeStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.state
	s.Away, s.Err, s.At = j.circuit.open, j.last.text, j.last.at
	return s
}

// Order gives the hits with the first of them in the model's order. The scores stay in their places, so that they fall all the
// same. Text gives what a document says.
func (j *Judge) Order(ctx context.Context, question string, hits []Hit, text func(id string) string) []Hit {
	n := min(len(hits), j.o.Most)
	if n < 2 || question == "" || !j.may() {
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
		err = fmt.Errorf("the model gave %d scores for %d texts", len(scores), n)
	}
	if err == nil && slices.ContainsFunc(scores, math.IsNaN) {
		err = fmt.Errorf("the model gave a score that is no number")
	}
	if err != nil && ctx.Err() != nil {
		j.leave()
		return hits
	}
	j.note(err)
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

// may says whether the model may be asked: while it is away one question now and then is.
func (j *Judge) may() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := &j.circuit
	if c.open.IsZero() {
		return true
	}
	if time.Now().Before(c.next) {
		return false
	}
	c.pause = min(2*c.pause, lastProbe)
	c.next = time.Now().Add(c.pause)
	return true
}

// leave takes note of a question whose asker went away, which says nothing of the model.
func (j *Judge) leave() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.circuit.open.IsZero() {
		j.circuit.next = time.Now()
	}
}

// note takes note of how a question fared.
func (j *Judge) note(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Asked++
	j.last = wrong(err)
	if err != nil {
		j.state.Missed++
		if j.circuit.fail(time.Now(), patience) {
			j.o.Logger.Warn("tools keep the order that they have: the model that judges them does not answer", "err", err)
		}
		return
	}
	if !j.circuit.open.IsZero() {
		j.o.Logger.Info("the model that judges tools answers again")
	}
	j.circuit = circuit{}
}
