package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/BurntSushi/toml"
)

// A tomlEditor is a parsed document in TOML. Since no library writes TOML and preserves comments, it inserts and
// removes the text of whole statements and tables.
type tomlEditor struct {
	data       []byte
	values     map[string]any
	statements []tomlStatement
	lineBreak  string
}

func readTOML(data []byte) (*tomlEditor, error) {
	s := &statementScanner{data: string(data), lists: map[string]int{}}
	if err := s.scan(); err != nil {
		return nil, err
	}
	var values map[string]any
	if _, err := toml.Decode(string(data), &values); err != nil {
		if parse, ok := errors.AsType[toml.ParseError](err); ok {
			return nil, fmt.Errorf("line %d: this is not TOML", parse.Position.Line)
		}
		return nil, errors.New("this is not TOML")
	}
	return &tomlEditor{data: data, values: tomlTree(values).(map[string]any), statements: s.statements,
		lineBreak: lineEnding(data)}, nil
}

func (t *tomlEditor) tree() any { return t.values }

// tomlTree returns a decoded TOML value as a tree, see textEditor.
func tomlTree(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			out[name] = tomlTree(member)
		}
		return out
	case []map[string]any:
		out := []any{}
		for _, item := range v {
			out = append(out, tomlTree(item))
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v {
			out = append(out, tomlTree(item))
		}
		return out
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nonJSONValue{fmt.Sprint(v)}
		}
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	case time.Time:
		return nonJSONValue{v.Format(time.RFC3339Nano) + v.Location().String()}
	}
	return value
}

// indexedPath returns the path with each element step replaced by the index of the element, as in tomlStatement.path.
// For an element that does not exist, the index is the length of the list.
func (t *tomlEditor) indexedPath(path []string) []string {
	var at any = t.values
	var out []string
	for i, step := range path {
		key, name, ok := parseElementStep(step)
		if !ok {
			out = append(out, step)
			at, _ = findInTree(at, path[i:i+1])
			continue
		}
		items, _ := at.([]any)
		n := elementIndex(items, key, name)
		if n < 0 {
			n = len(items)
		}
		out = append(out, indexStep(n))
		at, _ = findInTree(at, path[i:i+1])
	}
	return out
}

// statementsUnder returns the statements whose path begins with spots.
func (t *tomlEditor) statementsUnder(spots []string) (mine []tomlStatement) {
	for _, s := range t.statements {
		if hasPrefix(s.path, spots) {
			mine = append(mine, s)
		}
	}
	return mine
}

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

func (t *tomlEditor) set(path []string, value json.RawMessage) ([]byte, error) {
	spots := t.indexedPath(path)
	var tree any
	if err := decodeJSON(value, &tree); err != nil {
		return nil, err
	}
	mine := t.statementsUnder(spots)
	if len(mine) == 1 && !mine[0].header && len(mine[0].path) == len(spots) {
		written, err := formatInlineTOML(value)
		return applySplices(t.data, splice{mine[0].value, mine[0].end, written}), err
	}
	if _, isTable := tree.(map[string]any); !isTable {
		if len(mine) > 0 {
			return nil, errors.New("a table cannot turn into a single value")
		}
		return t.setKey(path, spots, value)
	}
	_, _, isElement := parseElementStep(path[len(path)-1])
	block, err := t.formatTable(path, isElement, value)
	if err != nil {
		return nil, err
	}
	if len(mine) > 0 {
		return t.replaceStatements(mine, block)
	}
	return t.insertBlock(t.siblingsEnd(spots), block), nil
}

// replaceStatements returns the document with the statements mine replaced by block. block takes the place of the first
// adjacent statements; the other statements are removed.
func (t *tomlEditor) replaceStatements(mine []tomlStatement, block string) ([]byte, error) {
	if !mine[0].header {
		return nil, errors.New("the table is written with dotted keys; edit it by hand")
	}
	first := t.consecutiveRuns(mine)[0]
	splices := t.removalSplices(mine)
	splices[0] = splice{first[0].start, t.lineEnd(first[1].end), strings.TrimSuffix(block, t.lineBreak)}
	return applySplices(t.data, splices...), nil
}

