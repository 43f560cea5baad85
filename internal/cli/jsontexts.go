package cli

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A jsonText is a text of a JSON value: the name of a member, or a value. It is valid until the next one is read.
type jsonText struct {
	text   string
	isName bool
	path   []pathStep
}

// A pathStep is one step of the path to a value in an object or array.
type pathStep struct {
	array bool
	// name is the name of the member; for an array, that of the member whose value it is. With named, the value is next.
	name      string
	valueNext bool
	index     int
}

// eachJSONText returns an iterator over all texts of a JSON value, in their order.
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
			var top pathStep // zero for a text that is the whole value
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

// advance moves to the name or the value that begins with a token, if one does.
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

// pointer returns the JSON pointer of the text; a long one is cut.
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
