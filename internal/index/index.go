package index

import (
	"context"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// An Index ranks the documents that one class of callers may call. It may be used from several goroutines.
type Index struct {
	o       Options
	lexical *LexicalIndex
	shared  sharedDocuments

	// mu guards the update of both indexes, so that a search sees the same documents in both.
	mu      sync.RWMutex
	meaning *meaningIndex
}

// Options select the rankers besides words. The zero value uses no network.
type Options struct {
	// LexicalOnly ranks by words alone, without any vectors.
	LexicalOnly bool
	// Remote ranks by vectors from an external model; it may be nil. If it is also a DocumentReceiver, it receives all
	// documents.
	Remote RemoteRanker
	// MinCosine is the lowest cosine of a hit if Remote has answered. A document below it is left out even if its
	// words match, unless it is the best hit. A value of 0 or less leaves out none.
	MinCosine float64
	// Reranker sorts the first hits; it may be nil.
	Reranker *HitReranker
}

// A RemoteRanker ranks documents by vectors from an external model. It may be used from several goroutines.
type RemoteRanker interface {
	// Nearest returns at most the given number of keys, those of the texts nearest to the question, the nearest first.
	// It returns quickly; after an error the question is answered without it.
	Nearest(ctx context.Context, question string, most int, among []TextKey) ([]Neighbor, error)
}

// A PerIndexRanker is a RemoteRanker with a separate cache for each index. The time of an answer then does not reveal
// the questions of other callers. EmbeddingIndex implements it.
type PerIndexRanker interface {
	// ForIndex returns a RemoteRanker for one index.
	ForIndex() RemoteRanker
}

// New returns an index without documents.
func New(o Options) *Index {
	if far, ok := o.Remote.(PerIndexRanker); ok {
		o.Remote = far.ForIndex()
	}
	return &Index{o: o, lexical: NewLexicalIndex(), meaning: newMeaningIndex(o.Remote != nil && !o.LexicalOnly)}
}

// Len returns the number of documents.
func (x *Index) Len() int { return x.lexical.Len() }

// Update removes documents by ID and adds others; an added document replaces one with the same ID. A concurrent search
// sees either none of the changes or all of them.
func (x *Index) Update(put []Document, remove []string) {
	defer x.shareDocuments(put, remove)
	read := splitDocuments(put)
	x.mu.Lock()
	defer x.mu.Unlock()
	var near sync.WaitGroup
	if !x.o.LexicalOnly {
		near.Go(func() { x.meaning.update(put, read, remove) })
	}
	x.lexical.updateRead(put, read, remove)
	near.Wait()
}

// A Query is a question with limits for its answer.
type Query struct {
	// Text is the question. Only its first 8 KiB are read.
	Text string
	// Limit is the largest number of hits.
	Limit int
	// MinRelativeScore leaves out hits whose score is less than this share of the best score; 0 leaves out none. The
	// best hit always stays.
	MinRelativeScore float64
	// LocalOnly turns off Remote and the reranker.
	LocalOnly bool
}

// Find returns the documents that answer a question, the best first and equally good ones by ID. A document that
// shares no word with the question may be found by its meaning. The result is empty if no document shares a word or is
// near.
func (x *Index) Find(ctx context.Context, s Query) []Hit {
	if s.Limit <= 0 {
		return nil
	}
	s.Text = safetext.Truncate(s.Text, maxQuery, safetext.Bytes, "")
	var hits []Hit
	if x.o.LexicalOnly {
		hits = x.lexical.Search(s.Text, s.Limit)
	} else {
		hits = x.fusedSearch(ctx, s)
	}
	for i, h := range hits {
		if i > 0 && h.Score < s.MinRelativeScore {
			hits = hits[:i]
			break
		}
	}
	if s.LocalOnly {
		return hits
	}
	return x.rerankHits(ctx, s.Text, hits)
}
