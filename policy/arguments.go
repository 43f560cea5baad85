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
	inTexts  int // paths found in texts
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
	// guess is for what few programs take for a path: no allowing rule must name it.
	guess bool
}

func (a *arguments) note(paths ...string) { a.noteAs(false, paths...) }

func (a *arguments) noteAs(guess bool, paths ...string) {
	for _, text := range paths {
		f := file{names: strings.Split(text, "/"), guess: guess}
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

// look notes the paths in the value of a name, and in what is within it, names of arguments among it. The values of a list are those of
// its name. A relative path is one by its name: in {"files": {"a/b": "text"}} "a/b" is.
func (a *arguments) look(name string, v any) error {
	switch v := v.(type) {
	case string:
		return a.lookText(v, namesPath(name), namesCommand(name))
	case []any:
		for _, item := range v {
			if err := a.look(name, item); err != nil {
				return err
			}
		}
	case object:
		named := namesPath(name)
		for _, m := range v {
			if err := a.lookText(m.name, named && strings.ContainsAny(m.name, `/\`), false); err != nil {
				return err
			}
			if err := a.look(m.name, m.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookText notes the paths in a text: all of it where it is one by its name, or by how it begins, and those that stand in it.
func (a *arguments) lookText(text string, named, command bool) error {
	f := pathFinder{text: text, command: command, first: -1, left: maxFoundBytes}
	if named || isFileURI(text) || !command && beginsAsPath(text) && isShortLine(text) {
		if err := a.notePath(text); err != nil {
			return err
		}
		a.noteHomes(strings.TrimSpace(text))
		if !command {
			f.first = len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
		}
	}
	err := f.find()
	for _, one := range f.found {
		a.noteFound(one.Path, one.Certainty)
	}
	if a.inTexts += len(f.found); err == nil && a.inTexts > maxPaths {
		err = errTooLarge
	}
	return err
}

// isShortLine reports whether a text is short enough for a path, and of one line.
func isShortLine(text string) bool {
	if len(text) > maxPath && !climbs(text) {
		return false
	}
	return !strings.ContainsAny(strings.TrimSpace(text), "\r\n")
}

// noteFound notes a path that stands in a text.
func (a *arguments) noteFound(path string, c Certainty) {
	a.noteAs(c == Guess, readings(path, a.home)...)
	a.noteHomes(path)
}

// noteHomes notes where "~user" may lead: where the home directories of others are is a guess.
func (a *arguments) noteHomes(path string) {
	if path == "" || path[0] != '~' || a.home == "" {
		return
	}
	n := userName(path[1:])
	if n == 0 {
		return
	}
	user, rest := path[1:1+n], path[1+n:]
	a.noteAs(true, cleanSlashes(a.home+"/../"+user+rest))
	if user == "root" {
		a.noteAs(true, cleanSlashes("/root"+rest))
	}
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

// namesPath reports whether a name is one of paths, by its last words, however they are put together, and without a number behind them:
// "filePath", "FILE-PATHS", "path_2", "save_as".
func namesPath(name string) bool {
	if !isASCII(name) {
		return isPathName(lastWords(name))
	}
	end := len(name)
	for end > 0 && !(isAlphanumeric(name[end-1]) && name[end-1] > '9') {
		end--
	}
	last, start := lastWord(name[:end])
	before, _ := lastWord(name[:start])
	var room [2 * mostPathWord]byte
	if len(last) > mostPathWord {
		return false
	}
	for i := range len(last) {
		room[i] = small(last[i])
	}
	rest := room[mostPathWord:]
	if len(before) > mostPathWord {
		before = ""
	}
	for i := range len(before) {
		rest[i] = small(before[i])
	}
	return isPathName(string(rest[:len(before)]), string(room[:len(last)]))
}

// lastWords returns the last two words of a name in small letters, without a number behind them.
func lastWords(name string) (before, last string) {
	all := append([]string{"", ""}, words(strings.TrimRightFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }))...)
	return all[len(all)-2], all[len(all)-1]
}

// mostPathWord is more bytes than any word has that is one of paths.
const mostPathWord = 24

// isPathName reports whether two words, the last ones of a name, are those of a path.
func isPathName(before, last string) bool {
	switch last {
	case "name", "names":
		return isFileWord(before)
	case "as":
		return before == "save" || before == "write" || before == "export" || before == "download" || before == "store"
	case "pathname", "filename", "filenames", "dirname", "foldername", "workdir", "cwd", "dest", "destination", "destinations", "source", "sources",
		"src", "dst", "target", "targets", "to", "from", "into", "output", "outputs", "out", "root", "roots", "location", "locations", "saveas":
		return true
	case "profile", "profiles":
		return false
	}
	for _, end := range []string{"path", "paths", "file", "files", "dir", "dirs"} {
		if strings.HasSuffix(last, end) {
			return true
		}
	}
	return isFileWord(last)
}

func isFileWord(word string) bool {
	switch word {
	case "file", "files", "path", "dir", "dirs", "directory", "directories", "folder", "folders", "output", "target":
		return true
	}
	return false
}

// lastWord returns the last of a name's words as it is written there, and where it starts. The name is ASCII.
func lastWord(name string) (word string, start int) {
	end := len(name)
	for end > 0 && !isAlphanumeric(name[end-1]) {
		end--
	}
	start = end
	for start > 0 && isAlphanumeric(name[start-1]) {
		if start--; isCapital(name[start]) && start > 0 && 'a' <= name[start-1] && name[start-1] <= 'z' {
			break
		}
	}
	return name[start:end], start
}

func isCapital(c byte) bool { return 'A' <= c && c <= 'Z' }

func isAlphanumeric(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }

// namesCommand reports whether a name is one of command lines, or of a part of one.
func namesCommand(name string) bool {
	if !isASCII(name) {
		name = foldName(name)
	}
	for _, one := range []string{"command", "commands", "cmd", "cmds", "cmdline", "commandline", "args", "argv", "script", "shell", "bash"} {
		if alike(name, one) {
			return true
		}
	}
	last, _ := lastWord(name)
	return alike(last, "command") || alike(last, "cmd")
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

// IsPath reports whether an argument is a path, by its name.
func IsPath(name string) bool { return namesPath(name) }

// IsCommand reports whether an argument is a command line, by its name.
func IsCommand(name string) bool { return namesCommand(name) }

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
