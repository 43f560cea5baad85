package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"go.yaml.in/yaml/v3"
)

// A yamlEditor is a parsed document in YAML. In a mapping in block style, it inserts and removes whole lines. In a
// mapping in flow style ("{…}"), it inserts a member only at the start. It removes such a member only if the next
// member is on the same line.
type yamlEditor struct {
	data      []byte
	root      *yaml.Node // nil for an empty document
	values    any
	lines     []string // with their line endings
	lineBreak string
}

func readYAML(data []byte) (*yamlEditor, error) {
	t := &yamlEditor{data: data, lineBreak: lineEnding(data), lines: strings.SplitAfter(string(data), "\n")}
	if last := len(t.lines) - 1; t.lines[last] == "" {
		t.lines = t.lines[:last]
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var node yaml.Node
	switch err := d.Decode(&node); {
	case errors.Is(err, io.EOF):
		return t, nil
	case err != nil:
		return nil, yamlSyntaxError(err)
	}
	var next yaml.Node
	if err := d.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, errors.New("this is not one YAML document")
	}
	if node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
		t.root = node.Content[0]
	}
	if t.root != nil && yamlDepth(t.root, 1) > maxNesting {
		return nil, fmt.Errorf("values nest deeper than %d", maxNesting)
	}
	var value any
	if err := node.Decode(&value); err != nil { // Decode rejects aliases whose expansion is too large
		return nil, yamlSyntaxError(err)
	}
	t.values = yamlTree(value)
	return t, nil
}

func yamlDepth(n *yaml.Node, depth int) int {
	deepest := depth
	for _, child := range n.Content {
		if depth < maxNesting {
			deepest = max(deepest, yamlDepth(child, depth+1))
		} else {
			deepest = depth + 1
		}
	}
	return deepest
}

var yamlErrorLine = lazyregexp.New(`line (\d+)`)

// yamlSyntaxError returns an error with the line only, because the parser's message may contain a value.
func yamlSyntaxError(err error) error {
	if at := yamlErrorLine().FindStringSubmatch(err.Error()); at != nil {
		return fmt.Errorf("line %s: this is not YAML", at[1])
	}
	return errors.New("this is not YAML")
}

func (t *yamlEditor) tree() any { return t.values }

// yamlTree returns a decoded YAML value as a tree, see textEditor.
func yamlTree(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			out[name] = yamlTree(member)
		}
		return out
	case map[any]any:
		out := map[string]any{}
		for name, member := range v {
			out[fmt.Sprintf("\x00%T %v", name, name)] = yamlTree(member)
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v {
			out = append(out, yamlTree(item))
		}
		return out
	case int, int64, uint64:
		return json.Number(fmt.Sprint(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nonJSONValue{fmt.Sprint(v)}
		}
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	case string, bool, nil:
		return v
	}
	return nonJSONValue{fmt.Sprint(value)}
}

var errEditByHand = errors.New("the file is written in a way that cannot be edited; edit it by hand")

// deepestOn returns the deepest existing mapping on the path, the key that leads to this mapping, and the remaining
// steps. The last step of the path is always one of the remaining steps.
func (t *yamlEditor) deepestOn(path []string) (key, at *yaml.Node, rest []string, err error) {
	if strings.ContainsAny(strings.ReplaceAll(string(t.data), "\r\n", "\n"), "\r\u0085\u2028\u2029") {
		return nil, nil, nil, errEditByHand // these characters end a line in YAML, but not in this editor
	}
	at = t.root
	for i, step := range path {
		if _, _, ok := parseElementStep(step); ok || at == nil && i > 0 {
			return nil, nil, nil, errEditByHand
		}
		j, err := memberIndex(at, step)
		if err != nil {
			return nil, nil, nil, err
		}
		if j < 0 || i == len(path)-1 {
			return key, at, path[i:], nil
		}
		key, at = at.Content[j], at.Content[j+1]
	}
	return key, at, nil, nil
}

// memberIndex returns the index of a member's key in at.Content; -1 if the member or the mapping is missing.
func memberIndex(at *yaml.Node, name string) (int, error) {
	found := -1
	switch {
	case at == nil || at.Kind == yaml.ScalarNode && at.Tag == "!!null":
		return -1, nil
	case at.Kind != yaml.MappingNode || at.Anchor != "":
		return -1, errEditByHand
	}
	for i := 0; i+1 < len(at.Content); i += 2 {
		if at.Content[i].Tag == "!!merge" {
			return -1, errEditByHand
		}
		if at.Content[i].Value == name {
			found = i
		}
	}
	return found, nil
}

