package index

import (
	"context"
	"sync"
)

// A Wanter is a Far that wants to know of documents before it is asked, as a Library does.
type Wanter interface{ Offer(docs []Document) }

// told are the documents of an index for those who need more of them than words: who embeds them elsewhere, and who judges them.
// It remembers none where nobody judges.
type told struct {
	mu   sync.RWMutex
	docs map[string]Document
}

// tell tells of documents that came and went.
func (x *Index) tell(put []Document, remove []string) {
	if far, ok := x.o.Far.(Wanter); ok {
		far.Offer(put)
	}
	if x.o.Judge == nil {
		return
	}
	x.told.mu.Lock()
	defer x.told.mu.Unlock()
	for _, id := range remove {
		delete(x.told.docs, id)
	}
	if x.told.docs == nil {
		x.told.docs = map[string]Document{}
	}
	for _, d := range put {
		x.told.docs[d.ID] = d
	}
}

// judged gives hits in the order of who judges, if there is one.
func (x *Index) judged(ctx context.Context, question string, hits []Hit) []Hit {
	if x.o.Judge == nil {
		return hits
	}
	return x.o.Judge.Order(ctx, question, hits, func(id string) string {
		x.told.mu.RLock()
		d := x.told.docs[id]
		x.told.mu.RUnlock()
		return d.Text()
	})
}
