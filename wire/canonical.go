package wire

import (
	"bytes"
	"encoding/json"
)

// Canonical writes a JSON value so that two values which mean the same are the same bytes: members sorted, no blanks.
// Numbers stay as they are written, and so does what is no JSON. It is for comparing, and for nothing that is sent.
func Canonical(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}