func (t *yamlEditor) set(path []string, value json.RawMessage) ([]byte, error) {
	key, at, rest, err := t.deepestOn(path)
	if err != nil {
		return nil, err
	}
	if _, _, ok := parseElementStep(rest[0]); ok {
		return nil, errEditByHand
	}
	value = wrapInParents(rest[1:], value)
	if at == nil || at.Kind == yaml.ScalarNode || len(at.Content) == 0 {
		return t.setFirstMember(key, at, rest[0], value)
	}
	i, _ := memberIndex(at, rest[0])
	if at.Style&yaml.FlowStyle != 0 {
		return t.setInFlowMapping(at, i, rest[0], value)
	}
	first := at.Content[0]
	indent := strings.Repeat(" ", first.Column-1)
	if i >= 0 {
		from, to := t.memberLines(at.Content[i])
		if !t.startsLine(at.Content[i]) {
			return nil, errEditByHand
		}
		return t.replaceLines(from, to, t.formatMember(rest[0], value, indent)), nil
	}
	_, to := t.memberLines(at.Content[len(at.Content)-2])
	return t.replaceLines(to, to, t.formatMember(rest[0], value, indent)), nil
}

// startsLine reports whether only spaces precede the key on its line.
func (t *yamlEditor) startsLine(key *yaml.Node) bool {
	return strings.TrimLeft(t.lines[key.Line-1][:key.Column-1], " ") == ""
}

// memberLines returns the range of the member's lines: the index of the first line, and the index after the last line.
// Comments after the member are excluded.
func (t *yamlEditor) memberLines(key *yaml.Node) (from, to int) {
	to = key.Line
	for i := key.Line; i < len(t.lines); i++ {
		line := strings.TrimRight(t.lines[i], " \t\r\n")
		body := strings.TrimLeft(line, " ")
		column := len(line) - len(body) + 1
		switch {
		case body == "" || body[0] == '#' && column <= key.Column:
			continue
		case column > key.Column, column == key.Column && (body == "-" || strings.HasPrefix(body, "- ")):
			to = i + 1
			continue
		}
		break
	}
	return key.Line - 1, to
}

// setFirstMember returns the document with a first member in the mapping at, which is empty or missing. key is the
// mapping's key; nil for the root.
func (t *yamlEditor) setFirstMember(key, at *yaml.Node, name string, value json.RawMessage) ([]byte, error) {
	if key == nil {
		if at != nil && (at.Line > len(t.lines) || strings.TrimSpace(t.lines[at.Line-1]) != "{}") {
			return nil, errEditByHand
		}
		from, to := len(t.lines), len(t.lines)
		if at != nil {
			from, to = at.Line-1, at.Line
		}
		return t.replaceLines(from, to, t.formatMember(name, value, "")), nil
	}
	line := t.lines[key.Line-1]
	if at.Kind == yaml.MappingNode { // "{}"
		i := strings.Index(line[key.Column-1:], "{}") + key.Column - 1
		if at.Line != key.Line || i < key.Column {
			return nil, errEditByHand
		}
		after := line[i+2:]
		line = strings.TrimRight(line[:i], " ") + after
	}
	indent := strings.Repeat(" ", key.Column-1) + t.indentUnit()
	if !strings.HasSuffix(line, "\n") {
		line += t.lineBreak
		block := t.formatMember(name, value, indent)
		return t.replaceLines(key.Line-1, key.Line, line+strings.TrimSuffix(block, t.lineBreak)), nil
	}
	return t.replaceLines(key.Line-1, key.Line, line+t.formatMember(name, value, indent)), nil
}

// indentUnit returns the white space of one level of indentation, as in the first nested mapping of the document.
func (t *yamlEditor) indentUnit() string {
	if t.root != nil && t.root.Kind == yaml.MappingNode {
		for i := 1; i < len(t.root.Content); i += 2 {
			v := t.root.Content[i]
			if v.Kind == yaml.MappingNode && v.Style&yaml.FlowStyle == 0 && v.Column > 1 {
				return strings.Repeat(" ", v.Column-1)
			}
		}
	}
	return "  "
}

// setInFlowMapping returns the document with a member added at the start of a mapping in flow style. A member cannot be
// added at the end, because the parser does not return the position of the end. i is the index of the member's key; if
// it is not -1, the member exists already and the result is an error.
func (t *yamlEditor) setInFlowMapping(at *yaml.Node, i int, name string, value json.RawMessage) ([]byte, error) {
	line := t.lines[at.Line-1]
	if i >= 0 || at.Column > len(line) || line[at.Column-1] != '{' {
		return nil, errEditByHand
	}
	written := string(quoteJSON(name)) + ": " + string(value) + ", "
	return t.replaceLines(at.Line-1, at.Line, line[:at.Column]+written+line[at.Column:]), nil
}

