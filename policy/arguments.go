package policy

import (
	"bytes"
	"encoding/json"
	"errors"
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
	paths []file
	found bool // paths were looked for
}

// A file is a path, cut at its slashes: as it is written, and in lower case.
type file struct{ names, folded []string }

func (a *arguments) addPath(text string) {
	f := file{names: strings.Split(text, "/")}
	f.folded = f.names
	if lower := strings.ToLower(text); lower != text {
		f.folded = strings.Split(lower, "/")
	}
	a.paths = append(a.paths, f)
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
	object, err := readObject(params, "arguments")
	if err != nil {
		return nil, err
	}
	for _, v := range object {
		if v == nil {
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

// files gives the paths that the arguments name, cleaned.
func (a *arguments) files() ([]file, error) {
	value, err := a.object()
	if err != nil || a.found {
		return a.paths, err
	}
	a.found = true
	for name, v := range value {
		switch foldName(name) {
		case "path", "paths", "file", "files", "file_path", "filepath", "filename", "directory", "dir", "dest", "destination", "source", "cwd", "repo_path":
			each(v, func(text string) { a.addPath(cleanPath(text, a.home)) })
		case "command", "cmd":
			each(v, func(text string) {
				for _, path := range pathsIn(text, a.home) {
					a.addPath(path)
				}
			})
		}
	}
	if _, ok := cutPrefixFold(a.uri, "file://"); ok {
		a.addPath(cleanPath(a.uri, a.home))
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

// pathsIn gives the absolute paths that a command line names, wherever in a word they begin: "--file=/etc/x".
func pathsIn(command, home string) (paths []string) {
	words := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&<>()=,", r) })
	for _, word := range words {
		if strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~") || strings.HasPrefix(strings.ToLower(word), "file://") {
			paths = append(paths, cleanPath(word, home))
		} else if strings.HasPrefix(word, "-") {
			if i := strings.IndexByte(word, '/'); i > 0 { // "-I/usr"
				paths = append(paths, cleanPath(word[i:], home))
			}
		}
	}
	return paths
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
func foldName(name string) string {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return strings.ToLower(strings.ToUpper(name))
		}
	}
	return strings.ToLower(name)
}

// unescaped takes the percent signs out of a URI's path; one that is written wrongly stays as it is.
func unescaped(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
