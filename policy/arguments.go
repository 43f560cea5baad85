package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
)

// Bounds of the arguments that rules look at. A call with more is one that cannot be judged.
const (
	maxArguments = 1 << 20
	maxDepth     = 64
	// maxJoined bounds the relative paths, each as often as there are directories that it may start at.
	maxJoined = 1 << 16
)

// arguments are those of one call, read when the first rule looks at them.
type arguments struct {
	// params are those of the call, in which the arguments are; nil for what has none. Of a completion they are otherwise, see completing.
	params    json.RawMessage
	completes bool
	// uri is that of a resource, which is a path where it is a file's.
	uri  string
	home string
	// dirs are where relative paths may start, joined how many were joined to one of them.
	// relative says that there is one, where it was looked for paths.
	dirs     []string
	joined   int
	relative bool
	// definition is the card's, which may say what the arguments are.
	definition json.RawMessage

	read  bool
	value object
	err   error

	text  string // see canonical
	paths []file
	found bool // paths were looked for

	looked   bool // see taken
	other    *arguments
	otherErr error
}

// A file is a path, cut at its slashes: as it is written, and with its letters folded.
type file struct {
	names, folded []string
	// from is the relative path as it is written, of one that was joined to a directory; nil otherwise.
	from []string
}

func (a *arguments) note(paths ...string) {
	for _, text := range paths {
		f := file{names: strings.Split(text, "/")}
		f.folded = f.names
		if lower := foldName(text); lower != text {
			f.folded = strings.Split(lower, "/")
		}
		a.paths = append(a.paths, f)
	}
}

// object gives the arguments. The error is for those that two readers could read in two ways, or that are no object.
func (a *arguments) object() (object, error) {
	if !a.read {
		a.read = true
		if a.completes {
			a.value, a.err = completing(a.params)
		} else {
			a.value, a.err = within(a.params)
		}
	}
	return a.value, a.err
}

// within gives the arguments in the params of a call.
func within(params json.RawMessage) (object, error) {
	v, err := readMember(params, "arguments")
	switch v := v.(type) {
	case object:
		return v, err
	case nil:
		return nil, err
	}
	return nil, cmp.Or(err, errors.New("the arguments are no object"))
}

// completing gives the arguments of a completion: that which is to be completed, as far as it was written, and those that were given
// before.
func completing(params json.RawMessage) (object, error) {
	context, err := readMember(params, "context")
	if err != nil {
		return nil, err
	}
	argument, err := readMember(params, "argument")
	if err != nil {
		return nil, err
	}
	var given any
	if before, ok := context.(object); ok {
		given, _ = before.get("arguments")
	}
	all, ok := given.(object)
	this, isObject := argument.(object)
	if given != nil && !ok || argument != nil && !isObject {
		return nil, errors.New("the arguments are no object")
	}
	if name, ok := this.get("name"); ok {
		text, ok := name.(string)
		if !ok {
			return nil, errors.New("the name of the argument is no text")
		}
		value, _ := this.get("value")
		all = append(slices.Clone(all), member{text, value})
	}
	return all, nil
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
	if err := enc.Encode(bare(value)); err != nil {
		return "", errors.New("the arguments cannot be written")
	}
	a.text = strings.TrimSuffix(b.String(), "\n")
	return a.text, nil
}

// files gives the paths that the arguments name, at any depth, cleaned.
func (a *arguments) files() ([]file, error) {
	value, err := a.object()
	if err != nil || a.found {
		return a.paths, err
	}
	if err := a.look("", value); err != nil {
		return nil, err
	}
	if a.uri != "" {
		if err := a.look("", a.uri); err != nil {
			return nil, err
		}
	}
	a.found = true
	return a.paths, nil
}

