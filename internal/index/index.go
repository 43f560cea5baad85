package index

import (
	"context"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// An Index ranks the documents of one view: what one class of callers may call. It may be used from several goroutines.
type Index struct {
	o       Options
	lexical *LexicalIndex
	shared  sharedDocuments

	// mu guards near, and that both know the same documents.
	mu      sync.RWMutex
	meaning *meaningIndex
}

// Options say what an index ranks by besides words. The zero value is what needs no network.
type Options struct {
	// LexicalOnly ranks by words alone: by no vector, neither of the built-in encoder nor from afar.
	LexicalOnly bool
	// Remote ranks by vectors that are computed elsewhere; it may be nil. If it also wants the documents, it receives
	// all of them.
	Remote RemoteRanker
	// MinCosine is the lowest cosine of a hit, if Remote has answered. A document below it is left out, whatever its
	// words, unless it is the best of all. With 0 and below none is left out.
	MinCosine float64
	// Reranker puts the first hits in order; nil leaves them as they are.
	Reranker *HitReranker
}

// RemoteRanker ranks documents by vectors that are made elsewhere. It may be used from several goroutines.
type RemoteRanker interface {
	// Nearest returns at most so many of the keys, those whose texts lie nearest to the question, the nearest first. It
	// answers soon, or with an error: then the question is answered without it.
	Nearest(ctx context.Context, question string, most int, among []TextKey) ([]Neighbor, error)
}

// A PerIndexRanker is a Far that is asked apart by each index: what one has asked makes no other's answer come sooner.
// A Library is one.
type PerIndexRanker interface {
	// ForIndex returns it for one index.
	ForIndex() RemoteRanker
}

// New makes an index without documents.
func New(o Options) *Index {
	if far, ok := o.Remote.(PerIndexRanker); ok {
		o.Remote = far.ForIndex()
	}
	return &Index{o: o, lexical: NewLexicalIndex(), meaning: newMeaningIndex(o.Remote != nil && !o.LexicalOnly)}
}

// Len is the number of documents.
func (x *Index) Len() int { return x.lexical.Len() }

// Update takes documents in, each in the place of the one with its ID, and others out. A search that goes on meanwhile
// is answered from before or from after all of it.
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

// A Query is a question, and what is wanted of the answer.
type Query struct {
	// Text is the question; of it the first 8 KiB are read.
	Text string
	// Limit is how many hits there may be.
	Limit int
	// MinRelativeScore leaves out hits whose score is less than this share of the best one's: 0 leaves out none. The
	// best stays in any case.
	MinRelativeScore float64
	// LocalOnly uses neither Remote nor the reranker.
	LocalOnly bool
}

// Find returns the documents that answer a question, the best first; among equals by ID. A document that shares no word
// with the question may be found by its meaning. There is no hit if no document shares a word or is near.
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
