package index

import (
	"context"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// An Index ranks the documents that one class of callers may call. It is safe for concurrent use.
type Index struct {
	o       Options
	lexical *LexicalIndex
	shared  sharedDocuments

	// mu is locked during an update of both indexes. So a search finds the same documents in both.
	mu      sync.RWMutex
	meaning *meaningIndex
}

// Options determine which rankers an index uses in addition to the ranking by words. With the zero value, that is the
// built-in encoder, and the index uses no network.
type Options struct {
	// LexicalOnly disables all vectors: documents are ranked by words alone.
	LexicalOnly bool
	// Remote ranks documents by vectors from an external model; it may be nil. If Remote is also a DocumentReceiver,
	// it receives all documents.
	Remote RemoteRanker
	// MinCosine is the minimum cosine between the question and a hit, by the vectors of Remote. A document with a
	// lower cosine is omitted even if its words match, unless it is the best hit. With 0 or less, or if Remote
	// returns no result, no document is omitted.
	MinCosine float64
	// Reranker sorts the first hits of each search; nil means that hits are not sorted again.
	Reranker *HitReranker
}

// A RemoteRanker ranks documents by vectors from an external model. It is safe for concurrent use.
type RemoteRanker interface {
	// Nearest returns at most most of the keys in among, nearest to the question first. It must return quickly. If it
	// returns an error, the index ranks documents without this ranker.
	Nearest(ctx context.Context, question string, most int, among []TextKey) ([]Neighbor, error)
}

// A PerIndexRanker is a RemoteRanker that can have a separate cache for each index. With a shared cache, the duration
// of a search could reveal the questions of callers of another index. EmbeddingIndex implements this interface.
type PerIndexRanker interface {
	// ForIndex returns a RemoteRanker with its own cache, for one index.
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

// Update removes documents by ID and adds others. An added document replaces the document with the same ID. A
// concurrent search sees either none of the changes or all of them.
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

// A Query is a question and the limits of its result.
type Query struct {
	// Text is the question. Bytes after the first 8 KiB are ignored.
	Text string
	// Limit is the maximum number of hits.
	Limit int
	// MinRelativeScore is the minimum score of a hit, as a share of the best score. The best hit is always returned.
	MinRelativeScore float64
	// LocalOnly disables Remote and the reranker for this question.
	LocalOnly bool
}

// Find returns the documents that match a question, best first. Equally good documents are in the order of their IDs.
// A document matches if it shares a word with the question, or if its vector is near the vector of the question. If
// no document matches, the result is empty.
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
