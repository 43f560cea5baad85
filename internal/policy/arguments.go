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

// callArguments are those of one call, read when the first rule looks at them.
type callArguments struct {
	// params are those of the call, in which the arguments are; nil for what has none. Of a completion they are
	// otherwise, see completing.
	params       json.RawMessage
	isCompletion bool
	// uri is that of a resource, which is a path where it is a file's.
	uri  string
	home string
	// baseDirs are where relative paths may start, joined how many were joined to one of them.
	// relative reports that there is one, where it was looked for paths.
	baseDirs    []string
	joinCount   int
	hasRelative bool
	inTexts     int // paths found in texts
	// cardDefinition is the card's, which may say what the arguments are.
	cardDefinition json.RawMessage

	read  bool
	value jsonObject
	err   error

	canonicalText  string // see canonical
	paths          []splitPath
	pathsCollected bool // paths were looked for

	textParsed     bool // see taken
	withParsedText *callArguments
	otherErr       error
}

// A splitPath is a path, cut at its slashes: as it is written, and with its letters folded.
type splitPath struct {
	segments, foldedSegments []string
	// relativeFrom is the relative path as it is written, of one that was joined to a directory; nil otherwise.
	relativeFrom []string
	// guess is for what few programs take for a path: no allowing rule must name it.
	guess bool
}

func (a *callArguments) addPaths(paths ...string) { a.noteAs(false, paths...) }

func (a *callArguments) noteAs(guess bool, paths ...string) {
	for _, text := range paths {
		f := splitPath{segments: strings.Split(text, "/"), guess: guess}
		f.foldedSegments = f.segments
		if lower := foldArgumentName(text); lower != text {
			f.foldedSegments = strings.Split(lower, "/")
		}
		a.paths = append(a.paths, f)
	}
}

// object returns the arguments. It fails for arguments that are not an object, or that two parsers could read
// differently.
func (a *callArguments) object() (jsonObject, error) {
	if !a.read {
		a.read = true
		if a.isCompletion {
			a.value, a.err = completionArguments(a.params)
		} else {
			a.value, a.err = argumentsInParams(a.params)
		}
	}
	return a.value, a.err
}

// argumentsInParams returns the arguments in the params of a call.
func argumentsInParams(params json.RawMessage) (jsonObject, error) {
	v, err := readOneMember(params, "arguments")
	switch v := v.(type) {
	case jsonObject:
		return v, err
	case nil:
		return nil, err
	}
	return nil, cmp.Or(err, errors.New("arguments must be a JSON object"))
}

// completionArguments returns the arguments of a completion request: the argument to complete, as far as it was typed,
// and those given before.
func completionArguments(params json.RawMessage) (jsonObject, error) {
	context, err := readOneMember(params, "context")
	if err != nil {
		return nil, err
	}
	argument, err := readOneMember(params, "argument")
	if err != nil {
		return nil, err
	}
	var given any
	if before, ok := context.(jsonObject); ok {
		given, _ = before.get("arguments")
	}
	all, ok := given.(jsonObject)
	this, isObject := argument.(jsonObject)
	if given != nil && !ok || argument != nil && !isObject {
		return nil, errors.New("arguments must be a JSON object")
	}
	if name, ok := this.get("name"); ok {
		text, ok := name.(string)
		if !ok {
			return nil, errors.New("the name of the argument must be a string")
		}
		value, _ := this.get("value")
		all = append(slices.Clone(all), jsonMember{text, value})
	}
	return all, nil
}

