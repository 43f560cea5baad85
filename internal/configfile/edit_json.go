package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// A jsonEditor is a parsed document in JSON with comments and trailing commas.
type jsonEditor struct {
	data   []byte
	root   hujson.Value
	values any
	// lineBreak is the line ending. indentUnit is the white space of one level of indentation.
	lineBreak, indentUnit string
	// singleLine is set if the document is on one line. compact is set if, in addition, no space follows the colon
	// after a name.
	singleLine, compact bool
}

func readJSON(data []byte) (*jsonEditor, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	if nestsTooDeep(data) {
		return nil, fmt.Errorf("values nest deeper than %d", maxNesting)
	}
	// A line ending is appended, so that the file may end with a line comment.
	root, err := hujson.Parse(append(bytes.Clone(data), '\n'))
	if err != nil {
		return nil, jsonSyntaxError(err)
	}
	t := &jsonEditor{data: data, root: root, lineBreak: lineEnding(data), indentUnit: "  "}
	standard := root.Clone()
	standard.Standardize()
	if err := decodeJSON(standard.Pack(), &t.values); err != nil {
		return nil, errors.New("this is not JSON")
	}
	t.detectStyle()
	return t, nil
}

// jsonSyntaxError returns an error with the position only, because the parser's message may contain a value.
func jsonSyntaxError(err error) error {
	var line, col int
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &col); scanErr != nil {
		return errors.New("this is not JSON")
	}
	return fmt.Errorf("line %d, column %d: this is not JSON", line, col)
}

// detectStyle sets singleLine, compact and indentUnit from the text of the document.
func (t *jsonEditor) detectStyle() {
	b, ok := t.containerOf(&t.root)
	t.singleLine = ok && len(b.items) > 0 && !bytes.Contains(bytes.TrimSpace(t.data), []byte("\n"))
	t.compact = t.singleLine && !bytes.Contains(t.data, []byte(`": `))
	for _, it := range b.items {
		if indent, alone := t.startsLine(it.start); alone && indent != "" {
			t.indentUnit = indent
			return
		}
	}
}

func (t *jsonEditor) tree() any { return t.values }

func (t *jsonEditor) get(path []string) (json.RawMessage, bool, error) {
	at, rest, err := t.deepestOn(path)
	if err != nil || len(rest) > 0 {
		return nil, false, err
	}
	v := at.Clone()
	v.Minimize()
	return v.Pack(), true, nil
}

// A jsonContainer is an object or a list, with its offsets in the text.
type jsonContainer struct {
	start, end int
	list       bool
	items      []jsonItem
}

// A jsonItem is one member or element, with its offsets in the text. comma is the offset of the comma after it, or -1.
type jsonItem struct {
	name              string
	start, end, comma int
	value             *hujson.Value
}

func (t *jsonEditor) containerOf(v *hujson.Value) (jsonContainer, bool) {
	b := jsonContainer{start: v.StartOffset, end: v.EndOffset}
	switch of := v.Value.(type) {
	case *hujson.Object:
		for i := range of.Members {
			m := &of.Members[i]
			name, _ := m.Name.Value.(hujson.Literal)
			b.items = append(b.items, jsonItem{name.String(), m.Name.StartOffset, m.Value.EndOffset, -1, &m.Value})
		}
	case *hujson.Array:
		b.list = true
		for i := range of.Elements {
			e := &of.Elements[i]
			b.items = append(b.items, jsonItem{"", e.StartOffset, e.EndOffset, -1, e})
		}
	default:
		return b, false
	}
	for i := range b.items {
		if at := skipBlanksAndComments(t.data, b.items[i].end); at < len(t.data) && t.data[at] == ',' {
			b.items[i].comma = at
		}
	}
	return b, true
}

