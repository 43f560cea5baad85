package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// A Format is the format of a file.
type Format string

// The formats. JSON may have comments and trailing commas, which most programs allow in their configuration.
const (
	JSON Format = "JSON"
	TOML Format = "TOML"
	YAML Format = "YAML"
)

// FormatOf returns the format of a file by the extension of its path: .toml, .yaml or .yml, otherwise JSON.
func FormatOf(path string) Format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml":
		return TOML
	case ".yaml", ".yml":
		return YAML
	}
	return JSON
}

// maxNesting is the maximum depth of nested values in a file that is edited. The depth is limited because the parsers
// recurse.
const maxNesting = 64

// utf8BOM is the byte order mark that some editors write. An edit preserves it.
const utf8BOM = "\ufeff"

// ElementStep returns a path step that selects an element of a list: the table in which the member named key is the
// string name. The step starts with a NUL character, so it differs from every name in a file.
func ElementStep(key, name string) string { return "\x00" + key + "\x00" + name }

// parseElementStep returns the key and the name of a step that ElementStep returned; ok is false for another step.
func parseElementStep(step string) (key, name string, ok bool) {
	rest, ok := strings.CutPrefix(step, "\x00")
	if !ok {
		return "", "", false
	}
	key, name, ok = strings.Cut(rest, "\x00")
	return key, name, ok
}

// A textEditor is a parsed document in one format. set and remove return the edited text, which may be wrong if the
// layout of the document is unusual. Therefore the caller parses the text again and compares the values.
type textEditor interface {
	// tree returns the document as maps, lists, strings, booleans, nil and json.Number. A value without a JSON
	// equivalent is a nonJSONValue.
	tree() any
	set(path []string, value json.RawMessage) ([]byte, error)
	remove(path []string) ([]byte, error)
}

// A nonJSONValue is a value without a JSON equivalent: a date, an infinity or NaN.
type nonJSONValue struct{ text string }

// parseEditable parses data, which must not begin with a byte order mark.
func parseEditable(format Format, data []byte) (textEditor, error) {
	switch format {
	case JSON:
		return readJSON(data)
	case TOML:
		return readTOML(data)
	case YAML:
		return readYAML(data)
	}
	return nil, fmt.Errorf("unknown format %q", format)
}

// CheckSyntax returns an error with the position of the first syntax error in data; nil if data is valid. Data that
// contains only white space is an empty document.
func CheckSyntax(format Format, data []byte) error {
	_, err := parseEditable(format, bytes.TrimPrefix(data, []byte(utf8BOM)))
	return err
}

// Get returns the value at path as JSON without white space. Members of a JSON file keep their order; members of a TOML
// or YAML file are sorted by name. The second result is false if the value is missing. The error reports data that
// cannot be parsed, or a value without a JSON equivalent.
func Get(format Format, data []byte, path []string) (json.RawMessage, bool, error) {
	t, err := parseEditable(format, bytes.TrimPrefix(data, []byte(utf8BOM)))
	if err != nil {
		return nil, false, err
	}
	if j, ok := t.(*jsonEditor); ok {
		return j.get(path)
	}
	value, ok := findInTree(t.tree(), path)
	if !ok {
		return nil, false, nil
	}
	out, err := marshalJSON(value)
	return out, err == nil, err
}

// Set adds or replaces the value at path, and creates missing parents. If data is empty, Set returns a new document. If
// the document already has an equal value at path, Set changes nothing. The path must not be empty.
//
// The error reports data that cannot be parsed, a parent that is not an object or list, or a duplicate name on the
// path. It also reports a change that cannot be made without changing neighbouring values.
//
// Removing an added value with Remove restores the document byte for byte in two cases. First, Set added one member to
// an object or list that had other members, or that was "{}" or "[]". Second, in TOML, Set added a table, or a key to a
// table that has a header.
func Set(format Format, data []byte, path []string, value json.RawMessage) ([]byte, error) {
	var want any
	if err := decodeJSON(value, &want); err != nil || len(path) == 0 {
		return nil, errors.New("the new value is not JSON, or has no place")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return nil, err
	}
	value = compact.Bytes()
	return editChecked(format, data, nil, func(t textEditor) (any, []byte, error) {
		have, ok := findInTree(t.tree(), path)
		if ok && reflect.DeepEqual(normalizeTree(have), normalizeTree(want)) {
			return nil, nil, nil
		}
		tree, err := putInTree(t.tree(), path, want)
		if err != nil {
			return nil, nil, err
		}
		out, err := t.set(path, value)
		return tree, out, err
	})
}

