// Package rawjson checks, reads, edits and canonicalises JSON as bytes, without decoding it. An edit leaves all bytes
// outside the edited value unchanged. The package reads no files and stores no state.
//
// All functions accept the same texts:
//
//   - Syntax is that of RFC 8259, without comments, trailing commas or NaN. Nothing may follow the value.
//   - Nesting deeper than [MaxDepth] is refused.
//   - Bytes that are not UTF-8 are refused by [Valid] and [CheckEnd], also within strings. So is a byte order mark.
//   - An escaped lone surrogate (\ud800) is accepted. It remains in the canonical form; [DecodeString] returns U+FFFD.
//   - If a name is repeated, its last member counts, as in encoding/json and JavaScript. An edit removes the others.
//     Code that decides about access must refuse repeated names, because other parsers may use the first member.
//     Package policy does this, and also refuses names that differ only in letter case.
package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxDepth is the maximum nesting depth of an accepted JSON value. Functions that recurse into an accepted value need
// no other limit.
const MaxDepth = 512

// A SyntaxError reports the position of the first byte that is not part of acceptable JSON.
type SyntaxError struct {
	// Offset is the number of bytes before the error.
	Offset int
	Reason string
}

// Error returns reason and offset.
func (e *SyntaxError) Error() string { return fmt.Sprintf("json: %s at byte %d", e.Reason, e.Offset) }

// Valid checks that b contains exactly one JSON value in valid UTF-8, nested at most MaxDepth deep. The error is a
// *SyntaxError. Valid allocates no memory for a valid value.
func Valid(b []byte) error {
	end, err := SkipValue(b, 0)
	if err != nil {
		return err
	}
	return CheckEnd(b, end)
}

// CheckEnd checks what SkipValue does not check: only white space follows the value that ends before b[i], and all of b
// is UTF-8.
func CheckEnd(b []byte, i int) error {
	if i = SkipSpace(b, i); i != len(b) {
		return &SyntaxError{i, "more than one value"}
	}
	if utf8.Valid(b) {
		return nil
	}
	good := 0
	for r, n := utf8.DecodeRune(b); r != utf8.RuneError || n != 1; r, n = utf8.DecodeRune(b[good:]) {
		good += n
	}
	return &SyntaxError{good, "invalid UTF-8"}
}

// A Member is one member of an object. Name and Value are slices of the object's bytes. Name includes the quotes.
type Member struct {
	Name, Value json.RawMessage
	// start is the index at which the name begins, and end the index at which the value ends, in the object's bytes.
	start, end int
}

// HasName reports whether the member has the name, after decoding its escapes.
func (m Member) HasName(name string) bool {
	raw := m.Name[1 : len(m.Name)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) == name
	}
	s, _ := DecodeString(m.Name)
	return s == name
}

// ResemblesName reports whether the member's name differs from name, but some parsers accept it as name. Such names
// differ in letter case, in letters that fold to ASCII (the long s, the Kelvin sign), or in invisible characters.
func (m Member) ResemblesName(name string) bool {
	raw := m.Name[1 : len(m.Name)-1]
	if len(raw) < len(name) || m.HasName(name) {
		return false
	}
	if len(raw) == len(name) {
		return strings.EqualFold(string(raw), name)
	}
	if !slices.ContainsFunc(raw, func(b byte) bool { return b <= ' ' || b == '\\' || b >= utf8.RuneSelf }) {
		return false // like nearly all names, it has no character to remove
	}
	s, _ := DecodeString(m.Name)
	seen := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Z) {
			return -1
		}
		return r
	}, s)
	return strings.EqualFold(seen, name)
}

// Members returns an iterator over the members of the object in b, in order. The iterator stops at the first invalid
// byte, and yields nothing if b is not an object. Names and values are slices of b whose capacity equals their length.
func Members(b []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) { _, _ = ScanObject(b, yield) }
}

// Elements returns an iterator over the elements of the array in b. It stops at the first invalid byte, like Members.
func Elements(b []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		scanElements(b, func(start, end int) bool { return yield(b[start:end:end]) })
	}
}

// scanElements calls each with the start and end of every element of the array in b, until each returns false.
func scanElements(b []byte, each func(start, end int) bool) {
	i := SkipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return
	}
	for i++; ; i++ {
		start := SkipSpace(b, i)
		end, err := skipValueDepth(b, start, MaxDepth-1)
		if err != nil || !each(start, end) {
			return
		}
		if i = SkipSpace(b, end); i >= len(b) || b[i] != ',' {
			return
		}
	}
}

