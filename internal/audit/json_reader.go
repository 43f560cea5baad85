package audit

import (
	"encoding/json"
	"strings"
)

// A jsonReader goes through JSON. Its methods start at src[i] and leave i behind what they read; they say false where
// that is not what they were to read, and then i is anywhere. What a scalar says is not checked beyond where it ends.
type jsonReader struct {
	src string
	i   int
}

// skipBlanks passes over blanks and gives the next byte; 0 at the end.
func (r *jsonReader) skipBlanks() byte {
	for ; r.i < len(r.src); r.i++ {
		switch c := r.src[r.i]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

// readString reads a string, with its quotes. Where there is no whole one, i stays where it would begin.
func (r *jsonReader) readString() (string, bool) {
	if r.skipBlanks() != '"' {
		return "", false
	}
	for i := r.i + 1; i < len(r.src); i++ {
		if i += plainPrefixLen(r.src[i:]); i == len(r.src) {
			break
		}
		switch c := r.src[i]; {
		case c == '\\':
			i++
		case c == '"':
			token := r.src[r.i : i+1]
			r.i = i + 1
			return token, true
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// readScalar reads a number or a word.
func (r *jsonReader) readScalar() bool {
	start := r.i
	for ; r.i < len(r.src); r.i++ {
		switch r.src[r.i] {
		case ' ', '\n', '\r', '\t', ',', ']', '}':
			return isJSONScalar(r.src[start:r.i])
		}
	}
	return isJSONScalar(r.src[start:r.i])
}

// isJSONScalar says whether a word is a number, true, false or null.
func isJSONScalar(word string) bool {
	switch word {
	case "true", "false", "null":
		return true
	}
	if digits := len(word); digits > 0 && (word[0] > '0' || digits == 1) { // most numbers are whole ones
		for digits > 0 && word[digits-1] >= '0' && word[digits-1] <= '9' {
			digits--
		}
		if digits == 0 {
			return true
		}
	}
	return json.Valid([]byte(word))
}

// skipValue passes over a value. That brackets of one kind close those of the other is not noticed: what is passed
// over is not kept.
func (r *jsonReader) skipValue() bool {
	depth := 0
	for {
		switch r.skipBlanks() {
		case '{', '[':
			depth++
			r.i++
		case '}', ']':
			depth--
			r.i++
		case ',', ':':
			r.i++
		case '"':
			if _, ok := r.readString(); !ok {
				return false
			}
		case 0:
			return false
		default:
			if !r.skipScalar() {
				return false
			}
		}
		if depth <= 0 {
			return depth == 0
		}
	}
}

// skipScalar is scalar for a value that is passed over.
func (r *jsonReader) skipScalar() bool {
	start := r.i
	for ; r.i < len(r.src); r.i++ {
		if strings.IndexByte(" \n\r\t,:]}[{\"", r.src[r.i]) >= 0 {
			break
		}
	}
	return r.i > start
}

// unquoteToken gives what a token says.
func unquoteToken(token string) string {
	if len(token) < 2 {
		return ""
	}
	if strings.IndexByte(token, '\\') < 0 {
		return token[1 : len(token)-1]
	}
	var text string
	if json.Unmarshal([]byte(token), &text) != nil {
		return token
	}
	return text
}
