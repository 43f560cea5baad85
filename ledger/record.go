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

// A Record is an entry in the form in which a journal stores it.
type Record struct {
	// Stream is the name of the record's log. Seq is the record's number in the log, counted from 1 without gaps.
	Stream string
	Seq    uint64
	At     time.Time
	// Kind is the operation of the entry, an EntryOp. Key is the key of the card.
	Kind, Key string
	// Body is one line of JSON. For an enrolment, it is followed by a line feed and the card's definition, byte for
	// byte as the server sent it.
	Body []byte
	// Prev is the hash of the previous record in the log; it is zero in the first record. Hash is the hash of this
	// record.
	Prev, Hash [32]byte
}

// A recordHead is the JSON in the first line of a record's body. Row is the card's ConfigHash.
type recordHead struct {
	Server drawbridge.ServerID `json:"server"`
	Tool   string              `json:"tool,omitempty"`
	Row    string              `json:"row,omitempty"`
}

// EncodeEntry returns the record of an entry, without Stream, Prev and Hash. It accepts two kinds of entries: a
// retirement without a card, and an enrolment of a card of the entry's own server. The card's definition must be JSON.
// For other entries, which DecodeRecord could not restore, it returns an error. Errors contain only the key and the
// server of the card.
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

// DecodeRecord returns the entry of a record. The entry's card shares memory with the record's body. If the body is
// damaged, the error is a *ChainError with DamageTorn, which contains no part of the body. An unknown Kind is also an
// error. DecodeRecord does not verify the hash chain.
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

// ChainHash returns the hash of record r if it follows a record with the hash prev. It ignores the fields Prev and Hash
// of r. The result is the SHA-256 of prev, Seq, the seconds of At, its nanoseconds, Stream, Kind, Key and Body, in this
// order. Seconds count from 1970. Numbers have eight bytes, big endian. Stream, Kind, Key and Body are each preceded by
// their length as such a number.
func ChainHash(prev [32]byte, r Record) [32]byte {
	var room [2048]byte // nearly always large enough
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
