package index

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxCachedQuestions is how many questions' vectors are remembered.
	maxCachedQuestions = 256
	// maxMissesInRow is how many questions in a row go without an answer until none is sent.
	maxMissesInRow = 3
	// The first time after which it is looked whether the model is back, and the longest.
	firstProbePause, maxProbePause = time.Second, time.Minute
)

// probeText is a text that is embedded to see whether the model is there, and the one that it was.
const probeText = "read a file from the disk"

// questionCache remember the vectors of questions, the last ones that were asked; two that ask the same at once wait
// for one answer.
type questionCache struct {
	// era is the library's: what is of an earlier one is worth nothing.
	era *atomic.Int64

	mu      sync.Mutex
	cached  map[string]*list.Element // of remembered
	order   list.List                // the last one asked first
	pending map[string]*pendingQuestion
	// currentEra is the era that all of it is of.
	currentEra int64
}

type cachedQuestion struct {
	question string
	vector   []float32
}

// A pendingQuestion question is one that the model was asked. Vector and err are there when done is closed.
type pendingQuestion struct {
	done   chan struct{}
	era    int64 // the era in which it was asked
	vector []float32
	err    error
}

func newQuestionCache(era *atomic.Int64) *questionCache {
	return &questionCache{era: era, cached: map[string]*list.Element{}, pending: map[string]*pendingQuestion{}}
}

// dropOldEra lets go of all that is of an earlier era. It needs mu.
func (q *questionCache) dropOldEra() {
	now := q.era.Load()
	if q.currentEra == now {
		return
	}
	q.currentEra = now
	q.order.Init()
	clear(q.cached)
	clear(q.pending)
}

// findOrBegin returns the vector of a question, or the pending question; first is true if the caller must ask the
// model.
func (q *questionCache) findOrBegin(question string) (vector []float32, g *pendingQuestion, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropOldEra()
	if e := q.cached[question]; e != nil {
		q.order.MoveToFront(e)
		return e.Value.(cachedQuestion).vector, nil, false
	}
	if g := q.pending[question]; g != nil {
		return nil, g, false
	}
	g = &pendingQuestion{done: make(chan struct{}), era: q.currentEra}
	q.pending[question] = g
	return nil, g, true
}

// finish ends a question that goes on.
func (q *questionCache) finish(question string, g *pendingQuestion, vector []float32, err error) {
	g.vector, g.err = vector, err
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropOldEra()
	if q.pending[question] == g {
		delete(q.pending, question)
	}
	if err == nil && g.era == q.currentEra {
		q.cached[question] = q.order.PushFront(cachedQuestion{question, vector})
		if q.order.Len() > maxCachedQuestions {
			delete(q.cached, q.order.Remove(q.order.Back()).(cachedQuestion).question)
		}
	}
	close(g.done)
}

// A circuitBreaker is open while no question is sent.
type circuitBreaker struct {
	failures int
	open     time.Time
	// next is when it is looked whether the model is back, pause the time until the look after it.
	next  time.Time
	pause time.Duration
}

func (c *circuitBreaker) fail(now time.Time, most int) (opened bool) {
	c.failures++
	if c.failures < most || !c.open.IsZero() {
		return false
	}
	c.open, c.pause = now, firstProbePause
	c.next = now.Add(firstProbePause)
	return true
}

// questionVector returns the vector of a question, until the context within ends. The end of the caller's own context
// does not count as a failure of the model.
func (l *EmbeddingIndex) questionVector(caller, within context.Context, asked *questionCache,
	question string) ([]float32, error) {
	for {
		v, g, first := asked.findOrBegin(question)
		switch {
		case g == nil:
			return v, nil
		case !first:
			select {
			case <-g.done:
			case <-within.Done():
				return nil, within.Err()
			}
			if g.err == nil || !errors.Is(g.err, errCallerGone) {
				return g.vector, g.err
			}
			continue // who asked went away, and the model may answer yet
		case l.isModelAway():
			asked.finish(question, g, nil, errModelAway)
			return nil, errModelAway
		}
		v, err := l.embedQuestion(within, question)
		if err != nil && caller.Err() != nil {
			asked.finish(question, g, nil, errCallerGone)
			return nil, caller.Err()
		}
		l.noteQuestion(err, err == nil || errors.Is(err, ErrTextRefused))
		asked.finish(question, g, v, err)
		return v, err
	}
}

var errCallerGone = errors.New("who asked went away")

func (l *EmbeddingIndex) embedQuestion(ctx context.Context, question string) ([]float32, error) {
	vectors, err := l.embedder.Embed(ctx, RoleQuery, []string{question})
	if err != nil {
		return nil, err
	}
	if err := checkVectors(vectors, 1); err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// checkVectors returns an error for an invalid result of an embedder.
func checkVectors(vectors [][]float32, texts int) error {
	if len(vectors) != texts {
		return fmt.Errorf("the model returned %d vectors for %d texts", len(vectors), texts)
	}
	for _, v := range vectors {
		if n := len(v); n == 0 || n > maxDimension {
			return fmt.Errorf("the model returned a vector of %d dimensions", n)
		}
		if len(v) != len(vectors[0]) {
			return fmt.Errorf("the model returned vectors of %d and of %d dimensions", len(vectors[0]), len(v))
		}
	}
	return nil
}

func (l *EmbeddingIndex) isModelAway() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.breaker.open.IsZero()
}

// noteQuestion takes note of how a question fared. The model is well if it answers, be it that it refuses the question.
func (l *EmbeddingIndex) noteQuestion(err error, well bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Asked++
	if err != nil {
		l.state.Missed++
	}
	l.questionError = newLastError(err)
	if well {
		l.breaker.failures = 0
		return
	}
	l.noteFailure(err, maxMissesInRow)
}

// noteFailure takes note that the model did not answer, and stops asking it questions where that was so often. It
// needs mu.
func (l *EmbeddingIndex) noteFailure(err error, most int) {
	if l.breaker.fail(time.Now(), most) {
		l.o.Logger.Warn("tools are found by words only: the embedding model does not answer", "model",
			l.embedder.Model(), "err", err)
		l.wakeRun()
	}
}

// probeModel sees whether a model that was away is back: within the deadline, as a question would have to be.
func (l *EmbeddingIndex) probeModel(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, l.o.Deadline)
	defer cancel()
	_, err := l.embedQuestion(within, probeText)
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.breaker
	if err != nil {
		l.questionError = newLastError(err)
		c.pause = min(2*c.pause, maxProbePause)
		c.next = time.Now().Add(c.pause)
		return
	}
	*c = circuitBreaker{}
	l.questionError, l.modelVerified = lastError{}, false // it may be another model now
	l.o.Logger.Info("the embedding model answers again", "model", l.embedder.Model())
}
