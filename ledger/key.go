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

// A CardKey identifies an enrolled card. It is "bk_" followed by 32 hexadecimal digits or by a ULID.
type CardKey string

const keyPrefix = "bk_"

// ContentKey returns the key that is derived from a card's content: its qualified name and its input schema. Cards with
// equal names and equal schemas have the same key. The order of members and white space in the schema do not matter. A
// nil schema counts as null. A schema that is not valid JSON is compared byte for byte.
//
// The key contains the first half of the SHA-256 of {"name":…,"schema":…}. The hashed text is in the canonical form
// of package rawjson with DoubleNumbers.
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

// A KeyGenerator generates unique keys that sort by creation time. The zero value is ready to use. It is not safe for
// concurrent use.
type KeyGenerator struct {
	entropy *ulid.MonotonicEntropy
	millis  uint64
}

// Next returns a key that is greater than all earlier keys, even if now is equal to or before an earlier time.
func (k *KeyGenerator) Next(now time.Time) CardKey {
	if k.entropy == nil {
		k.entropy = ulid.Monotonic(rand.Reader, 0)
	}
	if millis := now.UnixMilli(); millis > 0 {
		k.millis = max(k.millis, min(uint64(millis), ulid.MaxTime()))
	}
	id, err := ulid.New(k.millis, k.entropy)
	if err != nil { // all keys of this millisecond have been used
		k.millis++
		id = ulid.MustNew(k.millis, k.entropy)
	}
	return keyPrefix + CardKey(id.String())
}

// QualifiedName returns the name of a tool that is unique among servers: "<server>__<tool>".
func QualifiedName(server, tool string) string { return server + drawbridge.NameSeparator + tool }