// setKey returns the document with "key = value" added after the last key of its table. If the table has no header in
// the document, a header is added.
func (t *tomlEditor) setKey(path, spots []string, value json.RawMessage) ([]byte, error) {
	written, err := formatInlineTOML(value)
	if err != nil {
		return nil, err
	}
	line := formatTOMLKey(path[len(path)-1]) + " = " + written
	table := spots[:len(spots)-1]
	var last *tomlStatement
	for i := range t.statements {
		s := &t.statements[i]
		if s.header && slices.Equal(s.path, table) || !s.header && slices.Equal(s.table, table) {
			last = s
		}
	}
	if last != nil {
		indent := ""
		if !last.header {
			indent = indentAt(t.data, last.start)
		}
		at := t.lineEnd(last.end)
		return applySplices(t.data, splice{at, at, t.lineBreak + indent + line}), nil
	}
	if len(table) == 0 {
		return append([]byte(line+t.lineBreak), t.data...), nil
	}
	for _, step := range path[:len(path)-1] {
		if _, _, ok := parseElementStep(step); ok {
			return nil, errors.New("a list that is written on one line cannot be edited; edit it by hand")
		}
	}
	header := "[" + formatTOMLHeader(path[:len(path)-1]) + "]" + t.lineBreak + line + t.lineBreak
	return t.insertBlock(t.siblingsEnd(spots), header), nil
}

// formatTable returns a table with its header. Tables and lists in it are written inline, on one line each.
func (t *tomlEditor) formatTable(path []string, isElement bool, value json.RawMessage) (string, error) {
	members, err := orderedMembers(value)
	if err != nil {
		return "", err
	}
	header := "[" + formatTOMLHeader(path) + "]"
	if isElement {
		header = "[[" + formatTOMLHeader(path[:len(path)-1]) + "]]"
	}
	var b strings.Builder
	b.WriteString(header + t.lineBreak)
	for _, m := range members {
		written, err := formatInlineTOML(m.value)
		if err != nil {
			return "", err
		}
		b.WriteString(formatTOMLKey(m.name) + " = " + written + t.lineBreak)
	}
	return b.String(), nil
}

// siblingsEnd returns the offset for a new table: after the last table with the same parent, otherwise the end of the
// file.
func (t *tomlEditor) siblingsEnd(spots []string) int {
	at := len(t.data)
	for _, s := range t.statements {
		if hasPrefix(s.table, spots[:len(spots)-1]) && len(spots) > 1 {
			at = t.lineEnd(s.end)
		}
	}
	return at
}

// insertBlock returns the document with block inserted after the line that ends at offset at, and an empty line between
// them. The block must end with a line ending.
func (t *tomlEditor) insertBlock(at int, block string) []byte {
	block = strings.TrimSuffix(block, t.lineBreak)
	switch {
	case len(bytes.TrimSpace(t.data)) == 0:
		return append(slices.Clone(t.data), block+t.lineBreak...)
	case at < len(t.data): // the line ending at this offset ends the block
		return applySplices(t.data, splice{at, at, t.lineBreak + t.lineBreak + block})
	case bytes.HasSuffix(t.data, []byte("\n")):
		return append(slices.Clone(t.data), t.lineBreak+block+t.lineBreak...)
	}
	return append(slices.Clone(t.data), t.lineBreak+t.lineBreak+block...)
}

// lineEnd returns the offset of the line ending, or of the end of data, on the line that contains the offset at.
func (t *tomlEditor) lineEnd(at int) int {
	i := bytes.IndexByte(t.data[at:], '\n')
	if i < 0 {
		return len(t.data)
	}
	if i > 0 && t.data[at+i-1] == '\r' {
		i--
	}
	return at + i
}

func (t *tomlEditor) remove(path []string) ([]byte, error) {
	mine := t.statementsUnder(t.indexedPath(path))
	if len(mine) == 0 {
		return nil, errors.New("a member of a value on one line cannot be removed; edit it by hand")
	}
	return applySplices(t.data, t.removalSplices(mine)...), nil
}

