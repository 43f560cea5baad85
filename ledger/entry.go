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

// An EntryOp is what an entry does.
type EntryOp string

// The two operations. An entry with any other is kept in the log and changes nothing.
const (
	OpEnrol  EntryOp = "enroll"
	OpRetire EntryOp = "retire"
)

// A EnrolledCard is a server's tool as it was enrolled. It is not changed after it was made.
type EnrolledCard struct {
	Server drawbridge.ServerID
	// Tool is the tool's name on its server.
	Tool string
	// ConfigHash is the hash of the server's configuration as it was then.
	ConfigHash string
	// Definition is the MCP tool object as the server sent it.
	Definition json.RawMessage
}

// Key gives the card's content key: that of its qualified name and the inputSchema of its definition.
func (c EnrolledCard) Key() CardKey {
	return ContentKey(QualifiedName(string(c.Server), c.Tool), rawjson.Get(c.Definition, "inputSchema"))
}

// An Entry is one event of the log.
type Entry struct {
	Op     EntryOp
	Key    CardKey
	Server drawbridge.ServerID
	// Card is what is enrolled; nil where the entry retires. An enrolment without a card changes nothing.
	Card *EnrolledCard
	// Seq is the entry's place in the log. The fold goes by it, and by nothing else.
	Seq uint64
	// At is when it happened, for people and for [Ledger.SnapshotAt].
	At time.Time
}

// compareEntries puts entries in the order of the fold. The order is total, so that even entries which share a Seq, as
// those of no journal do, fold in one way only.
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

// A Journal keeps logs, one a stream. Several processes may append to one stream.
type Journal interface {
	// Append adds the entries to the end of a stream, all of them or none, and gives them back with their Seq, which
	// counts from 1 without a gap, and their At, which is the journal's own time. An error means that none were added,
	// unless it is a *drawbridge.Fault with Ambiguous set.
	Append(ctx context.Context, stream string, entries []Entry) ([]Entry, error)

	// Replay gives the entries of a stream in order; none for a stream that nobody has appended to. It checks that each
	// can be read, and not that the chain holds.
	Replay(ctx context.Context, stream string) ([]Entry, error)
}

// A StreamFolder is a Journal that knows what its logs come to without giving all of them: a log grows for ever, and
// what is live does not.
type StreamFolder interface {
	// FoldStream gives what Reduce makes of the entries of a stream; the zero Snapshot for a stream that nobody has
	// appended to.
	FoldStream(ctx context.Context, stream string) (Snapshot, error)
}