// look notes the paths in the value of a name, and in what is within it: those of a list are those of its name, and so are the names
// of an object that have a slash: {"files": {"/a/b": "text"}}.
func (a *arguments) look(name string, v any) error {
	switch v := v.(type) {
	case string:
		switch {
		case namesPath(name), isFileURI(v):
			return a.notePath(v)
		case namesCommand(name):
			a.note(pathsIn(v, a.home)...)
		}
	case []any:
		for _, item := range v {
			if err := a.look(name, item); err != nil {
				return err
			}
		}
	case object:
		named := namesPath(name)
		for _, m := range v {
			if named && strings.ContainsAny(m.name, `/\`) {
				if err := a.notePath(m.name); err != nil {
					return err
				}
			}
			if err := a.look(m.name, m.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// notePath notes the paths that programs may take a text for.
func (a *arguments) notePath(text string) error {
	paths := readings(text, a.home)
	if slices.ContainsFunc(paths, func(path string) bool { return strings.Contains(path, "\x00") }) {
		return errors.New("a path has a NUL character")
	}
	first := len(a.paths)
	a.note(paths...)
	for i, relative := range paths {
		if !strings.HasPrefix(relative, "/") {
			if err := a.join(relative, a.paths[first+i].names); err != nil {
				return err
			}
		}
	}
	return a.joinClimbing(text, paths)
}

// joinClimbing is for a text that is absolute to some: a URI, "~", a drive. Others take it for a relative path, and where ".." is in it that
// leads elsewhere. The paths that are known are not joined again.
func (a *arguments) joinClimbing(text string, known []string) error {
	if !climbs(text) {
		return nil
	}
	for _, as := range []string{strings.ReplaceAll(text, `\`, "/"), text} {
		if !strings.HasPrefix(as, "/") && !slices.Contains(known, path.Clean(as)) {
			if err := a.join(as, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// join notes where a relative path leads from each directory that it may start at.
func (a *arguments) join(relative string, from []string) error {
	a.relative = true
	for _, dir := range a.dirs {
		if a.joined++; a.joined > maxJoined {
			return errors.New("there are too many relative paths")
		}
		a.note(path.Clean(cleanPath(dir, a.home) + "/" + relative))
		a.paths[len(a.paths)-1].from = from
	}
	return nil
}

// namesPath says whether a name is one of paths: its last word says so, however its words are put together.
func namesPath(name string) bool {
	if !isASCII(name) {
		last := ""
		for _, word := range words(name) {
			last = word
		}
		return isPathWord(last)
	}
	last := lastWord(name)
	var room [mostPathWord]byte
	if len(last) > len(room) {
		return false
	}
	for i := range len(last) {
		room[i] = small(last[i])
	}
	return isPathWord(string(room[:len(last)]))
}

// mostPathWord is more bytes than any word has that is one of paths.
const mostPathWord = 16

func isPathWord(word string) bool {
	switch word {
	case "path", "paths", "pathname", "file", "files", "filepath", "filepaths", "filename", "filenames", "directory", "directories", "dir", "dirs",
		"folder", "folders", "workdir", "cwd", "dest", "destination", "source", "src", "dst":
		return true
	}
	return false
}

// lastWord gives the last of a name's words as it is written there. The name is ASCII.
func lastWord(name string) string {
	end := len(name)
	for end > 0 && !isAlphanumeric(name[end-1]) {
		end--
	}
	start := end
	for start > 0 && isAlphanumeric(name[start-1]) {
		if start--; isCapital(name[start]) && start > 0 && 'a' <= name[start-1] && name[start-1] <= 'z' {
			break
		}
	}
	return name[start:end]
}

func isCapital(c byte) bool { return 'A' <= c && c <= 'Z' }

func isAlphanumeric(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }

func namesCommand(name string) bool {
	if !isASCII(name) {
		name = foldName(name)
	}
	return alike(name, "command") || alike(name, "cmd")
}

// words are those of a name, in small letters: filePath, file_path, FILE-PATH.
func words(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			b.WriteByte(' ')
		}
		if lower = unicode.IsLower(r); !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return strings.Fields(foldName(b.String()))
}

// IsPath says whether an argument is a path, by its name.
func IsPath(name string) bool { return namesPath(name) }

// IsCommand says whether an argument is a command line, by its name.
func IsCommand(name string) bool { return namesCommand(name) }

// pathsIn gives what programs may take the paths of a command line for, cleaned.
func pathsIn(command, home string) (paths []string) {
	for _, path := range PathsIn(command) {
		paths = append(paths, readings(path, home)...)
	}
	return paths
}

// PathsIn gives the absolute paths that a command line names, as they are written, wherever in a word they begin: "--file=/etc/x".
func PathsIn(command string) (paths []string) {
	words := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&<>()=,\x00", r) })
	for _, word := range words {
		if strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~") || isFileURI(word) {
			paths = append(paths, word)
		} else if strings.HasPrefix(word, "-") {
			if i := strings.IndexByte(word, '/'); i > 0 { // "-I/usr"
				paths = append(paths, word[i:])
			}
		}
	}
	return paths
}

// A found is an argument that was looked for: ok says that it is there.
type found struct {
	v  any
	ok bool
}

// lookup finds an argument by its name, or by names with dots between them. Case does not matter, see readValue. Where a list is on the
// way, it is not there, and listed are what the objects of the list have. The error is for a name that two arguments have, one of them by
// dots: nobody knows which the server looks at.
func lookup(in object, name string) (one found, listed []found, err error) {
	same := foldName(name)
	first, rest, nested := strings.Cut(same, ".")
	times := 0
	for _, m := range in {
		own := foldName(m.name)
		if own == same {
			one, times = found{m.value, true}, times+1
		}
		if !nested || own != first {
			continue
		}
		inner, more, err := lookupWithin(m.value, rest)
		if err != nil {
			return found{}, nil, err
		}
		if inner.ok {
			one = inner
		}
		if inner.ok || slices.ContainsFunc(more, func(f found) bool { return f.ok }) {
			times++
		}
		listed = append(listed, more...)
	}
	if times > 1 {
		return found{}, nil, errors.New("an argument is there twice")
	}
	return one, listed, nil
}

// lookupWithin looks into what may be an object, or a list of them.
func lookupWithin(v any, name string) (one found, listed []found, err error) {
	switch v := v.(type) {
	case object:
		return lookup(v, name)
	case []any:
		for _, item := range v {
			inner, more, err := lookupWithin(item, name)
			if err != nil {
				return found{}, nil, err
			}
			if _, is := item.(object); is {
				listed = append(listed, inner)
			}
			listed = append(listed, more...)
		}
	}
	return found{}, listed, nil
}

// foldName makes names of arguments alike that differ in case only, also for readers who know more letters than ASCII.
func foldName(name string) string {
	if !isASCII(name) {
		name = strings.ToUpper(name)
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
