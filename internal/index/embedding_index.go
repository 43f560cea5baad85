package index

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultDeadline is what a question waits for its vector by default.
const DefaultDeadline = 250 * time.Millisecond

const (
	// defaultBatch is how many texts are embedded at once.
	defaultBatch = 32
	// maxTexts is how many texts a library knows: of more it forgets those that were not searched for the longest.
	maxTexts = 100_000
	// minCoverage is the least share of the searched texts that must have vectors. It is below 1, since one text that
	// the model refuses would otherwise disable the model for all others. It is not much below, since texts without a
	// vector are ranked by their words alone, among others that are ranked by both.
	minCoverage = 0.9
)

// An EmbeddingIndex ranks by the vectors of a model that runs elsewhere. Documents are embedded in the background, each
// text once; a question is embedded when it is asked, within a deadline. When the model is slow, or away, or another
// than it was, questions have no answer here, soon: so that they are answered by words. Its methods may be called from
// several goroutines.
type EmbeddingIndex struct {
	embedder Embedder
	o        EmbeddingIndexOptions
	// wake has Run look at once.
	wake chan struct{}
	// working is held by who embeds documents.
	working sync.Mutex
	vectors *vectorTable
	// era counts how often the vectors of questions became invalid; asked caches those of direct callers of the index.
	era       atomic.Int64
	questions *questionCache

	mu sync.Mutex
	// offered are documents whose keys have not been computed yet, at most maxTexts.
	offered []Document
	known   map[TextKey]Document
	// notLoaded are keys that the keeper was not asked for, lacking those that it does not have, in the order in which
	// they came.
	notLoaded, notEmbedded []TextKey
	refused                map[TextKey]bool
	// notStored are vectors that the keeper did not take.
	notStored map[TextKey][]float32
	// modelVerified is true if the model is the one whose vectors are stored. storeGone is true if nothing is stored
	// any more.
	modelVerified, storeGone bool
	// probeVector is the latest vector of the constant probe text.
	probeVector []float32
	breaker     circuitBreaker
	// questionError and embedding are what went wrong last with questions and with documents.
	questionError, documentError lastError
	state                        EmbeddingIndexStatus
}

// A lastError is what went wrong, and when; the zero value is that nothing did.
type lastError struct {
	text string
	at   time.Time
}

// newLastError is what went wrong now; nil is nothing.
func newLastError(err error) lastError {
	if err == nil {
		return lastError{}
	}
	return lastError{err.Error(), time.Now()}
}

var (
	_ RemoteRanker   = (*EmbeddingIndex)(nil)
	_ PerIndexRanker = (*EmbeddingIndex)(nil)
)

// EmbeddingIndexOptions are what a library can do without.
type EmbeddingIndexOptions struct {
	// Vectors keeps vectors; nil keeps them in memory only. Where it can, it is a Forgetter.
	Vectors VectorStore
	// SearchInStore has Vectors searched, and no vector in memory: for more texts than that has room for.
	SearchInStore bool
	// Deadline is how long a question waits for its vector; 0 means 250 ms.
	Deadline time.Duration
	// Batch is how many texts are embedded at once; 0 means 32.
	Batch int
	// Logger is told when the model goes away, comes back, and is another than it was; nil is silence.
	Logger *slog.Logger
}

// EmbeddingIndexStatus is the state of an EmbeddingIndex.
type EmbeddingIndexStatus struct {
	// Model names the space, Dimension is how many numbers its vectors have; 0 is not known yet.
	Model     string `json:"model"`
	Dimension int    `json:"dimension,omitempty"`
	// Texts are all that were offered, Vectors those of them that have one, Refused those that the model does not take.
	Texts   int `json:"texts"`
	Vectors int `json:"vectors"`
	Refused int `json:"refused,omitempty"`
	// Asked are the questions whose vectors were asked for, Missed those of them that got none.
	Asked  int `json:"asked,omitempty"`
	Missed int `json:"missed,omitempty"`
	// Away is since when no question is sent, because the model does not answer; zero where they are.
	Away time.Time `json:"away,omitzero"`
	// Err is what went wrong last, without secrets, and At when; empty where it went well since.
	Err string    `json:"error,omitempty"`
	At  time.Time `json:"error_at,omitzero"`
	// Replaced counts how often the model was found to be another under the same name.
	Replaced int `json:"replaced,omitempty"`
}

