package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// byteOrderMark opens what some editors save.
const byteOrderMark = "\ufeff"

// parseJSON reads JSON with comments and trailing commas. The error is a *fileError.
func parseJSON(data []byte) (node, error) {
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	if len(bytes.TrimSpace(data)) == 0 {
		return node{}, wrong(1, "the file is empty")
	}
	if line := tooDeep(data); line > 0 {
		return node{}, wrong(line, "values nest deeper than %d", maxDepth)
	}
	// The line end lets a comment be the last thing in the file.
	value, err := hujson.Parse(append(bytes.Clone(data), '\n'))
	if err != nil {
		return node{}, jsonError(err)
	}
	doc := (&jsonReader{data: data, line: 1}).node(value)
	if doc.kind != table {
		return node{}, wrong(doc.line, "the file must hold an object")
	}
	return doc, nil
}

// jsonError takes the place out of the parser's words, and leaves out the literal it may quote: that can be a secret.
func jsonError(err error) *fileError {
	e := &fileError{text: err.Error()}
	if cause := errors.Unwrap(err); cause != nil {
		e.text = cause.Error()
	}
	_, _ = fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &e.line, &e.col) // without it the file alone is named
	if strings.HasPrefix(e.text, "invalid literal") {
		e.text = "this is neither a string in double quotes, a number, true, false nor null"
	}
	return e
}

// A jsonReader turns the parser's values into nodes. Offsets must come in rising order.
type jsonReader struct {
	data         []byte
	offset, line int
}

func (r *jsonReader) lineAt(offset int) int {
	r.line += bytes.Count(r.data[r.offset:offset], []byte("\n"))
	r.offset = offset
	return r.line
}

func (r *jsonReader) node(v hujson.Value) node {
	n := node{line: r.lineAt(v.StartOffset)}
	switch v := v.Value.(type) {
	case *hujson.Object:
		n.kind = table
		for _, m := range v.Members {
			line := r.lineAt(m.Name.StartOffset)
			name := m.Name.Value.(hujson.Literal).String() // the parser lets nothing else be a name
			n.members = append(n.members, member{name, line, r.node(m.Value)})
		}
	case *hujson.Array:
		n.kind = list
		for _, item := range v.Elements {
			n.items = append(n.items, r.node(item))
		}
	case hujson.Literal:
		n.text = v.String()
		switch v.Kind() {
		case '"':
			n.kind = text
		case '0':
			n.kind = number
		case 't', 'f':
			n.kind = boolean
		}
	}
	return n
}

// tooDeep gives the line on which values nest too deep; 0 where none do. It reads strings and comments as the parser
// does, and need not be right about what follows an error.
func tooDeep(data []byte) int {
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
			i += skipTo(rest, "\n")
		case bytes.HasPrefix(rest, []byte("/*")):
			i += 2 + skipTo(rest[2:], "*/") + 1
		case rest[0] == '{' || rest[0] == '[':
			if depth++; depth > maxDepth {
				return 1 + bytes.Count(data[:i], []byte("\n"))
			}
		case rest[0] == '}' || rest[0] == ']':
			depth--
		}
	}
	return 0
}

// skipTo says how many bytes come before end; all of them where it is missing.
func skipTo(data []byte, end string) int {
	if i := bytes.Index(data, []byte(end)); i >= 0 {
		return i
	}
	return len(data)
}