// Remove removes the value at path together with its name. It does not remove comments outside the value. Parents that
// become empty remain, except in TOML, which can omit them. If there is no value at path, Remove changes nothing. The
// errors are those of Set.
func Remove(format Format, data []byte, path []string) ([]byte, error) {
	return editChecked(format, data, path, func(t textEditor) (any, []byte, error) {
		if _, ok := findInTree(t.tree(), path); !ok || len(path) == 0 {
			return nil, nil, nil
		}
		out, err := t.remove(path)
		return removeFromTree(t.tree(), path), out, err
	})
}

// editChecked parses data, calls change and returns the new text that change returns. change also returns the wanted
// tree; a nil tree means no change. editChecked parses the new text again, and returns an error if the result differs
// from the wanted tree. removed is the path of the value that change removes; nil if it removes no value. After a
// removal from TOML, empty parents of the value may be missing, because TOML can omit them.
func editChecked(format Format, data []byte, removed []string, change func(textEditor) (any, []byte, error)) (
	[]byte, error) {
	body, marked := bytes.CutPrefix(data, []byte(utf8BOM))
	t, err := parseEditable(format, body)
	if err != nil {
		return nil, err
	}
	want, out, err := change(t)
	if err != nil {
		return nil, err
	}
	if want == nil {
		return data, nil
	}
	same := func(a, b any) bool { return reflect.DeepEqual(normalizeTree(a), normalizeTree(b)) }
	if format == TOML && removed != nil {
		same = func(a, b any) bool {
			return reflect.DeepEqual(normalizeTree(pruneEmptyParents(a, removed)),
				normalizeTree(pruneEmptyParents(b, removed)))
		}
	}
	after, err := parseEditable(format, out)
	if err != nil || !same(after.tree(), want) {
		return nil, errors.New(
			"the file is written in a way that cannot be edited without touching other values; edit it by hand")
	}
	if marked {
		out = append([]byte(utf8BOM), out...)
	}
	return out, nil
}

// findInTree returns the value at path; the second result is false if it is missing.
func findInTree(tree any, path []string) (any, bool) {
	for _, step := range path {
		if key, name, ok := parseElementStep(step); ok {
			items, _ := tree.([]any)
			i := elementIndex(items, key, name)
			if i < 0 {
				return nil, false
			}
			tree = items[i]
			continue
		}
		members, _ := tree.(map[string]any)
		value, ok := members[step]
		if !ok {
			return nil, false
		}
		tree = value
	}
	return tree, true
}

func elementIndex(items []any, key, name string) int {
	return slices.IndexFunc(items, func(item any) bool {
		members, _ := item.(map[string]any)
		return members[key] == name
	})
}

// putInTree returns a copy of the tree with value at path. It does not modify the given tree.
func putInTree(tree any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	if key, name, ok := parseElementStep(path[0]); ok {
		items, isList := tree.([]any)
		if !isList && tree != nil {
			return nil, errors.New("a parent of the value is not a list")
		}
		items = slices.Clone(items)
		i := elementIndex(items, key, name)
		if i < 0 {
			i = len(items)
			items = append(items, map[string]any{key: name})
		}
		item, err := putInTree(items[i], path[1:], value)
		if members, _ := item.(map[string]any); err == nil && members[key] != name {
			err = fmt.Errorf("the element does not have its name in %q", key)
		}
		items[i] = item
		return items, err
	}
	members, isTable := tree.(map[string]any)
	if !isTable && tree != nil {
		return nil, fmt.Errorf("the parent of %q is not an object", path[0])
	}
	members = maps.Clone(members)
	if members == nil {
		members = map[string]any{}
	}
	child, err := putInTree(members[path[0]], path[1:], value)
	members[path[0]] = child
	return members, err
}

