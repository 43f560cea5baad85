package finder

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A stock is the index of one class of callers, over all its views.
type stock struct {
	index *index.Index
	docs  *documents

	whole atomic.Bool // it has known a view

	// mu is held while the index changes, and guards what it has.
	mu      sync.Mutex
	version uint64
	has     map[string]*byte // where which card's definition begins
}

func newStock(o index.Options, docs *documents) *stock {
	return &stock{index: index.New(o), docs: docs, has: map[string]*byte{}}
}

// take has the index know the cards of a view. Where somebody else does that just now, and it has known others before, it goes
// on as it is: what is found in it is looked up in the view that is asked.
func (s *stock) take(v *View) {
	if !s.mu.TryLock() {
		if s.whole.Load() {
			return
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if s.version == v.version {
		return
	}
	var put []index.Document
	gone := s.has
	s.has = make(map[string]*byte, len(v.specs))
	for _, spec := range v.specs {
		if !shown(spec) || len(spec.Definition) == 0 {
			continue
		}
		name, at := string(spec.Name), &spec.Definition[0]
		if gone[name] != at {
			put = append(put, s.docs.of(spec))
		}
		s.has[name] = at
		delete(gone, name)
	}
	var remove []string
	for name := range gone {
		remove = append(remove, name)
	}
	slices.Sort(remove)
	s.index.Update(put, remove)
	s.version = v.version
	s.whole.Store(true)
}

// find gives the cards of a view that answer a question, the best first.
func (s *stock) find(ctx context.Context, v *View, q index.Search) []Hit {
	s.take(v)
	var hits []Hit
	for _, h := range s.index.Find(ctx, q) {
		if i, ok := v.places[h.ID]; ok && shown(v.specs[i]) {
			hits = append(hits, Hit{Spec: v.specs[i], Score: h.Score, Found: h})
		}
	}
	return hits
}

// maxDocuments bounds how many documents are remembered.
const maxDocuments = 1 << 15

// documents has the cards as they are looked for: of each definition by where it begins, since definitions are not changed.
// Callers of all classes share them.
type documents struct {
	mu  sync.Mutex
	all map[*byte]index.Document
}

func (d *documents) of(spec drawbridge.Spec) index.Document {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := &spec.Definition[0]
	doc, ok := d.all[at]
	if !ok || doc.ID != string(spec.Name) {
		doc = document(spec)
		if d.all == nil || len(d.all) >= maxDocuments {
			d.all = map[*byte]index.Document{}
		}
		d.all[at] = doc
	}
	return doc
}

// document is a card as it is looked for.
func document(spec drawbridge.Spec) index.Document {
	return index.Document{
		ID: string(spec.Name), Server: string(spec.Server), Name: spec.Tool, Title: spec.Title,
		Description: wire.GetText(spec.Definition, "description"), Schema: wire.Get(spec.Definition, "inputSchema"),
	}
}
