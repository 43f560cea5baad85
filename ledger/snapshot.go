package ledger

import (
	"context"
	"maps"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// A Snapshot is the fold of a log: its live entries. It is immutable. The zero Snapshot is the fold of an empty log.
type Snapshot struct {
	live      []Entry
	places    map[CardKey]int
	highWater uint64
}

// FoldEntries returns the fold of a log. Entries are applied in the order of their Seq; their order in the slice does
// not matter. An enrolment appends its card, or replaces the card with the same key. A retirement removes the card with
// its key, and has no effect if no such card is live.
func FoldEntries(entries []Entry) Snapshot { return Snapshot{}.fold(entries) }

// FoldStream returns the fold of a journal's stream. If the journal is a [StreamFolder], the journal computes the fold.
// The error is that of the journal.
func FoldStream(ctx context.Context, j Journal, stream string) (Snapshot, error) {
	if f, ok := j.(StreamFolder); ok {
		return f.FoldStream(ctx, stream)
	}
	entries, err := j.Replay(ctx, stream)
	return FoldEntries(entries), err
}

// With returns the snapshot with more entries applied, such as the result of [Journal].Append. The Seq of each of these
// entries must be higher than HighWater. The log itself is not needed.
func (s Snapshot) With(entries ...Entry) Snapshot { return s.fold(entries) }

// fold returns the snapshot with more entries applied. The Seq of each of these entries must be higher than
// s.highWater.
func (s Snapshot) fold(entries []Entry) Snapshot {
	if !slices.IsSortedFunc(entries, compareEntries) {
		entries = slices.SortedFunc(slices.Values(entries), compareEntries)
	}
	f := snapshotBuilder{live: append(make([]Entry, 0, len(s.live)+len(entries)), s.live...),
		places: maps.Clone(s.places)}
	if f.places == nil {
		f.places = make(map[CardKey]int, len(entries))
	}
	for _, e := range entries {
		f.add(e)
	}
	f.removeGaps()
	s.live, s.places = f.live, f.places
	if n := len(entries); n > 0 {
		s.highWater = max(s.highWater, entries[n-1].Seq)
	}
	return s
}

// A snapshotBuilder builds a snapshot. To remove an entry, it first replaces it by an empty entry; at the end,
// removeGaps removes all empty entries. Even if thousands of entries are retired, the remaining entries are moved only
// once.
type snapshotBuilder struct {
	live   []Entry
	places map[CardKey]int
	gaps   int
}

func (f *snapshotBuilder) add(e Entry) {
	place, known := f.places[e.Key]
	switch {
	case e.Op == OpEnrol && e.Card == nil:
	case e.Op == OpEnrol && known:
		f.live[place] = e
	case e.Op == OpEnrol:
		f.places[e.Key] = len(f.live)
		f.live = append(f.live, e)
	case e.Op == OpRetire && known:
		delete(f.places, e.Key)
		f.live[place] = Entry{}
		f.gaps++
	}
}

func (f *snapshotBuilder) removeGaps() {
	if f.gaps == 0 {
		return
	}
	f.live = slices.DeleteFunc(f.live, func(e Entry) bool { return e.Card == nil })
	for i, e := range f.live {
		f.places[e.Key] = i
	}
}

// Live returns the live entries in order. The caller may modify the slice, but not the cards, which are shared.
func (s Snapshot) Live() []Entry { return append([]Entry(nil), s.live...) }

// LiveByServer returns the live entries of one server, in order.
func (s Snapshot) LiveByServer(server drawbridge.ServerID) []Entry {
	n := 0
	for i := range s.live {
		if s.live[i].Server == server {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	own := make([]Entry, 0, n)
	for i := range s.live {
		if s.live[i].Server == server {
			own = append(own, s.live[i])
		}
	}
	return own
}

// LiveEntry returns the live entry with the given key; the second result is false if there is none.
func (s Snapshot) LiveEntry(key CardKey) (Entry, bool) {
	place, ok := s.places[key]
	if !ok {
		return Entry{}, false
	}
	return s.live[place], true
}

// Len returns the number of live cards.
func (s Snapshot) Len() int { return len(s.live) }

// CountByServer returns the number of live cards of each server. Servers without live cards are omitted.
func (s Snapshot) CountByServer() map[drawbridge.ServerID]int {
	counts := map[drawbridge.ServerID]int{}
	for i := range s.live {
		counts[s.live[i].Server]++
	}
	return counts
}

// HighWater returns the highest Seq of the folded entries; 0 for an empty log.
func (s Snapshot) HighWater() uint64 { return s.highWater }
