package configfile

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/BurntSushi/toml"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// ParseTOML parses TOML. The error is an *Error.
func ParseTOML(data []byte) (Node, error) {
	spots, err := scanTOMLKeys(string(data))
	if err != nil {
		return Node{}, err
	}
	var values map[string]any
	if _, err := toml.Decode(string(data), &values); err != nil {
		return Node{}, tomlError(err)
	}
	return tomlNode(values, spots, 1), nil
}

// quotedValue matches quoted text in the parser's message, because the text may be a secret.
var quotedValue = lazyregexp.New(`"(?:[^"\\]|\\.)*"|'[^']{2,}'`)

func tomlError(err error) *Error {
	parse, ok := errors.AsType[toml.ParseError](err)
	if !ok {
		return ErrorAt(0, "this is not TOML")
	}
	words := parse.Message
	if !strings.HasPrefix(words, "Key ") {
		words = quotedValue().ReplaceAllString(words, "…")
	}
	return &Error{Line: parse.Position.Line, Col: parse.Position.Col, Text: safetext.Line(words)}
}

// tomlNode returns a node for a decoded value. at is the position of the value's key, which the scan found; nil if the
// scan did not find the key. The node then has the line of the container, which is line.
func tomlNode(value any, at *keyPosition, line int) Node {
	if at != nil && at.line > 0 {
		line = at.line
	}
	n := Node{Line: line}
	switch v := value.(type) {
	case map[string]any:
		n.Kind = Table
		for _, name := range at.namesInOrder(v) {
			child := tomlNode(v[name], at.childNode(name), line)
			n.Members = append(n.Members, Member{name, child.Line, child})
		}
	case []map[string]any:
		n.Kind = List
		for i, item := range v {
			n.Items = append(n.Items, tomlNode(item, at.elementAt(i), line))
		}
	case []any:
		n.Kind = List
		for i, item := range v {
			n.Items = append(n.Items, tomlNode(item, at.elementAt(i), line))
		}
	case string:
		n.Kind, n.Text = Text, v
	case bool:
		n.Kind, n.Text = Boolean, strconv.FormatBool(v)
	case int64:
		n.Kind, n.Text = Number, strconv.FormatInt(v, 10)
	case float64:
		n.Kind, n.Text = Number, strconv.FormatFloat(v, 'g', -1, 64)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			n.Kind = Text // not a JSON number
		}
	case time.Time:
		n.Kind, n.Text = Text, v.Format(time.RFC3339Nano)
	}
	return n
}

// A keyPosition is the position of a key in a TOML file, with the keys below it. It is needed because the decoder
// returns neither the order of keys nor the lines of keys in an array of tables.
type keyPosition struct {
	line     int
	path     int // the total length of the names from the root to this key
	names    []string
	children map[string]*keyPosition
	items    []*keyPosition
}

func (s *keyPosition) childNode(name string) *keyPosition {
	if s == nil {
		return nil
	}
	return s.children[name]
}

func (s *keyPosition) elementAt(i int) *keyPosition {
	if s == nil || i >= len(s.items) {
		return nil
	}
	return s.items[i]
}

// namesInOrder returns the names of values in the file's order, followed by the names that the scan did not find.
func (s *keyPosition) namesInOrder(values map[string]any) []string {
	names := make([]string, 0, len(values))
	if s != nil {
		for _, name := range s.names {
			if _, ok := values[name]; ok {
				names = append(names, name)
			}
		}
	}
	seen := len(names)
	for name := range values {
		if s.childNode(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names[seen:])
	return names
}
