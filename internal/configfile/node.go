package configfile

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

// MaxDepth is how deep values may nest in a file. The parsers recurse, and a file may come from a stranger's project.
const MaxDepth = 64

// A ValueKind is the kind of a node's value.
type ValueKind uint8

// The kinds of values. A value of another kind, such as a date, is a Text.
const (
	Null ValueKind = iota
	Boolean
	Number
	Text
	List
	Table
)

// A Node is one value of a file in any format: the value as written, and its line.
type Node struct {
	Kind ValueKind
	// Line counts from 1; 0 means a value that is not from a file.
	Line int
	// Text is a decoded string, or a number or boolean as written. A Number is a valid JSON number.
	Text string
	// Items are the values of a List, Members those of a Table, in the file's order.
	Items   []Node
	Members []Member
}

// A Member is a name in a table and its value. Names may be repeated, as in JSON files.
type Member struct {
	Name  string
	Line  int
	Value Node
}

// An Error is a problem at a position in a file. Line and Col count from 1; 0 means not known.
type Error struct {
	Line, Col int
	// Text repeats no value of the file.
	Text string
}

// Error returns the text, without the position.
func (e *Error) Error() string { return e.Text }

// ErrorAt returns an error about a line.
func ErrorAt(line int, format string, args ...any) *Error {
	return &Error{Line: line, Text: fmt.Sprintf(format, args...)}
}

// FindAll returns the members at path, in the file's order: more than one if a name is repeated.
func (n Node) FindAll(path ...string) (found []Member) {
	for _, m := range n.Members {
		switch {
		case m.Name != path[0]:
		case len(path) == 1:
			found = append(found, m)
		default:
			found = append(found, m.Value.FindAll(path[1:]...)...)
		}
	}
	return found
}

// Find returns the member at path. For a repeated name it is the last one, as in encoding/json and JavaScript.
func (n Node) Find(path ...string) (Member, bool) {
	found := n.FindAll(path...)
	if len(found) == 0 {
		return Member{}, false
	}
	return found[len(found)-1], true
}

// TextValue returns the node's string, and whether it is one.
func (n Node) TextValue() (string, bool) {
	if n.Kind != Text {
		return "", false
	}
	return n.Text, true
}

// Bool returns the node's value, and whether it is a boolean.
func (n Node) Bool() (value, ok bool) { return n.Text == "true", n.Kind == Boolean }

// PositiveInt returns the node's value, and whether it is a whole number above 0.
func (n Node) PositiveInt() (int, bool) {
	if n.Kind != Number {
		return 0, false
	}
	i, err := strconv.Atoi(n.Text)
	return i, err == nil && i > 0
}

// Duration reads a string such as "30s", or a number of milliseconds, quoted or not.
func (n Node) Duration() (time.Duration, bool) {
	if n.Kind != Number && n.Kind != Text {
		return 0, false
	}
	if ms, err := strconv.ParseFloat(n.Text, 64); err == nil {
		ns := ms * float64(time.Millisecond)
		return time.Duration(ns), !math.IsNaN(ns) && math.Abs(ns) < math.MaxInt64
	}
	d, err := time.ParseDuration(n.Text)
	return d, err == nil
}

// TextValues returns the strings of a list; ok is false if the node is not a list or holds anything else.
func (n Node) TextValues() (words []string, ok bool) {
	words = []string{}
	for _, item := range n.Items {
		if item.Kind != Text {
			return nil, false
		}
		words = append(words, item.Text)
	}
	return words, n.Kind == List
}

// AppendJSON writes the node as JSON without white space, its members in the file's order, or sorted by name.
func (n Node) AppendJSON(dst []byte, sorted bool) []byte {
	switch n.Kind {
	case Boolean, Number:
		return append(dst, n.Text...)
	case Text:
		return appendString(dst, n.Text)
	case List:
		dst = append(dst, '[')
		for i, item := range n.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.AppendJSON(dst, sorted)
		}
		return append(dst, ']')
	case Table:
		members := n.Members
		if sorted {
			members = slices.Clone(members)
			slices.SortStableFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
		}
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, m.Name), ':')
			dst = m.Value.AppendJSON(dst, sorted)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

func appendString(dst []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // encoding a string into a buffer cannot fail
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
