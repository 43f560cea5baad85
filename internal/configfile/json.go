package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// byteOrderMark is the byte order mark that some editors write at the start of a file.
const byteOrderMark = "\ufeff"

// ParseJSON parses JSON that may have comments and trailing commas. The document must be an object. The error is an
// *Error.
func ParseJSON(data []byte) (Node, error) {
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	if len(bytes.TrimSpace(data)) == 0 {
		return Node{}, ErrorAt(1, "the file is empty")
	}
	if line := tooDeepLine(data); line > 0 {
		return Node{}, ErrorAt(line, "values nest deeper than %d", MaxDepth)
	}
	// A line ending is appended, so that the file may end with a line comment.
	value, err := hujson.Parse(append(bytes.Clone(data), '\n'))
	if err != nil {
		return Node{}, jsonError(err)
	}
	doc := (&jsonReader{data: data, line: 1}).readNode(value)
	if doc.Kind != Table {
		return Node{}, ErrorAt(doc.Line, "the file must hold an object")
	}
	return doc, nil
}

// jsonError returns the parser's error with its position, but without a quoted literal, which may be a secret.
func jsonError(err error) *Error {
	e := &Error{Text: err.Error()}
	if cause := errors.Unwrap(err); cause != nil {
		e.Text = cause.Error()
	}
	_, _ = fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &e.Line, &e.Col) // without a position the error names only the file
	if strings.HasPrefix(e.Text, "invalid literal") {
		e.Text = "this is neither a string in double quotes, a number, true, false nor null"
	}
	return e
}

// A jsonReader converts the parser's values to nodes. lineAt must be called with increasing offsets.
type jsonReader struct {
	data         []byte
	offset, line int
}

func (r *jsonReader) lineAt(offset int) int {
	r.line += bytes.Count(r.data[r.offset:offset], []byte("\n"))
	r.offset = offset
	return r.line
}

func (r *jsonReader) readNode(v hujson.Value) Node {
	n := Node{Line: r.lineAt(v.StartOffset)}
	switch v := v.Value.(type) {
	case *hujson.Object:
		n.Kind = Table
		for _, m := range v.Members {
			line := r.lineAt(m.Name.StartOffset)
			name := m.Name.Value.(hujson.Literal).String() // the parser accepts only strings as names
			n.Members = append(n.Members, Member{name, line, r.readNode(m.Value)})
		}
	case *hujson.Array:
		n.Kind = List
		for _, item := range v.Elements {
			n.Items = append(n.Items, r.readNode(item))
		}
	case hujson.Literal:
		n.Text = v.String()
		switch v.Kind() {
		case '"':
			n.Kind = Text
		case '0':
			n.Kind = Number
		case 't', 'f':
			n.Kind = Boolean
		}
	}
	return n
}

// tooDeepLine returns the line on which values nest deeper than MaxDepth; 0 if there is none. It skips strings and
// comments as the parser does. After a syntax error the result may be wrong; the parser then returns another error.
func tooDeepLine(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		rest := data[i:]
		switch {
		case rest[0] == '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(rest, []byte("//")):
			i += lengthBefore(rest, "\n")
		case bytes.HasPrefix(rest, []byte("/*")):
			i += 2 + lengthBefore(rest[2:], "*/") + 1
		case rest[0] == '{' || rest[0] == '[':
			if depth++; depth > MaxDepth {
				return 1 + bytes.Count(data[:i], []byte("\n"))
			}
		case rest[0] == '}' || rest[0] == ']':
			depth--
		}
	}
	return 0
}

// lengthBefore returns the number of bytes before end; all of them if end is missing.
func lengthBefore(data []byte, end string) int {
	if i := bytes.Index(data, []byte(end)); i >= 0 {
		return i
	}
	return len(data)
}