// itemIndex returns the index of the item that a path step selects; -1 if it is missing. The error reports a duplicate.
func (t *jsonEditor) itemIndex(b jsonContainer, step string) (int, error) {
	found := -1
	key, name, ok := parseElementStep(step)
	if ok != b.list {
		return -1, nil
	}
	for i, it := range b.items {
		if ok {
			members, _ := t.containerOf(it.value)
			j, err := t.itemIndex(members, key)
			if err != nil || j < 0 {
				continue
			}
			if word, isWord := members.items[j].value.Value.(hujson.Literal); !isWord || word.Kind() != '"' ||
				word.String() != name {
				continue
			}
		} else if it.name != step {
			continue
		}
		if found >= 0 {
			if !ok {
				name = step
			}
			return -1, fmt.Errorf("%q is written twice", name)
		}
		found = i
	}
	return found, nil
}

// deepestOn returns the deepest existing value on the path, and the steps that remain below it.
func (t *jsonEditor) deepestOn(path []string) (*hujson.Value, []string, error) {
	at := &t.root
	for i, step := range path {
		b, ok := t.containerOf(at)
		if !ok {
			return at, path[i:], nil
		}
		j, err := t.itemIndex(b, step)
		if err != nil {
			return nil, nil, err
		}
		if j < 0 {
			return at, path[i:], nil
		}
		at = b.items[j].value
	}
	return at, nil, nil
}

func (t *jsonEditor) set(path []string, value json.RawMessage) ([]byte, error) {
	at, rest, err := t.deepestOn(path)
	if err != nil {
		return nil, err
	}
	if b, ok := t.containerOf(at); ok && len(rest) > 0 {
		return t.appendItem(b, rest, value)
	}
	// The existing value is replaced. If this value is a parent and null, it is replaced by the missing parents that
	// contain the new value.
	whole := wrapInParents(rest, value)
	indent, alone := t.startsLine(t.lineStart(at.StartOffset))
	multi := alone && !t.singleLine && (bytes.ContainsRune(t.data[at.StartOffset:at.EndOffset], '\n') ||
		t.startsItem(at.StartOffset))
	return applySplices(t.data, splice{at.StartOffset, at.EndOffset, t.formatValue(whole, indent, multi)}), nil
}

// lineStart returns the offset of the first byte that is not white space, on the line that contains the offset at.
func (t *jsonEditor) lineStart(at int) int {
	start := bytes.LastIndexByte(t.data[:at], '\n') + 1
	return start + len(indentAt(t.data, at))
}

// startsItem reports whether, on its line, the offset at is preceded by nothing or by a member's name only.
func (t *jsonEditor) startsItem(at int) bool {
	before := bytes.TrimSpace(t.data[t.lineStart(at):at])
	return len(before) == 0 || before[0] == '"' && bytes.Count(before, []byte(`"`)) == 2
}

// startsLine reports whether, on its line, the offset at is preceded by white space only. It also returns the preceding
// text.
func (t *jsonEditor) startsLine(at int) (string, bool) {
	start := bytes.LastIndexByte(t.data[:at], '\n') + 1
	blanks := t.data[start:at]
	return string(blanks), len(bytes.Trim(blanks, " \t")) == 0
}

// appendItem returns the document with an item added at the end of container b. rest is the path of value, starting at
// b.
func (t *jsonEditor) appendItem(b jsonContainer, rest []string, value json.RawMessage) ([]byte, error) {
	value = wrapInParents(rest[1:], value)
	if key, name, ok := parseElementStep(rest[0]); ok && len(rest) > 1 { // the element needs its name
		value = append([]byte("{"+string(quoteJSON(key))+":"+string(quoteJSON(name))+","), value[1:]...)
	}
	written := func(indent string, multi bool) string {
		if b.list {
			return t.formatValue(value, indent, multi)
		}
		return string(quoteJSON(rest[0])) + t.nameSeparator() + t.formatValue(value, indent, multi)
	}
	if len(b.items) == 0 {
		inner := strings.TrimRight(string(t.data[b.start+1:b.end-1]), " \t\r\n")
		if t.singleLine {
			return applySplices(t.data, splice{b.start + 1, b.end - 1, inner + written("", false)}), nil
		}
		outer := indentAt(t.data, b.start)
		indent := outer + t.indentUnit
		return applySplices(t.data, splice{b.start + 1, b.end - 1, inner + t.lineBreak + indent +
			written(indent, true) + t.lineBreak + outer}), nil
	}
	last := b.items[len(b.items)-1]
	from, after := last.end, ""
	var splices []splice
	if last.comma < 0 {
		splices = append(splices, splice{last.end, last.end, ","})
	} else {
		from, after = last.comma+1, ","
	}
	tail := bytes.TrimRight(t.data[from:b.end-1], " \t\r\n")
	indent, multi := t.startsLine(last.start)
	multi = multi && last.start > b.start && bytes.ContainsRune(t.data[b.start:last.start], '\n')
	between := " "
	switch {
	case multi:
		between = t.lineBreak + indent
	case bytes.Contains(tail, []byte("//")):
		between = t.lineBreak + indentAt(t.data, last.start)
	case t.compact:
		between = ""
	}
	at := from + len(tail)
	return applySplices(t.data, append(splices, splice{at, at, between + written(indent, multi) + after})...), nil
}

