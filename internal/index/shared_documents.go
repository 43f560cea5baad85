package index

import (
	"context"
	"sync"
)

// A DocumentReceiver is a RemoteRanker that must know the documents before the first question, as EmbeddingIndex
// does.
type DocumentReceiver interface{ Offer(docs []Document) }

// sharedDocuments contains the documents of an index by ID, because the reranker needs their texts. It is empty if
// the index has no reranker.
type sharedDocuments struct {
	mu   sync.RWMutex
	docs map[string]Document
}

// shareDocuments passes added documents to the remote ranker, and updates the documents for the reranker.
func (x *Index) shareDocuments(put []Document, remove []string) {
	if far, ok := x.o.Remote.(DocumentReceiver); ok {
		far.Offer(put)
	}
	if x.o.Reranker == nil {
		return
	}
	x.shared.mu.Lock()
	defer x.shared.mu.Unlock()
	for _, id := range remove {
		delete(x.shared.docs, id)
	}
	if x.shared.docs == nil {
		x.shared.docs = map[string]Document{}
	}
	for _, d := range put {
		x.shared.docs[d.ID] = d
	}
}

// rerankHits returns the hits in the order of the reranker, or unchanged if there is no reranker.
func (x *Index) rerankHits(ctx context.Context, question string, hits []Hit) []Hit {
	if x.o.Reranker == nil {
		return hits
	}
	return x.o.Reranker.Rerank(ctx, question, hits, func(id string) string {
		x.shared.mu.RLock()
		d := x.shared.docs[id]
		x.shared.mu.RUnlock()
		return d.EmbeddingText()
	})
}
