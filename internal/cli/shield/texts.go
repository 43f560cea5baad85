package shield

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A textAt is a text of a JSON value: the name of a member, or a value. It is good until the next one comes.
type textAt struct {
	text string
	name bool
	in   []step
}

// A step leads to a value in an object or array.
type step struct {
	array bool
	// name is of the member, of an array that of the member which it is the value of; named says that the value comes next.
	name  string
	named bool
	index int
}

// texts gives all texts of JSON, in their order.
func texts(raw json.RawMessage) iter.Seq[textAt] {
	return func(yield func(textAt) bool) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var in []step
		for {
			token, err := dec.Token()
			if err != nil {
				return
			}
			var top step // the value that a text alone is has none
			last := len(in) - 1
			if last >= 0 {
				in[last].move(token)
				top = in[last]
			}
			switch token := token.(type) {
			case json.Delim:
				switch token {
				case '[':
					in = append(in, step{array: true, name: top.name, index: -1})
				case '{':
					in = append(in, step{})
				default:
					in = in[:last]
				}
			case string:
				if !yield(textAt{token, last >= 0 && top.named, in}) {
					return
				}
			}
		}
	}
}

// move goes on to the name or the value that begins with a token, if one does.
func (s *step) move(token json.Token) {
	switch name, isText := token.(string); {
	case token == json.Delim(']') || token == json.Delim('}'):
	case s.array:
		s.index++
	case !s.named && isText:
		s.name, s.named = name, true
	default:
		s.named = false
	}
}

// member is the name of the member whose value, or part of whose value, the text is.
func (t textAt) member() string {
	if len(t.in) == 0 {
		return ""
	}
	return t.in[len(t.in)-1].name
}

// pointer says where the text is, as a JSON pointer; of a long one it is the beginning.
func (t textAt) pointer() string {
	const most = 512
	var b strings.Builder
	for _, s := range t.in {
		b.WriteByte('/')
		if s.array {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(safetext.Truncate(s.name, most, safetext.Bytes, "")))
		}
		if b.Len() > most {
			return safetext.Truncate(b.String(), most, safetext.Bytes, "")
		}
	}
	return b.String()
}
