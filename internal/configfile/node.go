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

// MaxDepth is the maximum depth of nested values in a file. It is limited because the parsers recurse, and a stranger
// may have written the file.
const MaxDepth = 64

// A ValueKind is the kind of a node's value.
type ValueKind uint8

// The kinds of values. A value of any other kind, such as a date, is a Text.
const (
	Null ValueKind = iota
	Boolean
	Number
	Text
	List
	Table
)

// A Node is one value of a file in any format, with its line.
type Node struct {
	Kind ValueKind
	// Line counts from 1; 0 means that the value is not from a file.
	Line int
	// Text is the decoded string of a Text, or the JSON form of a Number or Boolean.
	Text string
	// Items are the values of a List. Members are the members of a Table. Both are in the file's order.
	Items   []Node
	Members []Member
}

// A Member is a name in a table and its value. A table may contain several members of the same name, as JSON files can.
type Member struct {
	Name  string
	Line  int
	Value Node
}

// An Error is a problem at a position in a file. Line and Col count from 1; 0 means that the position is unknown.
type Error struct {
	Line, Col int
	// Text contains no value of the file.
	Text string
}

// Error returns the text, without the position.
func (e *Error) Error() string { return e.Text }

// ErrorAt returns an error for a line, with a formatted text.
func ErrorAt(line int, format string, args ...any) *Error {
	return &Error{Line: line, Text: fmt.Sprintf(format, args...)}
}

// FindAll returns the members at path, in the file's order. It returns several members if a name occurs more than once.
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

// Find returns the member at path; false if it is missing. If a name occurs more than once, the last member is used, as
// in encoding/json and JavaScript.
func (n Node) Find(path ...string) (Member, bool) {
	found := n.FindAll(path...)
	if len(found) == 0 {
		return Member{}, false
	}
	return found[len(found)-1], true
}

// TextValue returns the node's string. The second result reports whether the node is a Text.
func (n Node) TextValue() (string, bool) {
	if n.Kind != Text {
		return "", false
	}
	return n.Text, true
}

// Bool returns the node's value; ok reports whether the node is a Boolean.
func (n Node) Bool() (value, ok bool) { return n.Text == "true", n.Kind == Boolean }

// PositiveInt returns the node's value. The second result reports whether the value is a whole number above 0.
func (n Node) PositiveInt() (int, bool) {
	if n.Kind != Number {
		return 0, false
	}
	i, err := strconv.Atoi(n.Text)
	return i, err == nil && i > 0
}

// Duration returns the value of a string such as "30s", or of a number of milliseconds, which may be quoted. The second
// result is false if the node is not a valid duration.
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

// TextValues returns the strings of a List. ok is false if the node is not a List, or contains a value that is not a
// Text.
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

// AppendJSON appends the node to dst as JSON without white space. Members are in the file's order, or sorted by name if
// sorted is true.
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
