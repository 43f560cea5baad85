package toolsearch

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A classIndex is the index of the tools that one class of callers may call. When the tools of the class change, the
// class gets a new CardView, and its classIndex is updated.
type classIndex struct {
	index *index.Index
	docs  *documentCache

	filled atomic.Bool // whether a view has been indexed

	// mu is locked while the index changes, and guards the fields below.
	mu      sync.Mutex
	version uint64
	indexed map[string]*byte // address of the indexed definition of each card
}

func newClassIndex(o index.Options, docs *documentCache) *classIndex {
	return &classIndex{index: index.New(o), docs: docs, indexed: map[string]*byte{}}
}

// update indexes the tools of a view. If another goroutine is already updating the index and the index is not empty,
// update returns immediately. The search then uses an index that may be out of date, and drops hits that are not in
// the view.
func (s *classIndex) update(v *CardView) {
	if !s.mu.TryLock() {
		if s.filled.Load() {
			return
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if s.version == v.version {
		return
	}
	var put []index.Document
	gone := s.indexed
	s.indexed = make(map[string]*byte, len(v.specs))
	for _, spec := range v.specs {
		if !isModelVisible(spec) || len(spec.Definition) == 0 {
			continue
		}
		name, at := string(spec.Name), &spec.Definition[0]
		if gone[name] != at {
			put = append(put, s.docs.get(spec))
		}
		s.indexed[name] = at
		delete(gone, name)
	}
	var remove []string
	for name := range gone {
		remove = append(remove, name)
	}
	slices.Sort(remove)
	s.index.Update(put, remove)
	s.version = v.version
	s.filled.Store(true)
}

// search returns the tools of a view that match a query, best first.
func (s *classIndex) search(ctx context.Context, v *CardView, q index.Query) []Hit {
	s.update(v)
	var hits []Hit
	for _, h := range s.index.Find(ctx, q) {
		if i, ok := v.places[h.ID]; ok && isModelVisible(v.specs[i]) {
			hits = append(hits, Hit{Spec: v.specs[i], Score: h.Score, Ranking: h})
		}
	}
	return hits
}

// maxDocuments is the maximum number of cached documents.
const maxDocuments = 1 << 15

// A documentCache caches the index documents of tools for all classes of callers. The key is the address of the
// tool's definition. The address is a valid key because definitions are never modified.
type documentCache struct {
	mu  sync.Mutex
	all map[*byte]index.Document
}

func (d *documentCache) get(spec drawbridge.Spec) index.Document {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := &spec.Definition[0]
	doc, ok := d.all[at]
	if !ok || doc.ID != string(spec.Name) {
		doc = newDocument(spec)
		if d.all == nil || len(d.all) >= maxDocuments {
			d.all = map[*byte]index.Document{}
		}
		d.all[at] = doc
	}
	return doc
}

// newDocument returns the index document of a tool.
func newDocument(spec drawbridge.Spec) index.Document {
	return index.Document{
		ID: string(spec.Name), Server: string(spec.Server), Name: spec.Tool, Title: spec.Title,
		Description: rawjson.GetString(spec.Definition, "description"),
		Schema:      rawjson.Get(spec.Definition, "inputSchema"),
	}
}
