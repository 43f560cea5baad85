package doc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// tomlText is a document in TOML. No library writes TOML and keeps its comments, so the text of a table is put in and
// taken out whole.
type tomlText struct {
	data       []byte
	values     map[string]any
	statements []statement
	nl         string
}

func readTOML(data []byte) (*tomlText, error) {
	s := &statements{data: string(data), lists: map[string]int{}}
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
	return &tomlText{data: data, values: tomlTree(values).(map[string]any), statements: s.found, nl: lineEnd(data)}, nil
}

func (t *tomlText) tree() any { return t.values }

// tomlTree gives a decoded value as a tree.
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
			return foreign{fmt.Sprint(v)}
		}
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	case time.Time:
		return foreign{v.Format(time.RFC3339Nano) + v.Location().String()}
	}
	return value
}

// spots turns a path into the form that statements have: an element is its list and its place in it.
func (t *tomlText) spots(path []string) []string {
	var at any = t.values
	var out []string
	for i, step := range path {
		key, name, ok := element(step)
		if !ok {
			out = append(out, step)
			at, _ = find(at, path[i:i+1])
			continue
		}
		items, _ := at.([]any)
		n := indexOf(items, key, name)
		if n < 0 {
			n = len(items)
		}
		out = append(out, spotOf(n))
		at, _ = find(at, path[i:i+1])
	}
	return out
}

