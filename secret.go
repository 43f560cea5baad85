package drawbridge

import (
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"unique"
)

// Redacted is what a [Secret] shows of itself.
const Redacted = "[redacted]"

// A Secret is a text that is for one reader: whoever calls Reveal, to send it where it belongs. However else it is
// printed, logged or encoded, as itself or as a part of something, it says "[redacted]"; an empty one says nothing.
// Two of them compare as their texts do.
type Secret struct {
	// text is behind a pointer: printers that find a Secret in an unexported field cannot ask it what to show, and
	// print what is in it. The zero handle is the empty text.
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

// NewSecret keeps a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{unique.Make(text)}
}

// Reveal gives the text.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.text.Value()
}

// IsZero says whether there is no text. Encoders leave the member out then, where it says "omitzero".
func (s Secret) IsZero() bool { return s == Secret{} }

// Equal says whether both are of the same text, as == does.
func (s Secret) Equal(other Secret) bool { return s == other }

// String gives what may be shown: "[redacted]", or nothing where there is nothing.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return Redacted
}

// GoString is what %#v shows.
func (s Secret) GoString() string { return s.String() }

// Format writes what may be shown, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText gives what may be shown.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON gives what may be shown as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// LogValue is what a log shows.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
