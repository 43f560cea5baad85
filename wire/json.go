package wire

import (
	"encoding/json"
	"fmt"
	"iter"
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
	end, err := Skip(b, 0)
	if err != nil {
		return err
	}
	if end = space(b, end); end != len(b) {
		return &SyntaxError{end, "more than one value"}
	}
	if !utf8.Valid(b) {
		return &SyntaxError{0, "invalid UTF-8"}
	}
	return nil
}

// Skip finds the end of the JSON value that starts at or after b[i] (white space is passed over). It checks the whole
// value but for the UTF-8 of its strings, without recursion.
func Skip(b []byte, i int) (end int, err error) {
	var stack [MaxDepth]byte
	depth := 0
	for {
		i = space(b, i)
		if i >= len(b) {
			return i, &SyntaxError{i, "unexpected end"}
		}
		switch c := b[i]; c {
		case '{', '[':
			if depth == MaxDepth {
				return i, &SyntaxError{i, "nested too deep"}
			}
			stack[depth] = c
			depth++
			i++
			if j := space(b, i); j < len(b) && b[j] == c+2 { // '{'+2 is '}', '['+2 is ']'
				i = j
				break
			}
			if c == '{' {
				if i, err = name(b, i); err != nil {
					return i, err
				}
			}
			continue
		case '"':
			i, err = skipString(b, i)
		default:
			i, err = skipAtom(b, i)
		}
		if err != nil {
			return i, err
		}
		// A value is complete, or a container is about to close: leave as many containers as end here.
		for depth > 0 {
			i = space(b, i)
			if i >= len(b) {
				return i, &SyntaxError{i, "unexpected end"}
			}
			open := stack[depth-1]
			if b[i] == open+2 {
				depth--
				i++
				continue
			}
			if b[i] != ',' {
				return i, &SyntaxError{i, "want a comma or the end of the container"}
			}
			i++
			if open == '{' {
				if i, err = name(b, i); err != nil {
					return i, err
				}
			}
			break
		}
		if depth == 0 {
			return i, nil
		}
	}
}

// name passes over a member's name and its colon.
func name(b []byte, i int) (int, error) {
	i = space(b, i)
	if i >= len(b) || b[i] != '"' {
		return i, &SyntaxError{i, "want a member name"}
	}
	i, err := skipString(b, i)
	if err != nil {
		return i, err
	}
	i = space(b, i)
	if i >= len(b) || b[i] != ':' {
		return i, &SyntaxError{i, "want a colon"}
	}
	return i + 1, nil
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString passes over the string that starts at b[i].
func skipString(b []byte, i int) (int, error) {
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c < 0x20:
			return i, &SyntaxError{i, "control character in string"}
		case c == '\\':
			i++
			if i >= len(b) {
				return i, &SyntaxError{i, "unexpected end"}
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					i++
					if i >= len(b) || !isHex(b[i]) {
						return i, &SyntaxError{i, "bad escape"}
					}
				}
			default:
				return i, &SyntaxError{i, "bad escape"}
			}
		}
	}
	return i, &SyntaxError{i, "unexpected end"}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// skipAtom passes over a number, true, false or null.
func skipAtom(b []byte, i int) (int, error) {
	for _, word := range [...]string{"true", "false", "null"} {
		if len(b)-i >= len(word) && string(b[i:i+len(word)]) == word {
			return i + len(word), nil
		}
	}
	start := i
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && '1' <= b[i] && b[i] <= '9':
		i = digits(b, i)
	default:
		return start, &SyntaxError{start, "want a value"}
	}
	if i < len(b) && b[i] == '.' {
		j := digits(b, i+1)
		if j == i+1 {
			return j, &SyntaxError{j, "want a digit"}
		}
		i = j
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		j := digits(b, i)
		if j == i {
			return j, &SyntaxError{j, "want a digit"}
		}
		i = j
	}
	return i, nil
}

func digits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// A Member is one member of an object: its name and its value, both as they stand in the bytes (the name with its quotes).
type Member struct {
	Name, Value json.RawMessage
	// start is where the name begins, end where the value ends, in the object's bytes.
	start, end int
}

// Is says whether the member has this name. Escapes in the name are understood.
func (m Member) Is(name string) bool {
	if raw := m.Name[1 : len(m.Name)-1]; string(raw) == name {
		return true
	}
	s, ok := Text(m.Name)
	return ok && s == name
}

// Members goes through the members of the object in b, in order. It stops early at the first thing that is not valid
// JSON, and yields nothing where b is not an object. Values are parts of b, not copies.
func Members(b []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		i := space(b, 0)
		if i >= len(b) || b[i] != '{' {
			return
		}
		for i++; ; i++ {
			start := space(b, i)
			if start >= len(b) || b[start] != '"' {
				return
			}
			nameEnd, err := skipString(b, start)
			if err != nil {
				return
			}
			colon := space(b, nameEnd)
			if colon >= len(b) || b[colon] != ':' {
				return
			}
			value := space(b, colon+1)
			end, err := Skip(b, value)
			if err != nil {
				return
			}
			if !yield(Member{b[start:nameEnd], b[value:end], start, end}) {
				return
			}
			if i = space(b, end); i >= len(b) || b[i] != ',' {
				return
			}
		}
	}
}

// Elements goes through the elements of the array in b, under the terms of Members.
func Elements(b []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		i := space(b, 0)
		if i >= len(b) || b[i] != '[' {
			return
		}
		for i++; ; i++ {
			start := space(b, i)
			end, err := Skip(b, start)
			if err != nil || !yield(b[start:end]) {
				return
			}
			if i = space(b, end); i >= len(b) || b[i] != ',' {
				return
			}
		}
	}
}

// Get finds the value at path in the object b; nil where there is none. Of a repeated name the last counts, as it does
// for encoding/json and JavaScript.
func Get(b []byte, path ...string) json.RawMessage {
	for _, name := range path {
		var found json.RawMessage
		for m := range Members(b) {
			if m.Is(name) {
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

// GetText gives the string at path; empty where there is none or it is no string.
func GetText(b []byte, path ...string) string {
	s, _ := Text(Get(b, path...))
	return s
}

// Text decodes the JSON string raw. It says false where raw is no string.
func Text(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	body := raw[1 : len(raw)-1]
	plain := true
	for _, c := range body {
		if c == '\\' || c == '"' || c < 0x20 {
			plain = false
			break
		}
	}
	if plain && raw[len(raw)-1] == '"' {
		return string(body), true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// Quote writes s as a JSON string, without escaping HTML characters. Invalid UTF-8 becomes U+FFFD.
func Quote(s string) json.RawMessage { return AppendQuoted(make([]byte, 0, len(s)+2), s) }

// AppendQuoted appends s to dst as Quote writes it.
func AppendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
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
	return append(dst, '"')
}
