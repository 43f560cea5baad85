package ledger

import (
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A Ledger is a log and its fold. It is immutable: each change returns a new ledger, which shares the earlier entries
// with the old one. The time of a change depends on the number of new and live entries, and not on the length of the
// log. The zero Ledger is empty. A Ledger is safe for concurrent use.
type Ledger struct {
	last     *batch
	length   int
	snapshot Snapshot
}

// A batch contains the entries of one change. The log is a linked list of batches, so appending does not copy the log.
type batch struct {
	before  *batch
	entries []Entry
}

// An EnrolRequest is a request to enrol a card.
type EnrolRequest struct {
	Card EnrolledCard
	// Key is the key of the enrolled card; empty means the content key of Card. If two cards have the same key, only
	// the later one is live.
	Key CardKey
}

// Empty returns a ledger without entries. Its first entry will have Seq 1.
func Empty() Ledger { return Ledger{} }

// FromLog returns the ledger of a stored log. It has the same live entries, in the same order, as the ledger that wrote
// the log.
func FromLog(log []Entry) Ledger { return Empty().Append(log...) }

// Append returns the ledger with entries that already have a Seq from a journal. Seq may have gaps, because other
// processes may append too. If an entry's Seq is not higher than the highest Seq in the ledger, Append folds the whole
// log again.
func (l Ledger) Append(entries ...Entry) Ledger {
	if len(entries) == 0 {
		return l
	}
	next := Ledger{last: &batch{l.last, slices.Clone(entries)}, length: l.length + len(entries)}
	first := slices.MinFunc(entries, compareEntries)
	if l.length > 0 && first.Seq <= l.snapshot.highWater {
		next.snapshot = FoldEntries(next.Entries())
	} else {
		next.snapshot = l.snapshot.fold(entries)
	}
	return next
}

// Enrol returns a ledger with more cards, and the entries that were appended for them. If a live card has the same key
// as a new card, the new card replaces it.
func (l Ledger) Enrol(requests []EnrolRequest, at time.Time) (Ledger, []Entry) {
	entries := make([]Entry, 0, len(requests))
	for _, r := range requests {
		if r.Key == "" {
			r.Key = r.Card.Key()
		}
		entries = append(entries, Entry{Op: OpEnrol, Key: r.Key, Server: r.Card.Server, Card: &r.Card})
	}
	return l.appendNew(entries, at)
}

// Retire returns a ledger without the live card that has the given key, and the entry that was appended. An entry is
// appended even if no live card has the key.
func (l Ledger) Retire(key CardKey, server drawbridge.ServerID, at time.Time) (Ledger, []Entry) {
	return l.appendNew([]Entry{{Op: OpRetire, Key: key, Server: server}}, at)
}

// RetireServer returns a ledger without the live cards of a server, and the entries that were appended. For a server
// without live cards, no entries are appended.
func (l Ledger) RetireServer(server drawbridge.ServerID, at time.Time) (Ledger, []Entry) {
	entries := l.LiveByServer(server)
	for i, e := range entries {
		entries[i] = Entry{Op: OpRetire, Key: e.Key, Server: server}
	}
	return l.appendNew(entries, at)
}

// appendNew sets Seq and At of the entries and appends them.
func (l Ledger) appendNew(entries []Entry, at time.Time) (Ledger, []Entry) {
	for i := range entries {
		entries[i].Seq = l.NextSeq() + uint64(i)
		entries[i].At = at
	}
	return l.Append(entries...), entries
}

// Live returns the live entries in order. The caller may modify the slice, but not the cards, which are shared.
func (l Ledger) Live() []Entry { return l.snapshot.Live() }

// LiveByServer returns the live entries of one server, in order.
func (l Ledger) LiveByServer(server drawbridge.ServerID) []Entry {
	return l.snapshot.LiveByServer(server)
}

// LiveEntry returns the live entry with the given key; the second result is false if there is none.
func (l Ledger) LiveEntry(key CardKey) (Entry, bool) { return l.snapshot.LiveEntry(key) }

// Snapshot returns the fold of the log.
func (l Ledger) Snapshot() Snapshot { return l.snapshot }

// NextSeq returns the Seq of the next entry: the highest Seq plus one.
func (l Ledger) NextSeq() uint64 { return l.snapshot.highWater + 1 }

// Entries returns all entries in the order in which they were appended. The caller may modify the slice, but not the
// cards, which are shared.
func (l Ledger) Entries() []Entry {
	log := make([]Entry, l.length)
	end := l.length
	for b := l.last; b != nil; b = b.before {
		end -= len(b.entries)
		copy(log[end:], b.entries)
	}
	return log
}

// SnapshotAt returns the fold of all entries whose At is not after moment. Its cost is proportional to the length of
// the log.
func (l Ledger) SnapshotAt(moment time.Time) Snapshot {
	return FoldEntries(slices.DeleteFunc(l.Entries(), func(e Entry) bool { return e.At.After(moment) }))
}
