package safetext

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns valid JSON with the same value as raw, in which each dangerous or invisible character is an escape
// sequence. A code point above U+FFFF becomes two escapes, as JSON requires. A byte that is not valid UTF-8 becomes
// \ufffd, which is how JSON parsers read it. Spaces, tabs and line breaks between values are not changed.
func JSON(raw []byte) []byte {
	first := firstUnseen(raw)
	if first == len(raw) {
		return raw
	}
	out := append(make([]byte, 0, len(raw)+16), raw[:first]...)
	for i := first; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		switch {
		case seenInJSON(r):
			out = append(out, raw[i:i+size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	return out
}

// firstUnseen returns the offset of the first character that JSON replaces; len(raw) if there is none.
func firstUnseen(raw []byte) int {
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		if !seenInJSON(r) {
			return i
		}
		i += size
	}
	return len(raw)
}

// seenInJSON reports whether JSON copies r unchanged. In valid JSON, line feeds, tabs and carriage returns occur only
// between values.
func seenInJSON(r rune) bool { return r == '\n' || r == '\t' || r == '\r' || Visible(r) }
