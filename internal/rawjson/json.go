// Package rawjson is the project's one JSON reader. It checks, reads, edits and canonicalises JSON as bytes, without
// decoding it: bytes that a caller does not change stay as they are. It reads no files and keeps no state.
//
// All functions accept the same texts:
//
//   - Syntax is that of RFC 8259. Nothing may follow the value, and there are no comments, trailing commas or NaN.
//   - Nesting deeper than [MaxDepth] is refused.
//   - Bytes that are not UTF-8 are refused by [Valid] and [CheckEnd], also within strings. A byte order mark is refused.
//   - An escaped lone surrogate (\ud800) is accepted. The canonical form keeps it; [DecodeString] returns U+FFFD for it.
//   - Of a repeated name the last member counts, as for encoding/json and JavaScript. An edit removes the others.
//     Callers that decide about access must refuse repeated names: other parsers may take the first. Package policy
//     does, and also refuses names that differ in case only.
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

// MaxDepth is how deep a JSON value may nest before it is refused: a bound for every reader behind this one.
const MaxDepth = 512

// A SyntaxError says where bytes stop being JSON as this package accepts it.
type SyntaxError struct {
	// Offset counts bytes from the start of what was read.
	Offset int
	Reason string
}

// Error gives reason and offset.
func (e *SyntaxError) Error() string { return fmt.Sprintf("json: %s at byte %d", e.Reason, e.Offset) }

// Valid checks that b holds exactly one JSON value in valid UTF-8, nested no deeper than MaxDepth. The error is a
// *SyntaxError. It allocates nothing for a value that passes.
func Valid(b []byte) error {
	end, err := SkipValue(b, 0)
	if err != nil {
		return err
	}
	return CheckEnd(b, end)
}

// CheckEnd checks what Skip does not: that nothing stands behind the value that ends at b[i], and that b is UTF-8.
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

// A Member is one member of an object: its name and its value, both as they stand in the bytes (the name with its
// quotes).
type Member struct {
	Name, Value json.RawMessage
	// start is where the name begins, end where the value ends, in the object's bytes.
	start, end int
}

// HasName says whether the member has this name. Escapes in the name are understood.
func (m Member) HasName(name string) bool {
	raw := m.Name[1 : len(m.Name)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) == name
	}
	s, _ := DecodeString(m.Name)
	return s == name
}

// ResemblesName says whether the member has another name that some readers take for this one: letters of the other
// case, those that fold to it (the long s, the sign for kelvin), and characters that nobody sees.
func (m Member) ResemblesName(name string) bool {
	raw := m.Name[1 : len(m.Name)-1]
	if len(raw) < len(name) || m.HasName(name) {
		return false
	}
	if len(raw) == len(name) {
		return strings.EqualFold(string(raw), name)
	}
	if !slices.ContainsFunc(raw, func(b byte) bool { return b <= ' ' || b == '\\' || b >= utf8.RuneSelf }) {
		return false // as nearly all names: all of it is seen
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

// Members goes through the members of the object in b, in order. It stops early at the first thing that is not valid
// JSON, and yields nothing where b is not an object. Names and values are parts of b, not copies, and have no room to
// append.
func Members(b []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) { _, _ = ScanObject(b, yield) }
}

// Elements goes through the elements of the array in b, under the terms of Members.
func Elements(b []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		scanElements(b, func(start, end int) bool { return yield(b[start:end:end]) })
	}
}

// scanElements gives the places of the elements of the array in b to each, until that says false.
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

// ScanObject gives the members of the object in b to each, until that says false, and the end of the object.
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

// Get finds the value at path in the object b; nil where there is none. Of a repeated name the last counts, as it does
// for encoding/json and JavaScript.
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

// GetString gives the string at path; empty where there is none or it is no string.
func GetString(b []byte, path ...string) string {
	s, _ := DecodeString(Get(b, path...))
	return s
}

// MayContain says whether a word may be in JSON text, as a name or in a value: also where letters of it, "-" or "_"
// are written as escapes, which no encoder does by itself. False is certain, and found out much faster than a large
// text is read. The word may begin or end with the quotes of a name.
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

// containsWord is bytes.Contains, but goes by the byte of the word that JSON text has the fewest of: each name and
// each text in it begins with a quote.
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

// DecodeString decodes the JSON string raw. It says false where raw is no string.
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

// Quote writes s as a JSON string, without escaping HTML characters. Invalid UTF-8 becomes U+FFFD.
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

// AppendQuoted appends s to dst as Quote writes it.
func AppendQuoted(dst []byte, s string) []byte {
	return append(AppendEscaped(append(dst, '"'), s), '"')
}

// AppendEscaped appends s to dst as Quote writes it, without the quotes: a part of a string that is written piece by
// piece.
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

// needsNoEscape says whether the eight bytes of s are ASCII, and stand in a string as they are. See plain.
func needsNoEscape(s string) bool {
	x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(
		s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	quote, backslash := x^(lowBits*'"'), x^(lowBits*'\\')
	return (x|(x-lowBits*' ')|(quote-lowBits)|(backslash-lowBits))&highBits == 0
}
