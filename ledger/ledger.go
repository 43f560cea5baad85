package ledger

import (
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A Ledger is a log and its fold. It is a value: no method changes it, and ledgers made from one another share what
// they have in common. The zero Ledger is empty. A ledger may be read from several goroutines.
type Ledger struct {
	last     *batch
	length   int
	snapshot Snapshot
}

// A batch is what one transition added: the log is a chain of them, so that adding to it copies nothing.
type batch struct {
	before  *batch
	entries []Entry
}

// A EnrolRequest asks for a card to be enrolled.
type EnrolRequest struct {
	Card EnrolledCard
	// Key is the key to enrol it by; empty means its content key. Of two cards with one key only the later is live.
	Key CardKey
}

// Empty gives the ledger without entries. Its first entry will have Seq 1.
func Empty() Ledger { return Ledger{} }

// FromLog gives the ledger of a log that was kept: the same ledger, in what is live and in its order, as the one that
// the log was taken from.
func FromLog(log []Entry) Ledger { return Empty().Append(log...) }

// Append adds entries that have their Seq already, as a journal gives it; there may be gaps, where others appended too.
// Entries that come after everything in the log are folded onto what is live. Others are late, and then the whole log
// is folded anew.
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

// Enrol adds cards. A card whose key is live takes the place of what was there. It gives the new ledger and what was
// added to its log.
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

// Retire takes the card with that key out. A key that is not live is put on the log all the same. It gives the new
// ledger and what was added to its log.
func (l Ledger) Retire(key CardKey, server drawbridge.ServerID, at time.Time) (Ledger, []Entry) {
	return l.appendNew([]Entry{{Op: OpRetire, Key: key, Server: server}}, at)
}

// RetireServer retires all that is live of a server. It gives the new ledger and what was added to its log: nothing
// for a server that has nothing live.
func (l Ledger) RetireServer(server drawbridge.ServerID, at time.Time) (Ledger, []Entry) {
	entries := l.LiveByServer(server)
	for i, e := range entries {
		entries[i] = Entry{Op: OpRetire, Key: e.Key, Server: server}
	}
	return l.appendNew(entries, at)
}

// appendNew numbers and dates entries and appends them.
func (l Ledger) appendNew(entries []Entry, at time.Time) (Ledger, []Entry) {
	for i := range entries {
		entries[i].Seq = l.NextSeq() + uint64(i)
		entries[i].At = at
	}
	return l.Append(entries...), entries
}

// Live gives the entries by which cards are live, in order. The slice is the caller's; the cards are shared.
func (l Ledger) Live() []Entry { return l.snapshot.Live() }

// LiveByServer gives what is live of one server, in order.
func (l Ledger) LiveByServer(server drawbridge.ServerID) []Entry {
	return l.snapshot.LiveByServer(server)
}

// LiveEntry gives the entry by which the card with that key is live.
func (l Ledger) LiveEntry(key CardKey) (Entry, bool) { return l.snapshot.LiveEntry(key) }

// Snapshot gives the fold of the log.
func (l Ledger) Snapshot() Snapshot { return l.snapshot }

// NextSeq is the Seq that the next entry will have: one past the highest.
func (l Ledger) NextSeq() uint64 { return l.snapshot.highWater + 1 }

// Entries gives all entries in the order they were appended. The slice is the caller's; the cards are shared.
func (l Ledger) Entries() []Entry {
	log := make([]Entry, l.length)
	end := l.length
	for b := l.last; b != nil; b = b.before {
		end -= len(b.entries)
		copy(log[end:], b.entries)
	}
	return log
}

// SnapshotAt gives what was live at a moment: the fold of all entries up to it. It costs the length of the log.
func (l Ledger) SnapshotAt(moment time.Time) Snapshot {
	return FoldEntries(slices.DeleteFunc(l.Entries(), func(e Entry) bool { return e.At.After(moment) }))
}
