package audit

import (
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A jsonReader walks JSON that [rawjson.Valid] accepted. Its methods start at src[i] and leave i after the text they
// read; they return false if the text is something else.
type jsonReader struct {
	raw []byte
	src string // the same text as raw; the tokens are parts of it
	i   int
}

// newJSONReader returns a reader of raw; false if raw is not JSON.
func newJSONReader(raw []byte) (jsonReader, bool) {
	return jsonReader{raw: raw, src: string(raw)}, rawjson.Valid(raw) == nil
}

// skipBlanks skips white space and returns the next byte; 0 at the end.
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

// readScalar reads a string, a number or a word.
func (r *jsonReader) readScalar() bool {
	end, err := rawjson.SkipScalar(r.raw, r.i)
	r.i = end
	return err == nil
}

// skipValue skips a value.
func (r *jsonReader) skipValue() bool {
	end, err := rawjson.SkipValue(r.raw, r.i)
	r.i = end
	return err == nil
}

// unquoteToken returns the text of a string with quotes.
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
