package rawjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// SkipValue returns the index after the JSON value that starts at b[i], or later if b[i] is white space. It checks the
// whole value except the UTF-8 of its strings. It does not use recursion. The error is a *SyntaxError.
func SkipValue(b []byte, i int) (end int, err error) { return skipValueDepth(b, i, MaxDepth) }

// skipValueDepth is like SkipValue, with a limit for the nesting depth.
func skipValueDepth(b []byte, i, maxDepth int) (end int, err error) {
	i = SkipSpace(b, i)
	if i < len(b) && b[i] != '{' && b[i] != '[' {
		return skipScalar(b, i)
	}
	var open [MaxDepth]byte // the opening bracket of each container around b[i]
	depth := 0
	for {
		switch i = SkipSpace(b, i); {
		case i >= len(b):
			return i, &SyntaxError{i, "unexpected end"}
		case b[i] != '{' && b[i] != '[':
			if i, err = skipScalar(b, i); err != nil {
				return i, err
			}
		case depth == maxDepth:
			return i, &SyntaxError{i, "nested too deep"}
		default:
			kind := b[i]
			open[depth] = kind
			depth++
			if i = SkipSpace(b, i+1); i < len(b) && b[i] == closingBracket(kind) {
				break
			}
			if kind == '{' {
				if i, err = skipName(b, i); err != nil {
					return i, err
				}
			}
			continue
		}
		if i, depth, err = closeContainers(b, i, open[:depth]); err != nil || depth == 0 {
			return i, err
		}
	}
}

// closeContainers continues at b[i], after a value. It skips the closing brackets of containers that end there, and the
// comma and the name before the next value. open contains the opening brackets of the containers around the value. It
// returns the index of the next value, and the number of containers that are still open.
func closeContainers(b []byte, i int, open []byte) (next, depth int, err error) {
	for depth = len(open); depth > 0; {
		kind := open[depth-1]
		switch i = SkipSpace(b, i); {
		case i >= len(b):
			return i, depth, &SyntaxError{i, "unexpected end"}
		case b[i] == closingBracket(kind):
			depth--
			i++
		case b[i] != ',':
			return i, depth, &SyntaxError{i, "want a comma or the end of the container"}
		case kind == '{':
			i, err = skipName(b, i+1)
			return i, depth, err
		default:
			return i + 1, depth, nil
		}
	}
	return i, 0, nil
}

// closingBracket returns '}' for '{' and ']' for '['.
func closingBracket(open byte) byte { return open + 2 }

// Whitespace contains the white space characters of JSON.
const Whitespace = " \t\r\n"

// SkipSpace returns the index of the first byte of b[i:] that is not white space; len(b) if there is none.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipName skips a member's name and the colon after it.
func skipName(b []byte, i int) (int, error) {
	i = SkipSpace(b, i)
	if i >= len(b) || b[i] != '"' {
		return i, &SyntaxError{i, "want a member name"}
	}
	i, err := skipString(b, i)
	if err != nil {
		return i, err
	}
	i = SkipSpace(b, i)
	if i >= len(b) || b[i] != ':' {
		return i, &SyntaxError{i, "want a colon"}
	}
	return i + 1, nil
}

// SkipScalar returns the index after the string, number, true, false or null that starts at b[i]. It checks syntax, not
// the UTF-8 of a string. The error is a *SyntaxError.
func SkipScalar(b []byte, i int) (end int, err error) {
	if i >= len(b) {
		return i, &SyntaxError{i, "unexpected end"}
	}
	return skipScalar(b, i)
}

// skipScalar skips any value except an object or an array.
func skipScalar(b []byte, i int) (int, error) {
	word := ""
	switch b[i] {
	case '"':
		return skipString(b, i)
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	default:
		return skipNumber(b, i)
	}
	if !bytes.HasPrefix(b[i:], []byte(word)) {
		return i, &SyntaxError{i, "want a value"}
	}
	return i + len(word), nil
}

// skipString skips the string that starts at b[i].
func skipString(b []byte, i int) (int, error) {
	for i = plainStringEnd(b, i+1); i < len(b); i = plainStringEnd(b, i) {
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c < ' ':
			return i, &SyntaxError{i, "control character in string"}
		}
		var err error
		if i, err = skipEscape(b, i); err != nil {
			return i, err
		}
	}
	return i, &SyntaxError{i, "unexpected end"}
}

// lowBits and highBits have the lowest and the highest bit of each of their eight bytes set.
const lowBits, highBits = 0x0101010101010101, 0x8080808080808080

// plainStringEnd returns the index of the first quote, backslash or control character of b[i:]; len(b) if there is
// none.
func plainStringEnd(b []byte, i int) int {
	// Strings are most of a large message, so eight bytes are checked at once. (x-ones*n) &^ x has the top bit of a
	// byte set if the byte is below n. A borrow may also set it in higher bytes, but never in a lower byte.
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, backslash := x^(lowBits*'"'), x^(lowBits*'\\')
		if found := ((x-lowBits*' ')&^x | (quote-lowBits)&^quote | (backslash-lowBits)&^backslash) & highBits; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
		i++
	}
	return i
}

// skipEscape skips the escape that starts at b[i].
func skipEscape(b []byte, i int) (int, error) {
	if i++; i >= len(b) {
		return i, &SyntaxError{i, "unexpected end"}
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, nil
	case 'u':
		for range 4 {
			if i++; i >= len(b) || !isHex(b[i]) {
				return i, &SyntaxError{i, "bad escape"}
			}
		}
		return i + 1, nil
	}
	return i, &SyntaxError{i, "bad escape"}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// skipNumber skips a number.
func skipNumber(b []byte, i int) (int, error) {
	start := i
	if b[i] == '-' {
		i++
	}
	whole := i
	if i = skipDigits(b, i); i == whole {
		return start, &SyntaxError{start, "want a value"}
	}
	if b[whole] == '0' {
		i = whole + 1 // no digit may follow
	}
	if i < len(b) && b[i] == '.' {
		fraction := i + 1
		if i = skipDigits(b, fraction); i == fraction {
			return i, &SyntaxError{i, "want a digit"}
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		exponent := i
		if i = skipDigits(b, i); i == exponent {
			return i, &SyntaxError{i, "want a digit"}
		}
	}
	return i, nil
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}
