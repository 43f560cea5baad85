package ledger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An EntryOp is the operation of an entry.
type EntryOp string

// The two operations. An entry with any other is kept in the log and changes nothing.
const (
	OpEnrol  EntryOp = "enroll"
	OpRetire EntryOp = "retire"
)

// An EnrolledCard is a server's tool as it was enrolled. It is immutable.
type EnrolledCard struct {
	Server drawbridge.ServerID
	// Tool is the tool's name on its server.
	Tool string
	// ConfigHash is the hash of the server's configuration at enrolment.
	ConfigHash string
	// Definition is the MCP tool object as the server sent it.
	Definition json.RawMessage
}

// Key returns the card's content key, made of its qualified name and the inputSchema of its definition.
func (c EnrolledCard) Key() CardKey {
	return ContentKey(QualifiedName(string(c.Server), c.Tool), rawjson.Get(c.Definition, "inputSchema"))
}

// An Entry is one event of the log.
type Entry struct {
	Op     EntryOp
	Key    CardKey
	Server drawbridge.ServerID
	// Card is the enrolled card; nil for a retirement. An enrolment without a card changes nothing.
	Card *EnrolledCard
	// Seq is the entry's place in the log. The fold uses nothing else for the order.
	Seq uint64
	// At is the time of the event, for people and for [Ledger.SnapshotAt].
	At time.Time
}

// compareEntries orders entries before they are folded into a ledger. No two entries are equal, so the result is always
// the same, even for entries with the same Seq, which no journal writes.
func compareEntries(a, b Entry) int {
	if c := cmp.Compare(a.Seq, b.Seq); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Server, b.Server),
		a.At.Compare(b.At), compareCards(a.Card, b.Card))
}

func compareCards(a, b *EnrolledCard) int {
	switch {
	case a == b:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.ConfigHash, b.ConfigHash),
		bytes.Compare(a.Definition, b.Definition))
}

// A Journal stores logs, one per stream. Several processes may append to one stream.
type Journal interface {
	// Append adds the entries to the end of a stream: all of them or none. It returns them with Seq, which counts from
	// 1 without a gap, and with At, which is the journal's own time. An error means that nothing was added, unless it
	// is a *drawbridge.Fault with Ambiguous set.
	Append(ctx context.Context, stream string, entries []Entry) ([]Entry, error)

	// Replay returns the entries of a stream in order; none for a stream without entries. It checks that each entry
	// can be decoded. It does not verify the chain.
	Replay(ctx context.Context, stream string) ([]Entry, error)
}

// A StreamFolder is a Journal that can fold a stream without returning its whole log. A log grows without bound; the
// set of live entries does not.
type StreamFolder interface {
	// FoldStream returns the fold of the stream's entries; the zero Snapshot for a stream without entries.
	FoldStream(ctx context.Context, stream string) (Snapshot, error)
}
