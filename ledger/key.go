package ledger

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/oklog/ulid/v2"
)

// A CardKey is what a card is enrolled by: "bk_" and 32 hexadecimal digits, or "bk_" and a ULID.
type CardKey string

const keyPrefix = "bk_"

// ContentKey gives the key that follows from what a card is: the same for the same qualified name and schema, in
// whatever order and with whatever blanks the schema is written; another one when the schema says something else. A
// nil schema is null; a schema that is no JSON counts byte for byte.
//
// The key is the first half of the SHA-256 of {"name":…,"schema":…} in canonical JSON.
func ContentKey(qualified string, schema json.RawMessage) CardKey {
	text := make([]byte, 0, len(qualified)+len(schema)+32)
	text = append(text, `{"name":`...)
	text = rawjson.AppendStringified(text, qualified)
	text = append(text, `,"schema":`...)
	if len(schema) == 0 {
		schema = json.RawMessage("null")
	}
	if written, ok := rawjson.AppendCanonical(text, schema, rawjson.DoubleNumbers); ok {
		text = written
	} else {
		text = append(text, schema...)
	}
	sum := sha256.Sum256(append(text, '}'))
	return CardKey(keyPrefix + hex.EncodeToString(sum[:16]))
}

// KeyGenerator makes keys that are new each time and sort by when they were made. The zero Keys is ready; it is for
// one goroutine at a time.
type KeyGenerator struct {
	entropy *ulid.MonotonicEntropy
	millis  uint64
}

// Next gives a key that is greater than all before it, even where now is not later than it was, or is earlier.
func (k *KeyGenerator) Next(now time.Time) CardKey {
	if k.entropy == nil {
		k.entropy = ulid.Monotonic(rand.Reader, 0)
	}
	if millis := now.UnixMilli(); millis > 0 {
		k.millis = max(k.millis, min(uint64(millis), ulid.MaxTime()))
	}
	id, err := ulid.New(k.millis, k.entropy)
	if err != nil { // the keys of this millisecond are used up
		k.millis++
		id = ulid.MustNew(k.millis, k.entropy)
	}
	return keyPrefix + CardKey(id.String())
}

// QualifiedName gives the name of a server's tool among all tools: "<server>__<tool>".
func QualifiedName(server, tool string) string { return server + drawbridge.NameSeparator + tool }
