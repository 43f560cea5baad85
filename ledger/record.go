package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A Record is an entry as a journal stores it.
type Record struct {
	// Stream is the record's log and Seq its place there, counted from 1 without gaps.
	Stream string
	Seq    uint64
	At     time.Time
	// Kind is the operation, Key the card's key.
	Kind, Key string
	// Body is a line of JSON. For an enrolment a line feed and the definition follow, byte for byte as the server sent
	// it.
	Body []byte
	// Prev is the hash of the record before, zero for the first record. Hash is the record's own.
	Prev, Hash [32]byte
}

// recordHead is the first line of a body.
type recordHead struct {
	Server drawbridge.ServerID `json:"server"`
	Tool   string              `json:"tool,omitempty"`
	Row    string              `json:"row,omitempty"`
}

// EncodeEntry returns the record of an entry, without Stream, Prev and Hash. It refuses an entry that DecodeRecord
// could not restore: one that is neither a retirement nor an enrolment of the server's own card with a JSON definition.
// Errors reveal nothing of the card except its key and server.
func EncodeEntry(e Entry) (Record, error) {
	h := recordHead{Server: e.Server}
	var definition []byte
	switch {
	case e.Op == OpRetire && e.Card == nil:
	case e.Op == OpEnrol && e.Card != nil && e.Card.Server == e.Server:
		h.Tool, h.Row = e.Card.Tool, e.Card.ConfigHash
		definition = e.Card.Definition
		if rawjson.Valid(definition) != nil {
			return Record{}, fmt.Errorf("encode %s of %s: its definition is not JSON", e.Key, e.Server)
		}
	default:
		return Record{}, fmt.Errorf("encode %s of %s: neither an enrolment of its own card nor a retirement",
			e.Key, e.Server)
	}
	body, err := json.Marshal(h)
	if err != nil {
		return Record{}, fmt.Errorf("encode %s of %s: %w", e.Key, e.Server, err)
	}
	if e.Op == OpEnrol {
		body = append(append(body, '\n'), definition...)
	}
	return Record{Seq: e.Seq, At: e.At, Kind: string(e.Op), Key: string(e.Key), Body: body}, nil
}

// DecodeRecord returns the entry of a record. The entry's card shares its definition with the record's body. The error
// for a damaged body is a *ChainError with DamageTorn; it reveals nothing of the body. DecodeRecord does not verify the
// chain.
func DecodeRecord(r Record) (Entry, error) {
	e := Entry{Op: EntryOp(r.Kind), Key: CardKey(r.Key), Seq: r.Seq, At: r.At}
	line, definition, more := bytes.Cut(r.Body, []byte{'\n'})
	var h recordHead
	if json.Unmarshal(line, &h) != nil {
		return Entry{}, &ChainError{r.Stream, r.Seq, DamageTorn}
	}
	e.Server = h.Server
	switch e.Op {
	case OpRetire:
		if more {
			return Entry{}, &ChainError{r.Stream, r.Seq, DamageTorn}
		}
	case OpEnrol:
		if rawjson.Valid(definition) != nil {
			return Entry{}, &ChainError{r.Stream, r.Seq, DamageTorn}
		}
		e.Card = &EnrolledCard{Server: h.Server, Tool: h.Tool, ConfigHash: h.Row, Definition: definition}
	default:
		return Entry{}, fmt.Errorf("decode record %d of %s: unknown kind %.20q", r.Seq, r.Stream, r.Kind)
	}
	return e, nil
}

// ChainHash returns the hash of a record that follows a record with the hash prev. It is the SHA-256 of prev, Seq, and
// the seconds and nanoseconds of At since 1970, eight bytes each and big endian; then Stream, Kind, Key and Body, each
// after its length in eight bytes. The fields Prev and Hash of r are ignored.
func ChainHash(prev [32]byte, r Record) [32]byte {
	var room [2048]byte // nearly always there is enough
	text := append(room[:0], prev[:]...)
	text = binary.BigEndian.AppendUint64(text, r.Seq)
	text = binary.BigEndian.AppendUint64(text, uint64(r.At.Unix()))
	text = binary.BigEndian.AppendUint64(text, uint64(r.At.Nanosecond()))
	for _, s := range [...]string{r.Stream, r.Kind, r.Key} {
		text = binary.BigEndian.AppendUint64(text, uint64(len(s)))
		text = append(text, s...)
	}
	text = binary.BigEndian.AppendUint64(text, uint64(len(r.Body)))
	return sha256.Sum256(append(text, r.Body...))
}
