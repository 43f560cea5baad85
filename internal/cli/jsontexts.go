package cli

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A jsonText is a string in a JSON value: the name of a member, or a string value. It is valid until the iterator
// yields the next string.
type jsonText struct {
	text   string
	isName bool
	path   []pathStep
}

// A pathStep is one step of the path to a value in an object or array.
type pathStep struct {
	array bool
	// For an object, name is the name of the current member. For an array, name is the name of the member whose value
	// is the array. valueNext is set if the name of a member was read, but its value was not read yet.
	name      string
	valueNext bool
	index     int
}

// eachJSONText returns an iterator over all strings of a JSON value, in their order. It stops at invalid JSON.
func eachJSONText(raw json.RawMessage) iter.Seq[jsonText] {
	return func(yield func(jsonText) bool) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var in []pathStep
		for {
			token, err := dec.Token()
			if err != nil {
				return
			}
			var top pathStep // zero if the string is the whole value
			last := len(in) - 1
			if last >= 0 {
				in[last].advance(token)
				top = in[last]
			}
			switch token := token.(type) {
			case json.Delim:
				switch token {
				case '[':
					in = append(in, pathStep{array: true, name: top.name, index: -1})
				case '{':
					in = append(in, pathStep{})
				default:
					in = in[:last]
				}
			case string:
				if !yield(jsonText{token, last >= 0 && top.valueNext, in}) {
					return
				}
			}
		}
	}
}

// advance updates the step for the next token of its object or array. A closing bracket changes nothing.
func (s *pathStep) advance(token json.Token) {
	switch name, isText := token.(string); {
	case token == json.Delim(']') || token == json.Delim('}'):
	case s.array:
		s.index++
	case !s.valueNext && isText:
		s.name, s.valueNext = name, true
	default:
		s.valueNext = false
	}
}

// memberName returns the name of the member whose value contains the text.
func (t jsonText) memberName() string {
	if len(t.path) == 0 {
		return ""
	}
	return t.path[len(t.path)-1].name
}

// pointer returns the JSON pointer of the text, cut to 512 bytes.
func (t jsonText) pointer() string {
	const most = 512
	var b strings.Builder
	for _, s := range t.path {
		b.WriteByte('/')
		if s.array {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(safetext.Truncate(s.name, most,
				safetext.Bytes, "")))
		}
		if b.Len() > most {
			return safetext.Truncate(b.String(), most, safetext.Bytes, "")
		}
	}
	return b.String()
}