// NewEmbeddingIndex makes a library of the texts that Offer brings. Run has them embedded.
func NewEmbeddingIndex(e Embedder, o EmbeddingIndexOptions) *EmbeddingIndex {
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	if o.Batch <= 0 {
		o.Batch = defaultBatch
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &EmbeddingIndex{
		embedder: e, o: o, wake: make(chan struct{}, 1), vectors: newVectorTable(),
		known: map[TextKey]Document{}, refused: map[TextKey]bool{}, notStored: map[TextKey][]float32{},
		storeGone: o.Vectors == nil,
	}
	l.questions = newQuestionCache(&l.era)
	return l
}

// An indexView is a library as one index asks it.
type indexView struct {
	*EmbeddingIndex
	questions *questionCache
}

// ForIndex implements [Parted]: each index caches the vectors of its own questions, so that the time of an answer does
// not reveal which questions others asked.
func (l *EmbeddingIndex) ForIndex() RemoteRanker { return indexView{l, newQuestionCache(&l.era)} }

// Nearest is the library's.
func (a indexView) Nearest(ctx context.Context, question string, most int, among []TextKey) ([]Neighbor, error) {
	return a.nearestCached(ctx, a.questions, question, most, among)
}

// Offer notes documents that are to be searched: those that are new, or all. It is quick; what has a vector, or waits
// for one, costs nothing.
func (l *EmbeddingIndex) Offer(docs []Document) {
	if len(docs) == 0 {
		return
	}
	l.mu.Lock()
	l.offered = append(l.offered, docs...)
	if over := len(l.offered) - maxTexts; over > 0 {
		l.offered = slices.Delete(l.offered, 0, over) // what came first is forgotten first
	}
	l.mu.Unlock()
	l.wakeRun()
}

func (l *EmbeddingIndex) wakeRun() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Status returns the state of the index.
func (l *EmbeddingIndex) Status() EmbeddingIndexStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	s.Model, s.Away, s.Refused = l.embedder.Model(), l.breaker.open, len(l.refused)
	s.Texts = len(l.known)
	s.Vectors, s.Dimension = l.vectors.size()
	last := l.documentError
	if l.questionError.at.After(last.at) {
		last = l.questionError
	}
	s.Err, s.At = last.text, last.at
	return s
}

var (
	errEmptyQuestion  = errors.New("the question is empty")
	errTooFewVectors  = errors.New("too few of the texts have a vector yet")
	errModelAway      = errors.New("the model does not answer")
	errOtherDimension = errors.New("the vector of the question has another dimension than those of the texts")
)

// Nearest returns the keys whose texts are nearest to a question. It returns within the deadline. It does not ask the
// model if fewer than nine in ten of the keys have vectors, or if the last request to the model failed.
func (l *EmbeddingIndex) Nearest(ctx context.Context, question string, most int, among []TextKey) ([]Neighbor, error) {
	return l.nearestCached(ctx, l.questions, question, most, among)
}

// nearestCached is Nearest for who remembers those questions.
func (l *EmbeddingIndex) nearestCached(ctx context.Context, asked *questionCache, question string, most int,
	among []TextKey) ([]Neighbor, error) {
	switch {
	case len(among) == 0 || most <= 0:
		return nil, nil
	case question == "":
		return nil, errEmptyQuestion
	case !l.vectors.coversEnough(among):
		return nil, errTooFewVectors
	}
	within, cancel := context.WithTimeout(ctx, l.o.Deadline)
	defer cancel()
	v, err := l.questionVector(ctx, within, asked, question)
	if err != nil {
		return nil, err
	}
	if _, dimension := l.vectors.size(); len(v) != dimension {
		l.recheckModel()
		return nil, errOtherDimension
	}
	if l.searchesInStore() {
		return l.o.Vectors.Nearest(within, l.embedder.Model(), v, most, among)
	}
	return l.vectors.nearest(v, most, among), nil
}

// recheckModel has it looked at whether the model is another than it was.
func (l *EmbeddingIndex) recheckModel() {
	l.mu.Lock()
	l.modelVerified = false
	l.mu.Unlock()
	l.era.Add(1)
	l.wakeRun()
}