// replaceLines returns the document with the lines t.lines[from:to] replaced by the text lines. A document without a
// final line ending remains without it.
func (t *yamlEditor) replaceLines(from, to int, lines string) []byte {
	before, after := strings.Join(t.lines[:from], ""), strings.Join(t.lines[to:], "")
	if before != "" && !strings.HasSuffix(before, "\n") && lines != "" {
		before += t.lineBreak
		lines = strings.TrimSuffix(lines, t.lineBreak)
	}
	if after == "" && lines == "" && len(t.lines) > 0 && !strings.HasSuffix(t.lines[len(t.lines)-1], "\n") {
		before = strings.TrimSuffix(before, t.lineBreak)
	}
	return []byte(before + lines + after)
}

func (t *yamlEditor) remove(path []string) ([]byte, error) {
	key, at, rest, err := t.deepestOn(path)
	if err != nil {
		return nil, err
	}
	i, err := memberIndex(at, rest[0])
	if err != nil || i < 0 {
		return nil, errEditByHand
	}
	it := at.Content[i]
	if at.Style&yaml.FlowStyle != 0 {
		if i+2 >= len(at.Content) || at.Content[i+2].Line != it.Line {
			return nil, errEditByHand
		}
		line := t.lines[it.Line-1]
		return t.replaceLines(it.Line-1, it.Line, line[:it.Column-1]+line[at.Content[i+2].Column-1:]), nil
	}
	from, to := t.memberLines(it)
	if !t.startsLine(it) {
		return nil, errEditByHand
	}
	if len(at.Content) > 2 {
		return t.replaceLines(from, to, ""), nil
	}
	if key == nil {
		return t.replaceLines(from, to, "{}"+t.lineBreak), nil
	}
	return t.emptyMapping(key, from, to)
}

// emptyMapping returns the document with the only member of a mapping removed; the mapping becomes "{}". key is the key
// of the mapping, and from and to are the member's lines.
func (t *yamlEditor) emptyMapping(key *yaml.Node, from, to int) ([]byte, error) {
	line := t.lines[key.Line-1]
	colon := key.Column - 1 + len(key.Value)
	if key.Style != 0 || key.Line-1 >= from || colon >= len(line) || line[colon] != ':' {
		return nil, errEditByHand
	}
	bare := strings.TrimRight(line[:colon+1]+" {}"+line[colon+1:], "\r\n")
	if to < len(t.lines) || strings.HasSuffix(t.lines[to-1], "\n") {
		bare += t.lineBreak
	}
	between := strings.Join(t.lines[key.Line:from], "")
	return t.replaceLines(key.Line-1, to, bare+between), nil
}

// formatMember returns a member as one or more lines.
func (t *yamlEditor) formatMember(name string, value json.RawMessage, indent string) string {
	var b strings.Builder
	t.writeMember(&b, name, value, indent)
	return b.String()
}

func (t *yamlEditor) writeMember(b *strings.Builder, name string, value json.RawMessage, indent string) {
	b.WriteString(indent + formatYAMLString(name) + ":")
	value = bytes.TrimSpace(value)
	members, err := orderedMembers(value)
	switch {
	case value[0] == '{' && err == nil && len(members) > 0:
		b.WriteString(t.lineBreak)
		for _, m := range members {
			t.writeMember(b, m.name, m.value, indent+t.indentUnit())
		}
		return
	case value[0] == '[' && json.Valid(value):
		var items []json.RawMessage
		_ = json.Unmarshal(value, &items) // it is valid
		if len(items) > 0 {
			b.WriteString(t.lineBreak)
		}
		for _, item := range items {
			b.WriteString(indent + "- " + formatYAMLScalar(item) + t.lineBreak)
		}
		if len(items) > 0 {
			return
		}
	}
	b.WriteString(" " + formatYAMLScalar(value) + t.lineBreak)
}

// formatYAMLScalar returns a JSON value on one line of YAML. Since JSON is valid YAML, only strings are changed.
func formatYAMLScalar(value json.RawMessage) string {
	var s string
	if err := json.Unmarshal(value, &s); err == nil && value[0] == '"' {
		return formatYAMLString(s)
	}
	return string(value)
}

var unquotedWord = lazyregexp.New(`^[A-Za-z_/][A-Za-z0-9_./@-]*$`)

// yaml11Booleans matches words that are booleans in YAML 1.1, which some programs still read.
var yaml11Booleans = lazyregexp.New(`^(?i:y|n|yes|no|on|off)$`)

// formatYAMLString returns a string for YAML, without quotes if it is unambiguous.
func formatYAMLString(s string) string {
	var node yaml.Node
	if unquotedWord().MatchString(s) && !yaml11Booleans().MatchString(s) && yaml.Unmarshal([]byte(s), &node) == nil &&
		len(node.Content) == 1 && node.Content[0].Tag == "!!str" {
		return s
	}
	return string(quoteJSON(s))
}