// consecutiveRuns groups adjacent statements into runs, and returns the first and the last statement of each run.
func (t *tomlEditor) consecutiveRuns(mine []tomlStatement) (runs [][2]tomlStatement) {
	for i, s := range mine {
		if i > 0 && s.index == mine[i-1].index+1 {
			runs[len(runs)-1][1] = s
			continue
		}
		runs = append(runs, [2]tomlStatement{s, s})
	}
	return runs
}

// removalSplices returns splices that remove the statements. They also remove comments between adjacent statements, and
// the empty line before a header.
func (t *tomlEditor) removalSplices(mine []tomlStatement) (splices []splice) {
	for _, run := range t.consecutiveRuns(mine) {
		start := bytes.LastIndexByte(t.data[:run[0].start], '\n') + 1
		end := t.lineEnd(run[1].end)
		if start == 0 { // there is no line before it, so the line ending after it is removed
			end += len(t.data[end:]) - len(bytes.TrimPrefix(bytes.TrimPrefix(t.data[end:], []byte("\r")), []byte("\n")))
			splices = append(splices, splice{start, end, ""})
			continue
		}
		start = beforeLineEnd(t.data, start)
		if run[0].header && t.isBlankBefore(start) {
			start = beforeLineEnd(t.data, start)
		}
		splices = append(splices, splice{start, end, ""})
	}
	return splices
}

// isBlankBefore reports whether the line that ends at offset at is empty.
func (t *tomlEditor) isBlankBefore(at int) bool { return at > 0 && t.data[at-1] == '\n' }

// beforeLineEnd returns the offset of the line ending that ends at offset at; at itself if there is none.
func beforeLineEnd(data []byte, at int) int {
	return len(bytes.TrimSuffix(bytes.TrimSuffix(data[:at], []byte("\n")), []byte("\r")))
}

var bareKey = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

func formatTOMLKey(name string) string {
	if bareKey().MatchString(name) {
		return name
	}
	return formatTOMLString(name)
}

// formatTOMLHeader returns the name of a table for its header. An element step is omitted: in TOML, the name of a list
// of tables means its last element.
func formatTOMLHeader(path []string) string {
	var names []string
	for _, step := range path {
		if _, _, ok := parseElementStep(step); !ok {
			names = append(names, formatTOMLKey(step))
		}
	}
	return strings.Join(names, ".")
}

// formatTOMLString returns a quoted string. TOML supports JSON's escapes, but also requires U+007F to be escaped.
func formatTOMLString(s string) string {
	return strings.ReplaceAll(string(quoteJSON(s)), "\x7f", `\u007F`)
}

// A jsonMember is one member of a JSON object. A list of them preserves the object's order.
type jsonMember struct {
	name  string
	value json.RawMessage
}

func orderedMembers(value json.RawMessage) (members []jsonMember, err error) {
	d := json.NewDecoder(bytes.NewReader(value))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.Join(err, errors.New("the value is not an object"))
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var member json.RawMessage
		if err := d.Decode(&member); err != nil {
			return nil, err
		}
		members = append(members, jsonMember{name.(string), member})
	}
	return members, nil
}

// formatInlineTOML returns a JSON value as TOML on one line.
func formatInlineTOML(value json.RawMessage) (string, error) {
	value = bytes.TrimSpace(value)
	var parts []string
	switch value[0] {
	case '{':
		members, err := orderedMembers(value)
		if err != nil || len(members) == 0 {
			return "{}", err
		}
		for _, m := range members {
			part, err := formatInlineTOML(m.value)
			if err != nil {
				return "", err
			}
			parts = append(parts, formatTOMLKey(m.name)+" = "+part)
		}
		return "{ " + strings.Join(parts, ", ") + " }", nil
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return "", err
		}
		for _, item := range items {
			part, err := formatInlineTOML(item)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	case '"':
		var s string
		err := json.Unmarshal(value, &s)
		return formatTOMLString(s), err
	case 'n':
		return "", errors.New("TOML has no null")
	}
	return string(value), nil
}
