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

// The two operations. An entry with any other operation remains in the log and has no effect.
const (
	OpEnrol  EntryOp = "enroll"
	OpRetire EntryOp = "retire"
)

// An EnrolledCard is a tool of a server as it was enrolled. It is immutable.
type EnrolledCard struct {
	Server drawbridge.ServerID
	// Tool is the tool's name on its server.
	Tool string
	// ConfigHash is the hash of the server's configuration when the tool was enrolled.
	ConfigHash string
	// Definition is the MCP tool object as the server sent it.
	Definition json.RawMessage
}

// Key returns the card's content key. It is derived from the qualified name and the inputSchema of the definition.
func (c EnrolledCard) Key() CardKey {
	return ContentKey(QualifiedName(string(c.Server), c.Tool), rawjson.Get(c.Definition, "inputSchema"))
}

// An Entry is one event of the log: the enrolment or the retirement of a tool.
type Entry struct {
	Op     EntryOp
	Key    CardKey
	Server drawbridge.ServerID
	// Card is the enrolled card; nil for a retirement. An enrolment without a card has no effect.
	Card *EnrolledCard
	// Seq is the entry's sequence number in the log. It alone determines the order of entries in the fold.
	Seq uint64
	// At is the time of the event. It is only used for display and by [Ledger.SnapshotAt].
	At time.Time
}

// compareEntries orders entries by Seq. A journal never writes two entries with the same Seq. If there are such entries
// nevertheless, the other fields determine their order, so that the fold is always the same.
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

// A Journal stores logs. Each log is a stream with a name. Several processes may append to one stream.
type Journal interface {
	// Append adds the entries to the end of a stream: either all of them or none. It returns the entries with Seq and
	// At set. Seq counts from 1 without gaps, and At is the journal's own time. After an error nothing was added,
	// unless the error is a *drawbridge.Fault with Ambiguous set.
	Append(ctx context.Context, stream string, entries []Entry) ([]Entry, error)

	// Replay returns all entries of a stream in order; none if the stream does not exist. It returns an error for an
	// entry that cannot be decoded. It does not verify the hash chain.
	Replay(ctx context.Context, stream string) ([]Entry, error)
}

// A StreamFolder is a Journal that can fold a stream without returning its whole log. This saves memory, because a log
// grows without limit and the set of live entries does not.
type StreamFolder interface {
	// FoldStream returns the fold of the stream's entries; the zero Snapshot if the stream has no entries.
	FoldStream(ctx context.Context, stream string) (Snapshot, error)
}
