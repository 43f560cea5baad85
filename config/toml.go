package config

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// parseTOML reads TOML. The error is a *fileError.
func parseTOML(data []byte) (node, error) {
	spots, err := scanTOML(string(data))
	if err != nil {
		return node{}, err
	}
	var values map[string]any
	if _, err := toml.Decode(string(data), &values); err != nil {
		return node{}, tomlError(err)
	}
	return tomlNode(values, spots, 1), nil
}

// echoes finds what the parser repeats of a value: a word that lacks its quotes may be a secret.
var echoes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']{2,}'`)

func tomlError(err error) *fileError {
	parse, ok := errors.AsType[toml.ParseError](err)
	if !ok {
		return wrong(0, "this is not TOML")
	}
	words := parse.Message
	if !strings.HasPrefix(words, "Key ") {
		words = echoes.ReplaceAllString(words, "…")
	}
	return &fileError{line: parse.Position.Line, col: parse.Position.Col, text: printable(words)}
}

// tomlNode joins a decoded value with the place it was found at. Line is that of what holds the value, for one that
// the scan did not see.
func tomlNode(value any, at *spot, line int) node {
	if at != nil && at.line > 0 {
		line = at.line
	}
	n := node{line: line}
	switch v := value.(type) {
	case map[string]any:
		n.kind = table
		for _, name := range at.order(v) {
			child := tomlNode(v[name], at.kid(name), line)
			n.members = append(n.members, member{name, child.line, child})
		}
	case []map[string]any:
		n.kind = list
		for i, item := range v {
			n.items = append(n.items, tomlNode(item, at.item(i), line))
		}
	case []any:
		n.kind = list
		for i, item := range v {
			n.items = append(n.items, tomlNode(item, at.item(i), line))
		}
	case string:
		n.kind, n.text = text, v
	case bool:
		n.kind, n.text = boolean, strconv.FormatBool(v)
	case int64:
		n.kind, n.text = number, strconv.FormatInt(v, 10)
	case float64:
		n.kind, n.text = number, strconv.FormatFloat(v, 'g', -1, 64)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			n.kind = text // JSON has no such number
		}
	case time.Time:
		n.kind, n.text = text, v.Format(time.RFC3339Nano)
	}
	return n
}

// A spot is where a key of a TOML file stands. The decoder keeps neither the order of keys nor, in an array of tables,
// their lines; people are owed both.
type spot struct {
	line  int
	path  int // length of the names from the root to here
	names []string
	kids  map[string]*spot
	items []*spot
}

func (s *spot) kid(name string) *spot {
	if s == nil {
		return nil
	}
	return s.kids[name]
}

func (s *spot) item(i int) *spot {
	if s == nil || i >= len(s.items) {
		return nil
	}
	return s.items[i]
}

// order gives the names of values in the file's order, then those that the scan did not see.
func (s *spot) order(values map[string]any) []string {
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
		if s.kid(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names[seen:])
	return names
}
