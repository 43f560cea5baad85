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

// DefaultDeadline is the default time that a question waits for its vector.
const DefaultDeadline = 250 * time.Millisecond

const (
	// defaultBatch is the default number of texts in one request to the model.
	defaultBatch = 32
	// maxTexts is the number of texts that an index knows. With more, it forgets the texts that were not searched for
	// the longest time.
	maxTexts = 100_000
	// minCoverage is the smallest share of the searched texts that must have vectors. It is below 1, because one text
	// that the model refuses would otherwise disable the model for all others. It is close to 1, because texts without
	// a vector are ranked by words alone and are at a disadvantage.
	minCoverage = 0.9
)

// An EmbeddingIndex ranks by vectors from an external model. Documents are embedded in the background, each text once.
// A question is embedded when it is asked, within a deadline. If the model is slow, unreachable or replaced by
// another, a question gets an error quickly, and the caller ranks by words alone. The methods may be called from
// several goroutines.
type EmbeddingIndex struct {
	embedder Embedder
	o        EmbeddingIndexOptions
	// wake makes Run look for work at once.
	wake chan struct{}
	// working is held by the goroutine that embeds documents.
	working sync.Mutex
	vectors *vectorTable
	// era increases whenever the cached vectors of questions become invalid. asked caches vectors for direct callers
	// of the index.
	era       atomic.Int64
	questions *questionCache

	mu sync.Mutex
	// offered are documents whose keys have not been computed yet, at most maxTexts.
	offered []Document
	known   map[TextKey]Document
	// notLoaded holds keys whose vectors were not yet read from the store. notEmbedded holds the keys that the store
	// does not have. Both are in order of arrival.
	notLoaded, notEmbedded []TextKey
	refused                map[TextKey]bool
	// notStored holds vectors that the store did not accept.
	notStored map[TextKey][]float32
	// modelVerified reports that the model still produces the stored vectors. storeGone reports that the store is not
	// used any more.
	modelVerified, storeGone bool
	// probeVector is the latest vector of the constant probe text.
	probeVector []float32
	breaker     circuitBreaker
	// questionError and documentError are the last errors for questions and for documents.
	questionError, documentError lastError
	state                        EmbeddingIndexStatus
}

// A lastError is the last error and its time. The zero value means no error.
type lastError struct {
	text string
	at   time.Time
}

// newLastError returns the error with the current time. A nil error yields the zero value.
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

// EmbeddingIndexOptions are the optional settings of an EmbeddingIndex.
type EmbeddingIndexOptions struct {
	// Vectors stores vectors; nil keeps them in memory only. A store should also be a VectorForgetter, if possible.
	Vectors VectorStore
	// SearchInStore searches in Vectors and keeps no vectors in memory. It is for more texts than fit in memory.
	SearchInStore bool
	// Deadline is how long a question waits for its vector; 0 means DefaultDeadline.
	Deadline time.Duration
	// Batch is the number of texts in one request to the model; 0 means 32.
	Batch int
	// Logger logs when the model becomes unreachable, answers again, or is replaced; nil disables logging.
	Logger *slog.Logger
}

// EmbeddingIndexStatus is the state of an EmbeddingIndex.
type EmbeddingIndexStatus struct {
	// Model is the name of the vector space. Dimension is the dimension of its vectors, or 0 if it is not known yet.
	Model     string `json:"model"`
	Dimension int    `json:"dimension,omitempty"`
	// Texts counts all offered texts, Vectors those with a vector, Refused those that the model does not accept.
	Texts   int `json:"texts"`
	Vectors int `json:"vectors"`
	Refused int `json:"refused,omitempty"`
	// Asked counts the questions for which a vector was requested, Missed those that got none.
	Asked  int `json:"asked,omitempty"`
	Missed int `json:"missed,omitempty"`
	// Away is the time since when no questions are sent because the model does not answer; zero if questions are sent.
	Away time.Time `json:"away,omitzero"`
	// Err is the last error, without secrets, and At its time; both are empty after a success.
	Err string    `json:"error,omitempty"`
	At  time.Time `json:"error_at,omitzero"`
	// Replaced counts how often another model was found under the same name.
	Replaced int `json:"replaced,omitempty"`
}

// NewEmbeddingIndex returns an index for the texts passed to Offer. Run embeds them.
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

// An indexView is the EmbeddingIndex as one Index uses it, with its own cache of questions.
type indexView struct {
	*EmbeddingIndex
	questions *questionCache
}

// ForIndex implements [Parted]: each index caches the vectors of its own questions, so that the time of an answer does
// not reveal which questions others asked.
func (l *EmbeddingIndex) ForIndex() RemoteRanker { return indexView{l, newQuestionCache(&l.era)} }

// Nearest is like EmbeddingIndex.Nearest, with the cache of this view.
func (a indexView) Nearest(ctx context.Context, question string, most int, among []TextKey) ([]Neighbor, error) {
	return a.nearestCached(ctx, a.questions, question, most, among)
}

// Offer adds documents to be searched. Documents that are already known are allowed and cost little. It returns at
// once; Run does the work.
func (l *EmbeddingIndex) Offer(docs []Document) {
	if len(docs) == 0 {
		return
	}
	l.mu.Lock()
	l.offered = append(l.offered, docs...)
	if over := len(l.offered) - maxTexts; over > 0 {
		l.offered = slices.Delete(l.offered, 0, over) // the oldest are forgotten
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

// nearestCached is Nearest with a given cache of questions.
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

// recheckModel makes Run verify again that the model was not replaced.
func (l *EmbeddingIndex) recheckModel() {
	l.mu.Lock()
	l.modelVerified = false
	l.mu.Unlock()
	l.era.Add(1)
	l.wakeRun()
}
