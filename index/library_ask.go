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
	// maxQuestions is how many questions' vectors are remembered.
	maxQuestions = 256
	// patience is how many questions in a row go without an answer until none is sent.
	patience = 3
	// The first time after which it is looked whether the model is back, and the longest.
	firstProbe, lastProbe = time.Second, time.Minute
)

// probe is a text that is embedded to see whether the model is there, and the one that it was.
const probe = "read a file from the disk"

// questions remember the vectors of questions, the last ones that were asked; two that ask the same at once wait for one answer.
type questions struct {
	// era is the library's: what is of an earlier one is worth nothing.
	era *atomic.Int64

	mu    sync.Mutex
	kept  map[string]*list.Element // of remembered
	order list.List                // the last one asked first
	going map[string]*going
	// of is the era that all of it is of.
	of int64
}

type remembered struct {
	question string
	vector   []float32
}

// A going question is one that the model was asked. Vector and err are there when done is closed.
type going struct {
	done   chan struct{}
	of     int64 // the era in which it was asked
	vector []float32
	err    error
}

func newQuestions(era *atomic.Int64) *questions {
	return &questions{era: era, kept: map[string]*list.Element{}, going: map[string]*going{}}
}

// renew lets go of all that is of an earlier era. It needs mu.
func (q *questions) renew() {
	now := q.era.Load()
	if q.of == now {
		return
	}
	q.of = now
	q.order.Init()
	clear(q.kept)
	clear(q.going)
}

// find gives the vector of a question, or the question as it goes on; first says that the caller is to ask it.
func (q *questions) find(question string) (vector []float32, g *going, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.renew()
	if e := q.kept[question]; e != nil {
		q.order.MoveToFront(e)
		return e.Value.(remembered).vector, nil, false
	}
	if g := q.going[question]; g != nil {
		return nil, g, false
	}
	g = &going{done: make(chan struct{}), of: q.of}
	q.going[question] = g
	return nil, g, true
}

// answer ends a question that goes on.
func (q *questions) answer(question string, g *going, vector []float32, err error) {
	g.vector, g.err = vector, err
	q.mu.Lock()
	defer q.mu.Unlock()
	q.renew()
	if q.going[question] == g {
		delete(q.going, question)
	}
	if err == nil && g.of == q.of {
		q.kept[question] = q.order.PushFront(remembered{question, vector})
		if q.order.Len() > maxQuestions {
			delete(q.kept, q.order.Remove(q.order.Back()).(remembered).question)
		}
	}
	close(g.done)
}

// A circuit is open while no question is sent.
type circuit struct {
	failures int
	open     time.Time
	// next is when it is looked whether the model is back, pause the time until the look after it.
	next  time.Time
	pause time.Duration
}

func (c *circuit) fail(now time.Time, most int) (opened bool) {
	c.failures++
	if c.failures < most || !c.open.IsZero() {
		return false
	}
	c.open, c.pause = now, firstProbe
	c.next = now.Add(firstProbe)
	return true
}

// vector gives the vector of a question, in the time that within leaves. The caller's own end is no fault of the model's.
func (l *Library) vector(caller, within context.Context, asked *questions, question string) ([]float32, error) {
	for {
		v, g, first := asked.find(question)
		switch {
		case g == nil:
			return v, nil
		case !first:
			select {
			case <-g.done:
			case <-within.Done():
				return nil, within.Err()
			}
			if g.err == nil || !errors.Is(g.err, errGone) {
				return g.vector, g.err
			}
			continue // who asked went away, and the model may answer yet
		case l.isAway():
			asked.answer(question, g, nil, errAway)
			return nil, errAway
		}
		v, err := l.embedQuestion(within, question)
		if err != nil && caller.Err() != nil {
			asked.answer(question, g, nil, errGone)
			return nil, caller.Err()
		}
		l.note(err, err == nil || errors.Is(err, ErrRefused))
		asked.answer(question, g, v, err)
		return v, err
	}
}

var errGone = errors.New("who asked went away")

func (l *Library) embedQuestion(ctx context.Context, question string) ([]float32, error) {
	vectors, err := l.embedder.Embed(ctx, Asked, []string{question})
	if err != nil {
		return nil, err
	}
	if err := checkVectors(vectors, 1); err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// checkVectors says what is wrong with what an embedder gave.
func checkVectors(vectors [][]float32, texts int) error {
	if len(vectors) != texts {
		return fmt.Errorf("the model gave %d vectors for %d texts", len(vectors), texts)
	}
	for _, v := range vectors {
		if n := len(v); n == 0 || n > maxDimension {
			return fmt.Errorf("the model gave a vector of %d dimensions", n)
		}
		if len(v) != len(vectors[0]) {
			return fmt.Errorf("the model gave vectors of %d and of %d dimensions", len(vectors[0]), len(v))
		}
	}
	return nil
}

func (l *Library) isAway() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.circuit.open.IsZero()
}

// note takes note of how a question fared. The model is well if it answers, be it that it refuses the question.
func (l *Library) note(err error, well bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Asked++
	if err != nil {
		l.state.Missed++
	}
	l.asking = wrong(err)
	if well {
		l.circuit.failures = 0
		return
	}
	l.failed(err, patience)
}

// failed takes note that the model did not answer, and stops asking it questions where that was so often. It needs mu.
func (l *Library) failed(err error, most int) {
	if l.circuit.fail(time.Now(), most) {
		l.o.Logger.Warn("tools are found by words only: the embedding model does not answer", "model", l.embedder.Model(), "err", err)
		l.rouse()
	}
}

// look sees whether a model that was away is back: within the deadline, as a question would have to be.
func (l *Library) look(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, l.o.Deadline)
	defer cancel()
	_, err := l.embedQuestion(within, probe)
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.circuit
	if err != nil {
		l.asking = wrong(err)
		c.pause = min(2*c.pause, lastProbe)
		c.next = time.Now().Add(c.pause)
		return
	}
	*c = circuit{}
	l.asking, l.sure = fault{}, false // whoever came back may be another
	l.o.Logger.Info("the embedding model answers again", "model", l.embedder.Model())
}
