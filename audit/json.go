package audit

import (
	"encoding/json"
	"strings"
)

// A reader goes through JSON. Its methods start at src[i] and leave i behind what they read; they say false where that is not
// what they were to read, and then i is anywhere. What a scalar says is not checked beyond where it ends.
type reader struct {
	src string
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

// token reads a string, with its quotes. Where there is no whole one, i stays where it would begin.
func (r *reader) token() (string, bool) {
	if r.space() != '"' {
		return "", false
	}
	for i := r.i + 1; i < len(r.src); i++ {
		if i += plain(r.src[i:]); i == len(r.src) {
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

// scalar reads a number or a word.
func (r *reader) scalar() bool {
	start := r.i
	for ; r.i < len(r.src); r.i++ {
		switch r.src[r.i] {
		case ' ', '\n', '\r', '\t', ',', ']', '}':
			return isScalar(r.src[start:r.i])
		}
	}
	return isScalar(r.src[start:r.i])
}

// isScalar says whether a word is a number, true, false or null.
func isScalar(word string) bool {
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
		if strings.IndexByte(" \n\r\t,:]}[{\"", r.src[r.i]) >= 0 {
			break
		}
	}
	return r.i > start
}

// unquote gives what a token says.
func unquote(token string) string {
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
