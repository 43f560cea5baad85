package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Bounds of the arguments that rules look at. A call with more is one that cannot be judged.
const (
	maxArguments = 1 << 20
	maxDepth     = 64
)

// arguments are those of one call, read when the first rule looks at them.
type arguments struct {
	// params are those of the call, in which the arguments are; nil for what has none.
	params json.RawMessage
	// uri is that of a resource, which is a path where it is a file's.
	uri  string
	home string

	read  bool
	value map[string]any
	err   error

	text  string // see canonical
	paths []string
	found bool // paths were looked for
}

// object gives the arguments. The error is for those that two readers could read in two ways, or that are no object.
func (a *arguments) object() (map[string]any, error) {
	if !a.read {
		a.read = true
		a.value, a.err = within(a.params)
	}
	return a.value, a.err
}

// within gives the arguments in the params of a call.
func within(params json.RawMessage) (map[string]any, error) {
	object, err := readObject(params)
	if err != nil {
		return nil, err
	}
	for name, v := range object {
		if foldName(name) != "arguments" || v == nil {
			continue
		}
		if arguments, ok := v.(map[string]any); ok {
			return arguments, nil
		}
		return nil, errors.New("the arguments are no object")
	}
	return map[string]any{}, nil
}

// canonical writes the arguments as JSON without blanks, with the names of objects sorted.
func (a *arguments) canonical() (string, error) {
	value, err := a.object()
	if err != nil || a.text != "" {
		return a.text, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return "", errors.New("the arguments cannot be written")
	}
	a.text = strings.TrimSuffix(b.String(), "\n")
	return a.text, nil
}

// IsPath says whether an argument is a path, by its name.
func IsPath(name string) bool {
	switch foldName(name) {
	case "path", "paths", "file", "files", "file_path", "filepath", "filename", "directory", "dir", "dest", "destination", "source", "cwd", "repo_path":
		return true
	}
	return false
}

// IsCommand says whether an argument is a command line, by its name.
func IsCommand(name string) bool {
	switch foldName(name) {
	case "command", "cmd":
		return true
	}
	return false
}

// files gives the paths that the arguments name, cleaned.
func (a *arguments) files() ([]string, error) {
	value, err := a.object()
	if err != nil || a.found {
		return a.paths, err
	}
	a.found = true
	for name, v := range value {
		switch {
		case IsPath(name):
			each(v, func(text string) { a.paths = append(a.paths, cleanPath(text, a.home)) })
		case IsCommand(name):
			each(v, func(text string) { a.paths = append(a.paths, pathsIn(text, a.home)...) })
		}
	}
	if _, ok := cutPrefixFold(a.uri, "file://"); ok {
		a.paths = append(a.paths, cleanPath(a.uri, a.home))
	}
	return a.paths, nil
}

// each calls f with a text, or with every text of a list.
func each(v any, f func(text string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, item := range v {
			each(item, f)
		}
	}
}

// pathsIn gives what PathsIn does, cleaned.
func pathsIn(command, home string) (paths []string) {
	for _, path := range PathsIn(command) {
		paths = append(paths, cleanPath(path, home))
	}
	return paths
}

// PathsIn gives the absolute paths that a command line names, as they are written, wherever in a word they begin: "--file=/etc/x".
func PathsIn(command string) (paths []string) {
	words := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&<>()=,", r) })
	for _, word := range words {
		if strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~") || strings.HasPrefix(strings.ToLower(word), "file://") {
			paths = append(paths, word)
		} else if strings.HasPrefix(word, "-") {
			if i := strings.IndexByte(word, '/'); i > 0 { // "-I/usr"
				paths = append(paths, word[i:])
			}
		}
	}
	return paths
}

// readObject reads an object. None at all is an empty one.
func readObject(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return map[string]any{}, nil
	}
	if len(raw) > maxArguments {
		return nil, errors.New("the arguments are too large to be judged")
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("the arguments are no UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := readValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after the arguments")
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the arguments are no object")
	}
	return object, nil
}

// readValue reads one value, and refuses an object in which a name stands twice: whoever carries out the call might take
// the one that no rule looked at. Names that differ in case only count as one, as they do to many readers.
func readValue(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, errors.New("the arguments are no JSON")
	}
	open, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth >= maxDepth {
		return nil, errors.New("the arguments nest too deeply to be judged")
	}
	list, object := []any{}, map[string]any{}
	folds := map[string]bool{}
	for dec.More() {
		name := ""
		if open == '{' {
			token, err := dec.Token()
			if err != nil {
				return nil, errors.New("the arguments are no JSON")
			}
			name, _ = token.(string)
			same := foldName(name)
			if folds[same] {
				return nil, errors.New("an argument is there twice")
			}
			folds[same] = true
		}
		v, err := readValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		if open == '{' {
			object[name] = v
		} else {
			list = append(list, v)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, errors.New("the arguments are no JSON")
	}
	if open == '{' {
		return object, nil
	}
	return list, nil
}

// lookup finds an argument by its name, or by names with dots between them. Case does not matter, see
// readValue.
func lookup(object map[string]any, name string) (any, bool) {
	if v, ok := object[name]; ok {
		return v, true
	}
	first, rest, nested := strings.Cut(name, ".")
	for own, v := range object {
		if strings.EqualFold(own, name) {
			return v, true
		}
		if inner, ok := v.(map[string]any); nested && ok && strings.EqualFold(own, first) {
			return lookup(inner, rest)
		}
	}
	return nil, false
}

// foldName makes names of arguments alike that differ in case only, also for readers who know more letters than ASCII.
func foldName(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// unescaped takes the percent signs out of a URI's path; one that is written wrongly stays as it is.
func unescaped(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
