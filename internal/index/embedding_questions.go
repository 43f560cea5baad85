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
	// maxCachedQuestions is the maximum number of questions with a cached vector.
	maxCachedQuestions = 256
	// maxMissesInRow is the number of consecutive failed questions after which the model counts as unreachable, and
	// no more questions are sent.
	maxMissesInRow = 3
	// firstProbePause is the pause before the first test of an unreachable model. After each failed test the pause
	// doubles, up to maxProbePause.
	firstProbePause, maxProbePause = time.Second, time.Minute
)

// probeText is a constant text. The index embeds it to test whether the model answers, and whether it was replaced by
// another model.
const probeText = "read a file from the disk"

// A questionCache caches the vectors of the last questions. Concurrent searches for the same question share one
// request to the model.
type questionCache struct {
	// era points to EmbeddingIndex.era. Vectors that were computed in an earlier era are invalid.
	era *atomic.Int64

	mu      sync.Mutex
	cached  map[string]*list.Element // elements of order, by question
	order   list.List                // most recently asked first
	pending map[string]*pendingQuestion
	// currentEra is the era to which all cached vectors belong.
	currentEra int64
}

type cachedQuestion struct {
	question string
	vector   []float32
}

// A pendingQuestion is a question that was sent to the model. Its vector and err are valid after done is closed.
type pendingQuestion struct {
	done   chan struct{}
	era    int64 // the era in which the question was sent
	vector []float32
	err    error
}

func newQuestionCache(era *atomic.Int64) *questionCache {
	return &questionCache{era: era, cached: map[string]*list.Element{}, pending: map[string]*pendingQuestion{}}
}

// dropOldEra empties the cache if its vectors belong to an earlier era than the current one. The caller must hold
// q.mu.
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

// findOrBegin returns the cached vector of a question. If there is none, it returns a pending question. first is true
// if the pending question is new. The caller must then send the question to the model and call finish.
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

// finish completes a pending question with a vector or an error, and caches the vector.
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

// A circuitBreaker prevents requests while the model does not answer. open is the time of the last failure before
// requests were stopped; it is zero while requests are allowed.
type circuitBreaker struct {
	failures int
	open     time.Time
	// next is the time of the next test of the model. pause is the time between that test and the following one.
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

// questionVector returns the vector of a question. It returns an error when the context within is done. If the
// context caller is done too, the search was cancelled, and the failure does not count as a failure of the model.
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
			continue // the search that sent the question was cancelled: send it again
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

// checkVectors returns an error if the result of an Embedder is invalid.
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

// noteQuestion updates the status after a question. well reports whether the model works. It is also true if the
// model refused the text of the question.
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

// noteFailure counts a failure of the model. At the consecutive failure with the number most, it stops sending
// questions. The caller must hold l.mu.
func (l *EmbeddingIndex) noteFailure(err error, most int) {
	if l.breaker.fail(time.Now(), most) {
		l.o.Logger.Warn("tools are found by words only: the embedding model does not answer", "model",
			l.embedder.Model(), "err", err)
		l.wakeRun()
	}
}

// probeModel tests whether an unreachable model answers again within the deadline of a question. If it does,
// questions are sent to it again; otherwise probeModel sets the time of the next test.
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
	l.questionError, l.modelVerified = lastError{}, false // the model may have been replaced
	l.o.Logger.Info("the embedding model answers again", "model", l.embedder.Model())
}