// ScanObject calls each with every member of the object in b, until each returns false. end is the index after the
// object. After an early stop, end is the index after the last member's value; after an error, the index of the error.
func ScanObject(b []byte, each func(Member) bool) (end int, err error) {
	i := SkipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return i, &SyntaxError{i, "want an object"}
	}
	if i = SkipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		var m Member
		m.start = SkipSpace(b, i)
		value, err := skipName(b, m.start)
		if err != nil {
			return value, err
		}
		end := value - 1
		for b[end-1] != '"' { // blanks before the colon
			end--
		}
		m.Name = b[m.start:end:end]
		value = SkipSpace(b, value)
		if m.end, err = skipValueDepth(b, value, MaxDepth-1); err != nil {
			return m.end, err
		}
		if m.Value = b[value:m.end:m.end]; !each(m) {
			return m.end, nil
		}
		switch i = SkipSpace(b, m.end); {
		case i < len(b) && b[i] == ',':
			i++
		case i < len(b) && b[i] == '}':
			return i + 1, nil
		default:
			return i, &SyntaxError{i, "want a comma or the end of the object"}
		}
	}
}

// Get returns the value at path in the object b; nil if it is missing. If a name is repeated, its last member counts.
func Get(b []byte, path ...string) json.RawMessage {
	for _, name := range path {
		var found json.RawMessage
		for m := range Members(b) {
			if m.HasName(name) {
				found = m.Value
			}
		}
		if found == nil {
			return nil
		}
		b = found
	}
	return b
}

// GetString returns the string at path; "" if it is missing or not a string.
func GetString(b []byte, path ...string) string {
	s, _ := DecodeString(Get(b, path...))
	return s
}

// MayContain reports whether a word may occur in JSON text, as a name or in a value. If it returns false, the word does
// not occur. It returns true for all texts in which letters, "-" or "_" are written as escapes, which encoders usually
// do not write. MayContain is much faster than parsing a large text. The word may begin or end with the quotes of a
// name.
func MayContain(text []byte, word string) bool {
	if containsWord(text, word) {
		return true
	}
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return false
		}
		text = text[i+1:]
		if len(text) >= 5 && string(text[:3]) == "u00" && ('4' <= text[3] && text[3] <= '7' || text[3] == '2' &&
			text[4]|0x20 == 'd') {
			return true
		}
	}
}

// containsWord is like bytes.Contains, but searches for the byte of the word that is probably rarest in JSON text. That
// is an upper-case letter or an underscore, or else the middle byte. A search for the quote would be slow, since every
// name and string begins with one.
func containsWord(text []byte, word string) bool {
	rare := len(word) / 2
	for i := range len(word) {
		if c := word[i]; 'A' <= c && c <= 'Z' || c == '_' {
			rare = i
			break
		}
	}
	for at := rare; at < len(text); at++ {
		i := bytes.IndexByte(text[at:], word[rare])
		if i < 0 {
			return false
		}
		at += i
		if start := at - rare; len(text)-start >= len(word) && string(text[start:start+len(word)]) == word {
			return true
		}
	}
	return false
}

// DecodeString decodes the JSON string raw. It returns false if raw is not a string.
func DecodeString(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if end := len(raw) - 1; plainStringEnd(raw, 1) == end && raw[end] == '"' {
		return string(raw[1:end]), true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// Quote returns s as a JSON string, without escaping HTML characters. Invalid UTF-8 becomes U+FFFD.
func Quote(s string) json.RawMessage { return AppendQuoted(make([]byte, 0, len(s)+2), s) }

// AppendStrings appends a JSON array of strings.
func AppendStrings(dst []byte, texts ...string) []byte {
	dst = append(dst, '[')
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendQuoted(dst, text)
	}
	return append(dst, ']')
}

// AppendQuoted appends s to dst as a JSON string, like Quote.
func AppendQuoted(dst []byte, s string) []byte {
	return append(AppendEscaped(append(dst, '"'), s), '"')
}

// AppendEscaped appends s to dst like AppendQuoted, but without the quotes. Use it to write a string in several parts.
func AppendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for i := 0; i < len(s); {
		from := i
		for i+8 <= len(s) && needsNoEscape(s[i:i+8]) {
			i += 8
		}
		for i < len(s) && s[i] >= ' ' && s[i] < utf8.RuneSelf && s[i] != '"' && s[i] != '\\' {
			i++
		}
		if dst = append(dst, s[from:i]...); i == len(s) {
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// needsNoEscape reports whether the eight bytes of s are ASCII and need no escape. plainStringEnd explains the bit
// operations.
func needsNoEscape(s string) bool {
	x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(
		s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	quote, backslash := x^(lowBits*'"'), x^(lowBits*'\\')
	return (x|(x-lowBits*' ')|(quote-lowBits)|(backslash-lowBits))&highBits == 0
}
