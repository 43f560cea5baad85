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

// DefaultDeadline is the default time limit for embedding a question.
const DefaultDeadline = 250 * time.Millisecond

const (
	// defaultBatch is the default number of texts in one request to the model.
	defaultBatch = 32
	// maxTexts is the maximum number of texts of an index. If there are more, the index removes the texts that have
	// not been searched for the longest time.
	maxTexts = 100_000
	// minCoverage is the minimum share of the searched texts that must have vectors; with a smaller share, Nearest
	// returns an error. The share is below 1, because otherwise one text that the model refuses would disable the
	// model for all texts. It is close to 1, because texts without a vector are ranked by words alone, which is a
	// disadvantage.
	minCoverage = 0.9
)

// An EmbeddingIndex ranks documents by vectors from an external model. Run embeds documents in the background, each
// text only once. Nearest embeds the question during the search, within a deadline. If the model is slow, unreachable
// or replaced by another model, Nearest returns an error quickly, and the caller ranks by words alone. The methods
// are safe for concurrent use.
type EmbeddingIndex struct {
	embedder Embedder
	o        EmbeddingIndexOptions
	// wake receives a value when there may be new work for Run.
	wake chan struct{}
	// working is locked while a goroutine embeds documents.
	working sync.Mutex
	vectors *vectorTable
	// era is incremented when all cached vectors of questions become invalid. questions is the cache for calls of
	// EmbeddingIndex.Nearest; each indexView has its own cache.
	era       atomic.Int64
	questions *questionCache

	mu sync.Mutex
	// offered contains documents whose keys are not computed yet, at most maxTexts.
	offered []Document
	known   map[TextKey]Document
	// notLoaded contains the keys of texts for which the store has not been searched yet. notEmbedded contains the
	// keys of texts that have no vector in the store and must be embedded. Both are in order of arrival.
	notLoaded, notEmbedded []TextKey
	refused                map[TextKey]bool
	// notStored contains computed vectors that could not be saved in the store yet.
	notStored map[TextKey][]float32
	// modelVerified reports whether verifyModel has found that the model computes the same vectors as the stored
	// ones. storeGone reports whether there is no store, or the store is not used any more.
	modelVerified, storeGone bool
	// probeVector is the vector that the model last returned for probeText.
	probeVector []float32
	breaker     circuitBreaker
	// questionError is the last error of a question, and documentError the last error of embedding or storing
	// documents.
	questionError, documentError lastError
	state                        EmbeddingIndexStatus
}

// A lastError is an error text and the time of the error. The zero value means that there was no error.
type lastError struct {
	text string
	at   time.Time
}

// newLastError returns a lastError with the current time, or the zero value for a nil error.
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
	// Vectors is the store for vectors. If it is nil, vectors exist only in memory. The store should also be a
	// VectorForgetter: otherwise it is not used any more after the model was replaced.
	Vectors VectorStore
	// SearchInStore makes Nearest search in Vectors. Vectors are then not loaded into memory. It is for more vectors
	// than fit into memory.
	SearchInStore bool
	// Deadline is the time limit for embedding a question; 0 means DefaultDeadline.
	Deadline time.Duration
	// Batch is the number of texts in one request to the model; 0 means 32.
	Batch int
	// Logger receives a message when the model stops answering, when it answers again, and when it was replaced. If
	// Logger is nil, nothing is logged.
	Logger *slog.Logger
}

// EmbeddingIndexStatus is the state of an EmbeddingIndex.
type EmbeddingIndexStatus struct {
	// Model is the name of the model. Dimension is the dimension of its vectors, or 0 if it is unknown.
	Model     string `json:"model"`
	Dimension int    `json:"dimension,omitempty"`
	// Texts is the number of texts, Vectors the number of texts with a vector, and Refused the number of texts that
	// the model refuses.
	Texts   int `json:"texts"`
	Vectors int `json:"vectors"`
	Refused int `json:"refused,omitempty"`
	// Asked is the number of questions sent to the model, and Missed the number of these questions that failed.
	Asked  int `json:"asked,omitempty"`
	Missed int `json:"missed,omitempty"`
	// Away is the time at which the model stopped answering; zero if it answers. While it does not answer, no
	// questions are sent.
	Away time.Time `json:"away,omitzero"`
	// Err is the last error, without secrets, and At its time. Both are empty after a success.
	Err string    `json:"error,omitempty"`
	At  time.Time `json:"error_at,omitzero"`
	// Replaced is the number of times that a different model was found under the same name.
	Replaced int `json:"replaced,omitempty"`
}

// NewEmbeddingIndex returns an index without documents. Offer adds documents, and Run embeds them.
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

// An indexView is an EmbeddingIndex with a separate cache of question vectors, for one Index.
type indexView struct {
	*EmbeddingIndex
	questions *questionCache
}

// ForIndex implements [PerIndexRanker]. The result has its own cache of question vectors. So the duration of a search
// does not reveal whether callers of another index asked the same question.
func (l *EmbeddingIndex) ForIndex() RemoteRanker { return indexView{l, newQuestionCache(&l.era)} }

// Nearest is like EmbeddingIndex.Nearest, but uses the cache of this indexView.
func (a indexView) Nearest(ctx context.Context, question string, most int, among []TextKey) ([]Neighbor, error) {
	return a.nearestCached(ctx, a.questions, question, most, among)
}

// Offer adds documents to the index and returns immediately; Run embeds them. Documents that the index already
// contains may be offered again at little cost.
func (l *EmbeddingIndex) Offer(docs []Document) {
	if len(docs) == 0 {
		return
	}
	l.mu.Lock()
	l.offered = append(l.offered, docs...)
	if over := len(l.offered) - maxTexts; over > 0 {
		l.offered = slices.Delete(l.offered, 0, over) // drop the documents that were offered first
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

// Nearest returns at most most of the keys in among, nearest to the question first, within the deadline. In two cases
// it returns an error without sending the question to the model. The first is that fewer than nine in ten of the keys
// have vectors. The second is that the model has stopped answering.
func (l *EmbeddingIndex) Nearest(ctx context.Context, question string, most int, among []TextKey) ([]Neighbor, error) {
	return l.nearestCached(ctx, l.questions, question, most, among)
}

// nearestCached implements Nearest with asked as the cache of question vectors.
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

// recheckModel makes Run verify the model again, see verifyModel.
func (l *EmbeddingIndex) recheckModel() {
	l.mu.Lock()
	l.modelVerified = false
	l.mu.Unlock()
	l.era.Add(1)
	l.wakeRun()
}