// removeFromTree returns a copy of the tree without the value at path. The value must exist.
func removeFromTree(tree any, path []string) any {
	if key, name, ok := parseElementStep(path[0]); ok {
		items := slices.Clone(tree.([]any))
		i := elementIndex(items, key, name)
		if len(path) == 1 {
			return slices.Delete(items, i, i+1)
		}
		items[i] = removeFromTree(items[i], path[1:])
		return items
	}
	members := maps.Clone(tree.(map[string]any))
	if len(path) == 1 {
		delete(members, path[0])
	} else {
		members[path[0]] = removeFromTree(members[path[0]], path[1:])
	}
	return members
}

// pruneEmptyParents returns the tree without the parents on path that are empty.
func pruneEmptyParents(tree any, path []string) any {
	for i := len(path) - 1; i > 0; i-- {
		value, _ := findInTree(tree, path[:i])
		members, isTable := value.(map[string]any)
		items, isList := value.([]any)
		if isTable && len(members) == 0 || isList && len(items) == 0 {
			tree = removeFromTree(tree, path[:i])
		}
	}
	return tree
}

// wrapInParents returns value wrapped in the objects and lists that path names.
func wrapInParents(path []string, value json.RawMessage) json.RawMessage {
	for i, step := range slices.Backward(path) {
		key, name, ok := parseElementStep(step)
		switch {
		case !ok:
			value = slices.Concat([]byte("{"), quoteJSON(step), []byte(":"), value, []byte("}"))
		case i == len(path)-1:
			value = slices.Concat([]byte("["), value, []byte("]"))
		default: // the element is new, and needs its name
			value = slices.Concat([]byte("[{"), quoteJSON(key), []byte(":"), quoteJSON(name), []byte(","),
				value[1:], []byte("]"))
		}
	}
	return value
}

// normalizeTree returns the tree in a form that is comparable between formats. All empty lists are equal, and equal
// whole numbers have the same text.
func normalizeTree(tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			out[name] = normalizeTree(value)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, normalizeTree(item))
		}
		return out
	case json.Number:
		return normalizeNumber(v)
	}
	return tree
}

// normalizeNumber returns a whole number without a fraction or exponent, because 1.0 may become 1 when it is read
// again.
func normalizeNumber(n json.Number) any {
	if _, err := n.Int64(); err == nil {
		return n
	}
	f, err := n.Float64()
	if err != nil || f != float64(int64(f)) || f > 1<<53 || f < -1<<53 {
		return n
	}
	return json.Number(fmt.Sprint(int64(f)))
}

func decodeJSON(data []byte, into *any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("there is more than one value")
	}
	return nil
}

func quoteJSON(s string) []byte {
	out, _ := marshalJSON(s) // a string always encodes
	return out
}

// marshalJSON returns the tree as JSON.
func marshalJSON(tree any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(tree); err != nil {
		return nil, errors.New("the value cannot be written as JSON")
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// MarshalJSON returns an error, because a nonJSONValue has no JSON equivalent and must not become another value.
func (f nonJSONValue) MarshalJSON() ([]byte, error) {
	return nil, errors.New("the value has no JSON equivalent")
}

// A splice replaces the bytes from start to end by text.
type splice struct {
	start, end int
	text       string
}

// applySplices returns data with the splices applied. The splices must not overlap.
func applySplices(data []byte, splices ...splice) []byte {
	slices.SortStableFunc(splices, func(a, b splice) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, s := range splices {
		out = append(append(out, data[at:s.start]...), s.text...)
		at = s.end
	}
	return append(out, data[at:]...)
}

// lineEnding returns the line ending that data uses: "\r\n" or "\n".
func lineEnding(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// indentAt returns the white space at the start of the line that contains the offset at.
func indentAt(data []byte, at int) string {
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	line := data[start:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}
