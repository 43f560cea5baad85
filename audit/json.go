package audit

import (
	"bytes"
	"encoding/json"
)

// A reader goes through JSON. Its methods start at src[i] and leave i behind what they read; they say false where that is not
// what they were to read, and then i is anywhere. What a scalar says is not checked beyond where it ends.
type reader struct {
	src []byte
	i   int
}

// space passes over blanks and gives the next byte; 0 at the end.
func (r *reader) space() byte {
	for ; r.i < len(r.src); r.i++ {
		switch c := r.src[r.i]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

// token reads a string, with its quotes.
func (r *reader) token() ([]byte, bool) {
	if r.space() != '"' {
		return nil, false
	}
	start := r.i
	for r.i++; r.i < len(r.src); r.i++ {
		switch c := r.src[r.i]; {
		case c == '\\':
			r.i++
		case c == '"':
			r.i++
			return r.src[start:r.i], true
		case c < ' ':
			return nil, false
		}
	}
	r.i = len(r.src)
	return nil, false
}

// scalar reads a number or a word.
func (r *reader) scalar() bool {
	start := r.i
	for ; r.i < len(r.src); r.i++ {
		switch r.src[r.i] {
		case ' ', '\n', '\r', '\t', ',', ']', '}':
			return json.Valid(r.src[start:r.i])
		}
	}
	return json.Valid(r.src[start:r.i])
}

// skip passes over a value. That brackets of one kind close those of the other is not noticed: what is passed over is not
// kept.
func (r *reader) skip() bool {
	depth := 0
	for {
		switch r.space() {
		case '{', '[':
			depth++
			r.i++
		case '}', ']':
			depth--
			r.i++
		case ',', ':':
			r.i++
		case '"':
			if _, ok := r.token(); !ok {
				return false
			}
		case 0:
			return false
		default:
			if !r.scalarInside() {
				return false
			}
		}
		if depth <= 0 {
			return depth == 0
		}
	}
}

// scalarInside is scalar for a value that is passed over.
func (r *reader) scalarInside() bool {
	start := r.i
	for ; r.i < len(r.src); r.i++ {
		if bytes.IndexByte([]byte(" \n\r\t,:]}[{\""), r.src[r.i]) >= 0 {
			break
		}
	}
	return r.i > start
}

// unquote gives what a token says.
func unquote(token []byte) string {
	if len(token) < 2 {
		return ""
	}
	if bytes.IndexByte(token, '\\') < 0 {
		return string(token[1 : len(token)-1])
	}
	var text string
	if json.Unmarshal(token, &text) != nil {
		return string(token)
	}
	return text
}
