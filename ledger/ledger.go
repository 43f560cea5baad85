package ledger

import (
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A Ledger is a log and its fold. It is an immutable value: each transition returns a new ledger, and ledgers share
// their common part. A transition costs time for the new and the live entries, never for the length of the log. The
// zero Ledger is empty. A ledger is safe for concurrent use.
type Ledger struct {
	last     *batch
	length   int
	snapshot Snapshot
}

// A batch holds the entries of one transition. The log is a linked list of batches, so appending copies nothing.
type batch struct {
	before  *batch
	entries []Entry
}

// An EnrolRequest asks for a card to be enrolled.
type EnrolRequest struct {
	Card EnrolledCard
	// Key is the key to enrol the card by; empty means its content key. Of two cards with one key only the later is
	// live.
	Key CardKey
}

// Empty returns the ledger without entries. Its first entry gets Seq 1.
func Empty() Ledger { return Ledger{} }

// FromLog returns the ledger of a stored log. Its live entries and their order equal those of the ledger that wrote the
// log.
func FromLog(log []Entry) Ledger { return Empty().Append(log...) }

// Append adds entries that already have a Seq from a journal. Gaps are allowed, since others may append too. Entries
// after the end of the log are folded onto the live ones. An entry before it makes Append fold the whole log again.
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

// Enrol adds cards. A card with a live key replaces the card of that key. Enrol returns the new ledger and the entries
// that it appended.
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

// Retire removes the card with that key. The entry is appended even if the key is not live. Retire returns the new
// ledger and the entries that it appended.
func (l Ledger) Retire(key CardKey, server drawbridge.ServerID, at time.Time) (Ledger, []Entry) {
	return l.appendNew([]Entry{{Op: OpRetire, Key: key, Server: server}}, at)
}

// RetireServer removes all live cards of a server. It returns the new ledger and the entries that it appended; none for
// a server without live cards.
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

// Live returns the live entries in order. The caller owns the slice; the cards are shared.
func (l Ledger) Live() []Entry { return l.snapshot.Live() }

// LiveByServer returns the live entries of one server, in order.
func (l Ledger) LiveByServer(server drawbridge.ServerID) []Entry {
	return l.snapshot.LiveByServer(server)
}

// LiveEntry returns the live entry with that key.
func (l Ledger) LiveEntry(key CardKey) (Entry, bool) { return l.snapshot.LiveEntry(key) }

// Snapshot returns the fold of the log.
func (l Ledger) Snapshot() Snapshot { return l.snapshot }

// NextSeq returns the Seq of the next entry: one past the highest.
func (l Ledger) NextSeq() uint64 { return l.snapshot.highWater + 1 }

// Entries returns all entries in the order they were appended. The caller owns the slice; the cards are shared.
func (l Ledger) Entries() []Entry {
	log := make([]Entry, l.length)
	end := l.length
	for b := l.last; b != nil; b = b.before {
		end -= len(b.entries)
		copy(log[end:], b.entries)
	}
	return log
}

// SnapshotAt returns the fold of all entries up to a moment. Its cost grows with the length of the log.
func (l Ledger) SnapshotAt(moment time.Time) Snapshot {
	return FoldEntries(slices.DeleteFunc(l.Entries(), func(e Entry) bool { return e.At.After(moment) }))
}
