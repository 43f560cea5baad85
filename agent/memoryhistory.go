package agent

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/oklog/ulid/v2"
)

// A MemoryHistory keeps the entries of one session in memory. It ends with the process.
type MemoryHistory struct {
	id string

	// mu guards entries.
	mu      sync.Mutex
	entries []Entry
}

var _ History = (*MemoryHistory)(nil)

// NewMemoryHistory returns an empty history of a new session.
func NewMemoryHistory() *MemoryHistory { return &MemoryHistory{id: ulid.Make().String()} }

// ID returns the ID of the session.
func (h *MemoryHistory) ID() string { return h.id }

// Append keeps an entry.
func (h *MemoryHistory) Append(_ context.Context, e Entry) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entries = append(h.entries, e)
	return nil
}

// Entries returns the entries in the order in which they were appended.
func (h *MemoryHistory) Entries(context.Context) iter.Seq2[Entry, error] {
	h.mu.Lock()
	entries := slices.Clone(h.entries)
	h.mu.Unlock()
	return func(yield func(Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}
