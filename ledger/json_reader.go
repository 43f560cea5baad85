package ledger

import (
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep JSON may nest before it is taken for no JSON. It is what the wire lets through.
const maxDepth = 512

// A jsonReader goes through JSON. Its methods start at src[i] and leave i behind what they read; they say false where
// that is not what they were to read, and then i is anywhere.
type jsonReader struct {
	src []byte
	i   int
}

// isValidJSON says whether b is one JSON value.
func isValidJSON(b []byte) bool {
	r := jsonReader{src: b}
	return utf8.Valid(b) && r.skipValue(0) && r.atEnd()
}

// lastMember finds a member of the object in b; nil where there is none. Of two with one name the last counts, as it
// does in JavaScript.
func lastMember(b []byte, name string) json.RawMessage {
	r := jsonReader{src: b}
	var found json.RawMessage
	r.readObject(func(key []byte) bool {
		r.skipSpace()
		start := r.i
		if !r.skipValue(1) {
			return false
		}
		if string(key) == name {
			found = r.src[start:r.i]
		}
		return true
	})
	return found
}

func (r *jsonReader) skipSpace() {
	for r.i < len(r.src) && (r.src[r.i] == ' ' || r.src[r.i] == '\n' || r.src[r.i] == '\r' || r.src[r.i] == '\t') {
		r.i++
	}
}

func (r *jsonReader) atEnd() bool {
	r.skipSpace()
	return r.i == len(r.src)
}

// peek gives the next byte that is no blank; 0 at the end.
func (r *jsonReader) peek() byte {
	r.skipSpace()
	if r.i == len(r.src) {
		return 0
	}
	return r.src[r.i]
}

// skipByte passes over c where it is the next byte that is no blank.
func (r *jsonReader) skipByte(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.i++
	return true
}

// skipValue passes over a value. The UTF-8 of its strings is not looked at.
func (r *jsonReader) skipValue(depth int) bool {
	switch c := r.peek(); c {
	case '{':
		return depth < maxDepth && r.readObject(func([]byte) bool { return r.skipValue(depth + 1) })
	case '[':
		return depth < maxDepth && r.readArray(func() bool { return r.skipValue(depth + 1) })
	case '"':
		_, ok := r.readString()
		return ok
	case 't', 'f', 'n':
		return r.readLiteral() != ""
	default:
		_, ok := r.readNumber()
		return ok
	}
}

// readObject reads an object. For each member it calls value with the member's name, to read the value.
func (r *jsonReader) readObject(value func(name []byte) bool) bool {
	if !r.skipByte('{') {
		return false
	}
	if r.skipByte('}') {
		return true
	}
	for {
		if r.peek() != '"' {
			return false
		}
		name, ok := r.readString()
		if !ok || !r.skipByte(':') || !value(name) {
			return false
		}
		if r.skipByte('}') {
			return true
		}
		if !r.skipByte(',') {
			return false
		}
	}
}

// readArray reads an array. It calls element to read each element.
func (r *jsonReader) readArray(element func() bool) bool {
	if !r.skipByte('[') {
		return false
	}
	if r.skipByte(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if r.skipByte(']') {
			return true
		}
		if !r.skipByte(',') {
			return false
		}
	}
}

// readLiteral reads true, false or null.
func (r *jsonReader) readLiteral() string {
	for _, word := range [...]string{"true", "false", "null"} {
		if len(r.src)-r.i >= len(word) && string(r.src[r.i:r.i+len(word)]) == word {
			r.i += len(word)
			return word
		}
	}
	return ""
}

// readNumber reads a number and says whether it is written as an integer.
func (r *jsonReader) readNumber() (integer, ok bool) {
	r.skipNextByte('-')
	if !r.skipNextByte('0') && !r.skipDigits() {
		return false, false
	}
	integer = true
	if r.skipNextByte('.') {
		integer = false
		if !r.skipDigits() {
			return false, false
		}
	}
	if r.skipNextByte('e') || r.skipNextByte('E') {
		integer = false
		if !r.skipNextByte('+') {
			r.skipNextByte('-')
		}
		if !r.skipDigits() {
			return false, false
		}
	}
	return integer, true
}

// skipNextByte passes over c where it is the very next byte.
func (r *jsonReader) skipNextByte(c byte) bool {
	if r.i == len(r.src) || r.src[r.i] != c {
		return false
	}
	r.i++
	return true
}

func (r *jsonReader) skipDigits() bool {
	start := r.i
	for r.i < len(r.src) && '0' <= r.src[r.i] && r.src[r.i] <= '9' {
		r.i++
	}
	return r.i > start
}

// readString reads a string and gives what it says. That is a part of src where nothing in it is escaped. Half of a
// surrogate pair, which JSON can escape and UTF-8 cannot write, becomes the three bytes it would have as a code point:
// so it sorts among code points, and differs from every other text.
func (r *jsonReader) readString() (said []byte, ok bool) {
	r.i++
	start := r.i
	for ; r.i < len(r.src); r.i++ {
		switch c := r.src[r.i]; {
		case c == '"':
			r.i++
			return r.src[start : r.i-1], true
		case c == '\\':
			return r.readEscapedString(start)
		case c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// readEscapedString goes on with a string from its first backslash. It started at start.
func (r *jsonReader) readEscapedString(start int) (said []byte, ok bool) {
	said = append(make([]byte, 0, len(r.src[start:r.i])+64), r.src[start:r.i]...)
	for r.i < len(r.src) {
		c := r.src[r.i]
		r.i++
		switch {
		case c == '"':
			return said, true
		case c < ' ':
			return nil, false
		case c != '\\':
			said = append(said, c)
		default:
			if said, ok = r.readEscape(said); !ok {
				return nil, false
			}
		}
	}
	return nil, false
}

// readEscape reads what follows a backslash and appends what it stands for.
func (r *jsonReader) readEscape(dst []byte) ([]byte, bool) {
	if r.i == len(r.src) {
		return dst, false
	}
	c := r.src[r.i]
	r.i++
	switch c {
	case '"', '\\', '/':
		return append(dst, c), true
	case 'b':
		return append(dst, '\b'), true
	case 'f':
		return append(dst, '\f'), true
	case 'n':
		return append(dst, '\n'), true
	case 'r':
		return append(dst, '\r'), true
	case 't':
		return append(dst, '\t'), true
	case 'u':
		unit, ok := r.readHex4()
		if !ok {
			return dst, false
		}
		if !utf16.IsSurrogate(unit) {
			return utf8.AppendRune(dst, unit), true
		}
		if rest := *r; rest.skipNextByte('\\') && rest.skipNextByte('u') {
			if second, ok := rest.readHex4(); ok {
				if pair := utf16.DecodeRune(unit, second); pair != utf8.RuneError {
					*r = rest
					return utf8.AppendRune(dst, pair), true
				}
			}
		}
		return append(dst, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F), true
	}
	return dst, false
}

// readHex4 reads four hexadecimal digits.
func (r *jsonReader) readHex4() (unit rune, ok bool) {
	if len(r.src)-r.i < 4 {
		return 0, false
	}
	for _, c := range r.src[r.i : r.i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	r.i += 4
	return unit, true
}
