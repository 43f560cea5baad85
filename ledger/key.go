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

// A CardKey identifies an enrolled card: "bk_" and 32 hexadecimal digits, or "bk_" and a ULID.
type CardKey string

const keyPrefix = "bk_"

// ContentKey returns the key derived from a card's content. Equal qualified names and schemas have equal keys, whatever
// the order and white space of the schema. A nil schema counts as null. A schema that is not valid JSON counts byte for
// byte.
//
// The key is the first half of the SHA-256 of {"name":…,"schema":…} in the canonical form of rawjson with double
// numbers.
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

// A KeyGenerator makes unique keys that sort by creation time. The zero value is ready to use. It is not safe for
// concurrent use.
type KeyGenerator struct {
	entropy *ulid.MonotonicEntropy
	millis  uint64
}

// Next returns a key greater than all keys before it, even if now has not advanced or went back.
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

// QualifiedName returns the name of a server's tool among all tools: "<server>__<tool>".
func QualifiedName(server, tool string) string { return server + drawbridge.NameSeparator + tool }
