package audit

import (
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A jsonReader reads JSON that [rawjson.Valid] accepted. Each method reads the text that begins at src[i] and sets i
// to the end of that text. A method with a boolean result returns false if a text of another kind begins at i.
type jsonReader struct {
	raw []byte
	src string // the same text as raw; returned tokens are substrings of src
	i   int
}

// newJSONReader returns a reader of raw, and reports whether raw is valid JSON.
func newJSONReader(raw []byte) (jsonReader, bool) {
	return jsonReader{raw: raw, src: string(raw)}, rawjson.Valid(raw) == nil
}

// skipBlanks skips white space and returns the next byte, or 0 at the end.
func (r *jsonReader) skipBlanks() byte {
	if r.i = rawjson.SkipSpace(r.raw, r.i); r.i < len(r.src) {
		return r.src[r.i]
	}
	return 0
}

// readString reads a string and returns it with its quotes.
func (r *jsonReader) readString() (string, bool) {
	if r.skipBlanks() != '"' {
		return "", false
	}
	start := r.i
	ok := r.readScalar()
	return r.src[start:r.i], ok
}

// readScalar moves i after a string, a number, true, false or null.
func (r *jsonReader) readScalar() bool {
	end, err := rawjson.SkipScalar(r.raw, r.i)
	r.i = end
	return err == nil
}

// skipValue moves i after one JSON value, including objects and arrays.
func (r *jsonReader) skipValue() bool {
	end, err := rawjson.SkipValue(r.raw, r.i)
	r.i = end
	return err == nil
}

// unquoteToken returns the decoded text of a JSON string token.
func unquoteToken(token string) string {
	if len(token) < 2 {
		return ""
	}
	if strings.IndexByte(token, '\\') < 0 {
		return token[1 : len(token)-1]
	}
	text, ok := rawjson.DecodeString(json.RawMessage(token))
	if !ok {
		return token
	}
	return text
}
