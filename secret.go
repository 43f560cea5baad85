package drawbridge

import (
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"unique"
)

// Redacted is the text that is printed in place of a [Secret].
const Redacted = "[redacted]"

// A Secret is a text that is not printed or logged by mistake. Only Reveal returns the text, for code that sends it to
// its destination. If a Secret, or a value that contains one, is printed, logged or encoded, "[redacted]" appears in
// its place; an empty Secret appears as "". Two Secrets are equal if their texts are equal.
type Secret struct {
	// text refers to the string by a pointer, so that printing the memory of a Secret does not show the string. A
	// printer that finds a Secret in an unexported field prints its memory, because it cannot call the methods. The
	// zero handle is the empty text.
	text unique.Handle[string]
}

var (
	_ fmt.Formatter          = Secret{}
	_ fmt.Stringer           = Secret{}
	_ fmt.GoStringer         = Secret{}
	_ json.Marshaler         = Secret{}
	_ encoding.TextMarshaler = Secret{}
	_ slog.LogValuer         = Secret{}
)

// NewSecret returns a Secret of text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{unique.Make(text)}
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.text.Value()
}

// IsZero reports whether the text is empty. Package encoding/json calls it for the struct tag "omitzero".
func (s Secret) IsZero() bool { return s == Secret{} }

// Equal reports whether s and other have the same text, as == does.
func (s Secret) Equal(other Secret) bool { return s == other }

// String returns "[redacted]", or "" for an empty Secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return Redacted
}

// GoString returns the same as String, for %#v.
func (s Secret) GoString() string { return s.String() }

// Format writes the same as String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText returns the same as String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns the same as String, as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// LogValue returns the same as String, for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