// canonicalJSON writes the arguments as JSON without blanks, with the names of objects sorted.
func (a *callArguments) canonicalJSON() (string, error) {
	value, err := a.object()
	if err != nil || a.canonicalText != "" {
		return a.canonicalText, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(toPlainMaps(value)); err != nil {
		return "", errors.New("the arguments cannot be written")
	}
	a.canonicalText = strings.TrimSuffix(b.String(), "\n")
	return a.canonicalText, nil
}

// namedPaths returns the paths that the arguments name, at any depth, cleaned.
func (a *callArguments) namedPaths() ([]splitPath, error) {
	value, err := a.object()
	if err != nil || a.pathsCollected {
		return a.paths, err
	}
	if err := a.collectPaths("", value); err != nil {
		return nil, err
	}
	if a.uri != "" {
		if err := a.collectPaths("", a.uri); err != nil {
			return nil, err
		}
	}
	a.pathsCollected = true
	return a.paths, nil
}

// collectPaths notes the paths in the value of a name, and in what is within it, names of arguments among it. The
// values of a list are those of its name. A relative path is one by its name: in {"files": {"a/b": "text"}} "a/b" is.
func (a *callArguments) collectPaths(name string, v any) error {
	switch v := v.(type) {
	case string:
		return a.lookText(v, isPathName(name), isCommandName(name))
	case []any:
		for _, item := range v {
			if err := a.collectPaths(name, item); err != nil {
				return err
			}
		}
	case jsonObject:
		named := isPathName(name)
		for _, m := range v {
			if err := a.lookText(m.name, named && strings.ContainsAny(m.name, `/\`), false); err != nil {
				return err
			}
			if err := a.collectPaths(m.name, m.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookText notes the paths in a text: all of it where it is one by its name, or by how it begins, and those that stand
// in it.
func (a *callArguments) lookText(text string, named, command bool) error {
	f := pathFinder{text: text, command: command, first: -1, left: maxFoundBytes}
	if named || isFileURI(text) || !command && beginsAsPath(text) && isShortLine(text) {
		if err := a.addPathReadings(text); err != nil {
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
	if len(text) > maxPath && !hasParentSegment(text) {
		return false
	}
	return !strings.ContainsAny(strings.TrimSpace(text), "\r\n")
}

// noteFound notes a path that stands in a text.
func (a *callArguments) noteFound(path string, c Certainty) {
	a.noteAs(c == Guess, pathReadings(path, a.home)...)
	a.noteHomes(path)
}

// noteHomes notes where "~user" may lead: where the home directories of others are is a guess.
func (a *callArguments) noteHomes(path string) {
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

// addPathReadings notes the paths that programs may take a text for.
func (a *callArguments) addPathReadings(text string) error {
	paths := pathReadings(text, a.home)
	if slices.ContainsFunc(paths, func(path string) bool { return strings.Contains(path, "\x00") }) {
		return errors.New("a path has a NUL character")
	}
	first := len(a.paths)
	a.addPaths(paths...)
	for i, relative := range paths {
		if !strings.HasPrefix(relative, "/") {
			if err := a.joinToBaseDirs(relative, a.paths[first+i].segments); err != nil {
				return err
			}
		}
	}
	return a.joinClimbing(text, paths)
}

// joinClimbing is for a text that is absolute to some: a URI, "~", a drive. Others take it for a relative path, and
// where ".." is in it that leads elsewhere. The paths that are known are not joined again.
func (a *callArguments) joinClimbing(text string, known []string) error {
	if !hasParentSegment(text) {
		return nil
	}
	for _, as := range []string{strings.ReplaceAll(text, `\`, "/"), text} {
		if !strings.HasPrefix(as, "/") && !slices.Contains(known, path.Clean(as)) {
			if err := a.joinToBaseDirs(as, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// joinToBaseDirs notes where a relative path leads from each directory that it may start at.
func (a *callArguments) joinToBaseDirs(relative string, from []string) error {
	a.hasRelative = true
	for _, dir := range a.baseDirs {
		if a.joinCount++; a.joinCount > maxJoined {
			return errors.New("there are too many relative paths")
		}
		a.addPaths(path.Clean(cleanPath(dir, a.home) + "/" + relative))
		a.paths[len(a.paths)-1].relativeFrom = from
	}
	return nil
}

// isPathName reports whether a name is one of paths, by its last words, however they are put together, and without a
// number behind them: "filePath", "FILE-PATHS", "path_2", "save_as".
func isPathName(name string) bool {
	if !isASCII(name) {
		return policyIsPathName(lastWords(name))
	}
	end := len(name)
	for end > 0 && !(isAlphanumericASCII(name[end-1]) && name[end-1] > '9') {
		end--
	}
	last, start := lastWord(name[:end])
	before, _ := lastWord(name[:start])
	var room [2 * maxPathWord]byte
	if len(last) > maxPathWord {
		return false
	}
	for i := range len(last) {
		room[i] = lowerASCII(last[i])
	}
	rest := room[maxPathWord:]
	if len(before) > maxPathWord {
		before = ""
	}
	for i := range len(before) {
		rest[i] = lowerASCII(before[i])
	}
	return policyIsPathName(string(rest[:len(before)]), string(room[:len(last)]))
}

// lastWords returns the last two words of a name in small letters, without a number behind them.
func lastWords(name string) (before, last string) {
	all := append([]string{"", ""},
		nameWords(strings.TrimRightFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }))...)
	return all[len(all)-2], all[len(all)-1]
}

// maxPathWord is more bytes than any word has that is one of paths.
const maxPathWord = 24

// policyIsPathName reports whether two words, the last ones of a name, are those of a path.
func policyIsPathName(before, last string) bool {
	switch last {
	case "name", "names":
		return isFileWord(before)
	case "as":
		return before == "save" || before == "write" || before == "export" || before == "download" || before == "store"
	case "pathname", "filename", "filenames", "dirname", "foldername", "workdir", "cwd", "dest", "destination",
		"destinations", "source", "sources",
		"src", "dst", "target", "targets", "to", "from", "into", "output", "outputs", "out", "root", "roots",
		"location", "locations", "saveas":
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
	for end > 0 && !isAlphanumericASCII(name[end-1]) {
		end--
	}
	start = end
	for start > 0 && isAlphanumericASCII(name[start-1]) {
		if start--; isUpperASCII(name[start]) && start > 0 && 'a' <= name[start-1] && name[start-1] <= 'z' {
			break
		}
	}
	return name[start:end], start
}

func isUpperASCII(c byte) bool { return 'A' <= c && c <= 'Z' }

func isAlphanumericASCII(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }

// isCommandName reports whether a name is one of command lines, or of a part of one.
func isCommandName(name string) bool {
	if !isASCII(name) {
		name = foldArgumentName(name)
	}
	for _, one := range []string{"command", "commands", "cmd", "cmds", "cmdline", "commandline", "args", "argv",
		"script", "shell", "bash"} {
		if equalFoldASCII(name, one) {
			return true
		}
	}
	last, _ := lastWord(name)
	return equalFoldASCII(last, "command") || equalFoldASCII(last, "cmd")
}

// nameWords are those of a name, in small letters: filePath, file_path, FILE-PATH.
func nameWords(name string) []string {
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
	return strings.Fields(foldArgumentName(b.String()))
}

// IsPathArgument reports whether an argument is a path, by its name.
func IsPathArgument(name string) bool { return isPathName(name) }

// IsCommandArgument reports whether an argument is a command line, by its name.
func IsCommandArgument(name string) bool { return isCommandName(name) }

// A foundArgument is an argument that was looked for: ok says that it is there.
type foundArgument struct {
	v  any
	ok bool
}

// findArgument finds an argument by its name, or by names with dots between them. Case does not matter, see readValue.
// Where a list is on the way, it is not there, and listed are what the objects of the list have. The error is for a
// name that two arguments have, one of them by dots: nobody knows which the server looks at.
func findArgument(in jsonObject, name string) (one foundArgument, listed []foundArgument, err error) {
	same := foldArgumentName(name)
	first, rest, nested := strings.Cut(same, ".")
	times := 0
	for _, m := range in {
		own := foldArgumentName(m.name)
		if own == same {
			one, times = foundArgument{m.value, true}, times+1
		}
		if !nested || own != first {
			continue
		}
		inner, more, err := findArgumentWithin(m.value, rest)
		if err != nil {
			return foundArgument{}, nil, err
		}
		if inner.ok {
			one = inner
		}
		if inner.ok || slices.ContainsFunc(more, func(f foundArgument) bool { return f.ok }) {
			times++
		}
		listed = append(listed, more...)
	}
	if times > 1 {
		return foundArgument{}, nil, errors.New("an argument is repeated")
	}
	return one, listed, nil
}

// findArgumentWithin looks into what may be an object, or a list of them.
func findArgumentWithin(v any, name string) (one foundArgument, listed []foundArgument, err error) {
	switch v := v.(type) {
	case jsonObject:
		return findArgument(v, name)
	case []any:
		for _, item := range v {
			inner, more, err := findArgumentWithin(item, name)
			if err != nil {
				return foundArgument{}, nil, err
			}
			if _, is := item.(jsonObject); is {
				listed = append(listed, inner)
			}
			listed = append(listed, more...)
		}
	}
	return foundArgument{}, listed, nil
}

// foldArgumentName makes names of arguments alike that differ in case only, also for readers who know more letters
// than ASCII.
func foldArgumentName(name string) string {
	if !isASCII(name) {
		name = strings.ToUpper(name)
	}
	return strings.ToLower(name)
}

// unescapeURIPath takes the percent signs out of a URI's path; one that is written wrongly stays as it is.
func unescapeURIPath(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
