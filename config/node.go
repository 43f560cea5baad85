package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxDepth is how deep values may nest in a file. The parsers recurse, and a file may come from a stranger's project.
const maxDepth = 64

// A kind is what sort of value a node is.
type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	list
	table
)

// A node is one value of a file, whatever the format: what was written, and on which line.
type node struct {
	kind kind
	line int
	// text is a text decoded, or a number or boolean as it was written.
	text    string
	items   []node
	members []member
}

type member struct {
	name  string
	line  int
	value node
}

// A fileError says where in a file something is wrong. Line and col count from 1; 0 means not known.
type fileError struct {
	line, col int
	text      string
}

func (e *fileError) Error() string { return e.text }

func wrong(line int, format string, args ...any) *fileError {
	return &fileError{line: line, text: fmt.Sprintf(format, args...)}
}

// all gives the members at path, in the file's order: more than one where a name is repeated.
func (n node) all(path ...string) (found []member) {
	for _, m := range n.members {
		switch {
		case m.name != path[0]:
		case len(path) == 1:
			found = append(found, m)
		default:
			found = append(found, m.value.all(path[1:]...)...)
		}
	}
	return found
}

// find gives the member at path. Of a repeated name the last counts, as it does for encoding/json and JavaScript.
func (n node) find(path ...string) (member, bool) {
	found := n.all(path...)
	if len(found) == 0 {
		return member{}, false
	}
	return found[len(found)-1], true
}

// word gives the node's text if it is one, else an empty string.
func (n node) word() (string, bool) {
	if n.kind != text {
		return "", false
	}
	return n.text, true
}

// flag gives the node's truth if it is a boolean.
func (n node) flag() (value, ok bool) { return n.text == "true", n.kind == boolean }

// count gives the node's value if it is a whole number above 0.
func (n node) count() (int, bool) {
	if n.kind != number {
		return 0, false
	}
	i, err := strconv.Atoi(n.text)
	return i, err == nil && i > 0
}

// duration reads a text such as "30s", or a number of milliseconds, in quotes or not.
func (n node) duration() (time.Duration, bool) {
	if n.kind != number && n.kind != text {
		return 0, false
	}
	if ms, err := strconv.ParseFloat(n.text, 64); err == nil {
		ns := ms * float64(time.Millisecond)
		return time.Duration(ns), !math.IsNaN(ns) && math.Abs(ns) < math.MaxInt64
	}
	d, err := time.ParseDuration(n.text)
	return d, err == nil
}

// words gives the texts of a list; ok is false where the node is no list or holds anything else.
func (n node) words() (words []string, ok bool) {
	words = []string{}
	for _, item := range n.items {
		if item.kind != text {
			return nil, false
		}
		words = append(words, item.text)
	}
	return words, n.kind == list
}

// appendJSON writes the node as JSON without blanks, its members in the file's order, or sorted by name.
func (n node) appendJSON(dst []byte, sorted bool) []byte {
	switch n.kind {
	case boolean, number:
		return append(dst, n.text...)
	case text:
		return appendString(dst, n.text)
	case list:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendJSON(dst, sorted)
		}
		return append(dst, ']')
	case table:
		members := n.members
		if sorted {
			members = slices.Clone(members)
			slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
		}
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, m.name), ':')
			dst = m.value.appendJSON(dst, sorted)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

func appendString(dst []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes, into a buffer that always takes it
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
