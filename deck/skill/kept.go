package skill

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
)

// Kept is what servers said of their skills, and what was put together of it. The zero Kept is empty. Its methods may be
// called from several goroutines.
type Kept struct {
	mu   sync.Mutex
	kept map[catalogueKey]*Catalogue
	// sets are by principal and the servers that are in them.
	sets map[string]*Set
	// last has, by server, the clashes of the set that was made last, and what of the server's is not in it.
	last map[drawbridge.ServerID]Notes
}

type catalogueKey struct {
	principal string
	server    drawbridge.ServerID
}

// Notes are what people are to know of a server's skills.
type Notes struct {
	Clashes []Clash
	LeftOut []LeftOut
}

// A Loss is a clash with the server that lost.
type Loss struct {
	Server drawbridge.ServerID
	Clash
}

// maxCatalogues and maxSets bound what is kept; maxFound bounds the skills kept of a server that it does not list.
const (
	maxCatalogues = 256
	maxSets       = 64
	maxFound      = 1024
)

// Get gives what the server said to the principal, if it is about the server as it is configured; nil for nothing.
func (s *Kept) Get(principal string, server Server) *Catalogue {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.kept[catalogueKey{principal, server.ID}]
	if c == nil || c.server.Row != server.Row {
		return nil
	}
	return c
}

// Put keeps what a server said to the principal.
func (s *Kept) Put(principal string, c *Catalogue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := catalogueKey{principal, c.server.ID}
	if s.kept == nil || len(s.kept) >= maxCatalogues && s.kept[key] == nil {
		s.kept = map[catalogueKey]*Catalogue{}
	}
	s.kept[key] = c
}

// Found notes a skill that a server has and does not list.
func (s *Kept) Found(principal string, server Server, sk Entry) {
	sk.raw = nil
	c := s.Get(principal, server)
	if c == nil {
		return // it was never asked for its list, or it was forgotten meanwhile: it is asked again
	}
	next := *c
	if len(next.found) >= maxFound {
		next.found = nil
	}
	next.found = append(slices.Clip(next.found), sk)
	s.Put(principal, &next)
}

// Together puts catalogues together, or gives what was put together before where nothing changed. A set with the same
// items as the one before has its version. It gives the first clash of each two servers that was not there before,
// and takes a version that no set had from next.
func (s *Kept) Together(principal string, ground *Ground, catalogues []*Catalogue, naming label.Naming, next func() uint64) (*Set, []Loss) {
	key := principal
	for _, c := range catalogues {
		key += "\x00" + string(c.server.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.sets[key]
	if old != nil && old.ground == ground && slices.Equal(old.catalogues, catalogues) {
		return old, nil
	}
	set := newSet(ground, catalogues, naming)
	if old != nil && slices.EqualFunc(old.Items, set.Items, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		set.Version = old.Version
	} else {
		set.Version = next()
	}
	if s.sets == nil || len(s.sets) >= maxSets && old == nil {
		s.sets = map[string]*Set{}
	}
	s.sets[key] = set
	return set, s.note(set)
}

// note remembers what people are to know of a set. The lock is held.
func (s *Kept) note(set *Set) (fresh []Loss) {
	if s.last == nil {
		s.last = map[drawbridge.ServerID]Notes{}
	}
	for _, c := range set.catalogues {
		id := c.server.ID
		warned := map[drawbridge.ServerID]bool{}
		for _, clash := range s.last[id].Clashes {
			warned[clash.Winner] = true
		}
		for _, clash := range set.clashes[id] {
			if !warned[clash.Winner] {
				warned[clash.Winner] = true
				fresh = append(fresh, Loss{id, clash})
			}
		}
		s.last[id] = Notes{set.clashes[id], c.leftOut}
	}
	return fresh
}

// Notes gives what people are to know of a server's skills, as they were when they were put together last.
func (s *Kept) Notes(id drawbridge.ServerID) Notes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[id]
}

// Forget drops what is known of a server that is gone.
func (s *Kept) Forget(id drawbridge.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kept, func(key catalogueKey, _ *Catalogue) bool { return key.server == id })
	clear(s.sets)
	delete(s.last, id)
}