func (t *jsonEditor) remove(path []string) ([]byte, error) {
	parent, rest, err := t.deepestOn(path[:len(path)-1])
	if err != nil || len(rest) > 0 {
		return nil, errors.Join(err, errors.New("a parent of the value was not found"))
	}
	b, _ := t.containerOf(parent)
	i, err := t.itemIndex(b, path[len(path)-1])
	if err != nil {
		return nil, err
	}
	it := b.items[i]
	if i < len(b.items)-1 {
		next := it.comma + 1
		next += len(t.data[next:]) - len(bytes.TrimLeft(t.data[next:], " \t\r\n"))
		kept := string(bytes.TrimSpace(t.data[it.end:it.comma]))
		if kept != "" {
			kept += t.lineBreak
		}
		return applySplices(t.data, splice{it.start, next, kept}), nil
	}
	end, from := it.end, b.start+1
	var splices []splice
	if it.comma >= 0 {
		end = it.comma + 1
	}
	if i > 0 {
		comma := b.items[i-1].comma
		from = comma + 1
		if it.comma < 0 {
			splices = append(splices, splice{comma, comma + 1, ""})
		}
	}
	before := t.data[from:it.start]
	start := from + len(bytes.TrimRight(before, " \t\r\n"))
	after := bytes.TrimLeft(t.data[end:], " \t")
	if bytes.Contains(before, []byte("//")) && len(after) > 0 && after[0] != '\n' && after[0] != '\r' {
		start = it.start // otherwise a line comment before the item would include the text after it
	}
	if i == 0 && len(bytes.TrimSpace(t.data[b.start+1:it.start])) == 0 &&
		len(bytes.TrimSpace(t.data[end:b.end-1])) == 0 {
		start, end = b.start+1, b.end-1
	}
	return applySplices(t.data, append(splices, splice{start, end, ""})...), nil
}

// skipBlanksAndComments returns the offset of the first byte, from at on, that is neither white space nor in a comment.
func skipBlanksAndComments(data []byte, at int) int {
	for at < len(data) {
		rest := data[at:]
		switch {
		case bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0:
			at++
		case bytes.HasPrefix(rest, []byte("//")):
			at += lengthThrough(rest, "\n")
		case bytes.HasPrefix(rest, []byte("/*")):
			at += 2 + lengthThrough(rest[2:], "*/")
		default:
			return at
		}
	}
	return at
}

// lengthThrough returns the number of bytes up to and including the first end; all bytes if end is missing.
func lengthThrough(data []byte, end string) int {
	if i := bytes.Index(data, []byte(end)); i >= 0 {
		return i + len(end)
	}
	return len(data)
}

// nestsTooDeep reports whether values nest deeper than maxNesting. After a syntax error the result may be wrong.
func nestsTooDeep(data []byte) bool {
	depth := 0
	for at := skipBlanksAndComments(data, 0); at < len(data); at = skipBlanksAndComments(data, at) {
		switch data[at] {
		case '"':
			for at++; at < len(data) && data[at] != '"'; at++ {
				if data[at] == '\\' {
					at++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth > maxNesting {
			return true
		}
		at++
	}
	return false
}