// owned gives the statements that say what is at spots, and nothing else.
func (t *tomlText) owned(spots []string) (mine []statement) {
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

func (t *tomlText) set(path []string, value json.RawMessage) ([]byte, error) {
	spots := t.spots(path)
	var tree any
	if err := decode(value, &tree); err != nil {
		return nil, err
	}
	mine := t.owned(spots)
	if len(mine) == 1 && !mine[0].header && len(mine[0].path) == len(spots) {
		written, err := inlineTOML(value)
		return apply(t.data, splice{mine[0].value, mine[0].end, written}), err
	}
	if _, isTable := tree.(map[string]any); !isTable {
		if len(mine) > 0 {
			return nil, errors.New("a table cannot turn into a single value")
		}
		return t.setKey(path, spots, value)
	}
	_, _, isElement := element(path[len(path)-1])
	block, err := t.block(path, isElement, value)
	if err != nil {
		return nil, err
	}
	if len(mine) > 0 {
		return t.replace(mine, block)
	}
	return t.insert(t.familyEnd(spots), block), nil
}

// replace puts block in the place of the first statement and takes the others out.
func (t *tomlText) replace(mine []statement, block string) ([]byte, error) {
	if !mine[0].header {
		return nil, errors.New("the table is written with dotted keys; edit it by hand")
	}
	first := t.runs(mine)[0]
	splices := t.cuts(mine)
	splices[0] = splice{first[0].start, t.lineEnd(first[1].end), strings.TrimSuffix(block, t.nl)}
	return apply(t.data, splices...), nil
}

// setKey writes "key = value" at the end of the table's own keys; a table without a header is given one.
func (t *tomlText) setKey(path, spots []string, value json.RawMessage) ([]byte, error) {
	written, err := inlineTOML(value)
	if err != nil {
		return nil, err
	}
	line := keyTOML(path[len(path)-1]) + " = " + written
	table := spots[:len(spots)-1]
	var last *statement
	for i := range t.statements {
		s := &t.statements[i]
		if s.header && slices.Equal(s.path, table) || !s.header && slices.Equal(s.table, table) {
			last = s
		}
	}
	if last != nil {
		indent := ""
		if !last.header {
			indent = indentOf(t.data, last.start)
		}
		at := t.lineEnd(last.end)
		return apply(t.data, splice{at, at, t.nl + indent + line}), nil
	}
	if len(table) == 0 {
		return append([]byte(line+t.nl), t.data...), nil
	}
	for _, step := range path[:len(path)-1] {
		if _, _, ok := element(step); ok {
			return nil, errors.New("a list that is written on one line cannot be edited; edit it by hand")
		}
	}
	header := "[" + headerTOML(path[:len(path)-1]) + "]" + t.nl + line + t.nl
	return t.insert(t.familyEnd(spots), header), nil
}

// block writes a table with its header. A value of a value is written on its line.
func (t *tomlText) block(path []string, isElement bool, value json.RawMessage) (string, error) {
	members, err := orderedMembers(value)
	if err != nil {
		return "", err
	}
	header := "[" + headerTOML(path) + "]"
	if isElement {
		header = "[[" + headerTOML(path[:len(path)-1]) + "]]"
	}
	var b strings.Builder
	b.WriteString(header + t.nl)
	for _, m := range members {
		written, err := inlineTOML(m.value)
		if err != nil {
			return "", err
		}
		b.WriteString(keyTOML(m.name) + " = " + written + t.nl)
	}
	return b.String(), nil
}

// familyEnd is where a new table is put: behind the last of its siblings, else at the end of the file.
func (t *tomlText) familyEnd(spots []string) int {
	at := len(t.data)
	for _, s := range t.statements {
		if hasPrefix(s.table, spots[:len(spots)-1]) && len(spots) > 1 {
			at = t.lineEnd(s.end)
		}
	}
	return at
}

// insert puts a block, which ends in a line end, behind the line that ends at, with an empty line between.
func (t *tomlText) insert(at int, block string) []byte {
	block = strings.TrimSuffix(block, t.nl)
	switch {
	case len(bytes.TrimSpace(t.data)) == 0:
		return append(slices.Clone(t.data), block+t.nl...)
	case at < len(t.data): // the line's own end follows
		return apply(t.data, splice{at, at, t.nl + t.nl + block})
	case bytes.HasSuffix(t.data, []byte("\n")):
		return append(slices.Clone(t.data), t.nl+block+t.nl...)
	}
	return append(slices.Clone(t.data), t.nl+t.nl+block...)
}

// lineEnd is where the line at ends, its line end not included.
func (t *tomlText) lineEnd(at int) int {
	i := bytes.IndexByte(t.data[at:], '\n')
	if i < 0 {
		return len(t.data)
	}
	if i > 0 && t.data[at+i-1] == '\r' {
		i--
	}
	return at + i
}

func (t *tomlText) remove(path []string) ([]byte, error) {
	mine := t.owned(t.spots(path))
	if len(mine) == 0 {
		return nil, errors.New("what is written within a value on one line cannot be taken out; edit it by hand")
	}
	return apply(t.data, t.cuts(mine)...), nil
}

// runs joins statements that stand next to each other: the first and the last of each run.
func (t *tomlText) runs(mine []statement) (runs [][2]statement) {
	for i, s := range mine {
		if i > 0 && s.index == mine[i-1].index+1 {
			runs[len(runs)-1][1] = s
			continue
		}
		runs = append(runs, [2]statement{s, s})
	}
	return runs
}

// cuts takes statements out, runs of them whole: with comments between them, and with the empty line before a header.
func (t *tomlText) cuts(mine []statement) (splices []splice) {
	for _, run := range t.runs(mine) {
		start := bytes.LastIndexByte(t.data[:run[0].start], '\n') + 1
		end := t.lineEnd(run[1].end)
		if start == 0 { // there is no line before: the one behind moves up
			end += len(t.data[end:]) - len(bytes.TrimPrefix(bytes.TrimPrefix(t.data[end:], []byte("\r")), []byte("\n")))
			splices = append(splices, splice{start, end, ""})
			continue
		}
		start = beforeLineEnd(t.data, start)
		if run[0].header && t.blankBefore(start) {
			start = beforeLineEnd(t.data, start)
		}
		splices = append(splices, splice{start, end, ""})
	}
	return splices
}

// blankBefore says whether the line that ends at is empty.
func (t *tomlText) blankBefore(at int) bool { return at > 0 && t.data[at-1] == '\n' }

// beforeLineEnd steps back over the line end before at.
func beforeLineEnd(data []byte, at int) int {
	return len(bytes.TrimSuffix(bytes.TrimSuffix(data[:at], []byte("\n")), []byte("\r")))
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func keyTOML(name string) string {
	if bareKey.MatchString(name) {
		return name
	}
	return stringTOML(name)
}

// headerTOML names a table. An element is named by its list: the newest one is meant.
func headerTOML(path []string) string {
	var names []string
	for _, step := range path {
		if _, _, ok := element(step); !ok {
			names = append(names, keyTOML(step))
		}
	}
	return strings.Join(names, ".")
}

// stringTOML writes a text. The escapes of JSON are among those of TOML, which wants one more character escaped.
func stringTOML(s string) string { return strings.ReplaceAll(string(quote(s)), "\x7f", `\u007F`) }

// A jsonMember is one member of an object, in its order.
type jsonMember struct {
	name  string
	value json.RawMessage
}

func orderedMembers(value json.RawMessage) (members []jsonMember, err error) {
	d := json.NewDecoder(bytes.NewReader(value))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.Join(err, errors.New("this is no object"))
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

// inlineTOML writes a JSON value on one line.
func inlineTOML(value json.RawMessage) (string, error) {
	value = bytes.TrimSpace(value)
	var parts []string
	switch value[0] {
	case '{':
		members, err := orderedMembers(value)
		if err != nil || len(members) == 0 {
			return "{}", err
		}
		for _, m := range members {
			part, err := inlineTOML(m.value)
			if err != nil {
				return "", err
			}
			parts = append(parts, keyTOML(m.name)+" = "+part)
		}
		return "{ " + strings.Join(parts, ", ") + " }", nil
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return "", err
		}
		for _, item := range items {
			part, err := inlineTOML(item)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	case '"':
		var s string
		err := json.Unmarshal(value, &s)
		return stringTOML(s), err
	case 'n':
		return "", errors.New("TOML has no null")
	}
	return string(value), nil
}
