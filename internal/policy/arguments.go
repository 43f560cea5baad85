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

// Limits on the arguments that rules use. If a call exceeds a limit, a rule that uses the arguments cannot be
// evaluated, and the call is denied.
const (
	maxArguments = 1 << 20
	maxDepth     = 64
	// maxJoined is the maximum number of joined paths. Each relative path is joined to each directory to which the
	// server may join it.
	maxJoined = 1 << 16
)

// callArguments are the arguments of one call. They are parsed when a rule first uses them.
type callArguments struct {
	// params are the params of the request, which contain the arguments; nil if there are none. For a completion
	// request, see completionArguments.
	params       json.RawMessage
	isCompletion bool
	// uri is the URI of a resource, or "" for another item. A file URI is also used as a path.
	uri  string
	home string
	// baseDirs are the directories to which the server may join relative paths, and joinCount is the number of joined
	// paths. hasRelative reports whether a relative path was found.
	baseDirs    []string
	joinCount   int
	hasRelative bool
	inTexts     int // number of paths found in texts
	// cardDefinition is the definition of the called card. Its schema may declare that an argument is only a text.
	cardDefinition json.RawMessage

	read  bool
	value jsonObject
	err   error

	canonicalText  string // see canonicalJSON
	paths          []splitPath
	pathsCollected bool // whether paths is complete

	textParsed     bool // see parsedTextReading
	withParsedText *callArguments
	otherErr       error
}

// A splitPath is a path, split at its slashes. segments are as written, and foldedSegments have folded letter case.
type splitPath struct {
	segments, foldedSegments []string
	// relativeFrom is the relative path as written, if this path was joined to a directory; otherwise nil.
	relativeFrom []string
	// guess reports whether only few programs use the text as a path. A rule that allows can match a call without
	// matching such a path.
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

// object returns the arguments. It returns an error if they are not a JSON object, or if two parsers could read them
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

// completionArguments returns the arguments of a completion request. These are the arguments in its context, and the
// argument to complete with the text typed so far.
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

// canonicalJSON returns the arguments as JSON without white space, with the members of objects sorted by name.
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

// namedPaths returns all paths in the arguments, at any depth, after "." and ".." are resolved.
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

// collectPaths adds the paths in v, the value of the argument name, to a.paths. It searches at any depth, and also in
// member names. The elements of a list are searched with the list's name. A member name may be a relative path too:
// "a/b" in {"files": {"a/b": "text"}}.
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

// lookText adds the paths in a text to a.paths. named reports whether the argument's name means a path. If named is
// true, or if the text begins like a path, the whole text is added as a path. Paths inside the text are added too.
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
	if decoded, ok := decodeSlashes(text); ok && err == nil {
		g := pathFinder{text: decoded, command: command, first: -1, left: maxFoundBytes}
		err = g.find()
		for _, one := range g.found { // some servers decode the argument
			a.noteFound(one.Path, Guess)
		}
		f.found = append(f.found, g.found...)
	}
	if a.inTexts += len(f.found); err == nil && a.inTexts > maxPaths {
		err = errTooLarge
	}
	return err
}

// isShortLine reports whether a text is a single line that is short enough for a path.
func isShortLine(text string) bool {
	if len(text) > maxPath && !hasParentSegment(text) {
		return false
	}
	return !strings.ContainsAny(strings.TrimSpace(text), "\r\n")
}

// noteFound adds a path that was found inside a text.
func (a *callArguments) noteFound(path string, c Certainty) {
	a.noteAs(c == Guess, pathReadings(path, a.home)...)
	a.noteHomes(path)
}

// noteHomes adds the directories that "~user" may mean. They are added as guesses, because the home directories of
// other users are not known.
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

// addPathReadings adds all paths that programs may read from a text, and joins relative paths to baseDirs.
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

// joinClimbing adds paths for a text that only some programs read as absolute: a URI, "~", a drive. Other programs read
// the text as a relative path. If it contains "..", such a path leads to another file, so it is joined to baseDirs.
// Paths in known are already joined and are skipped.
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

// joinToBaseDirs joins a relative path to each of baseDirs and adds the results. from is the path as written.
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

// isPathName reports whether the last words of an argument name mean that the argument is a path, such as "filePath",
// "FILE-PATHS", "path_2" or "save_as". A trailing number is ignored.
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

// lastWords returns the last two words of a name in lower case. A trailing number is ignored.
func lastWords(name string) (before, last string) {
	all := append([]string{"", ""},
		nameWords(strings.TrimRightFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }))...)
	return all[len(all)-2], all[len(all)-1]
}

// maxPathWord limits the length of a word of an argument name. A longer word does not mean a path.
const maxPathWord = 24

// policyIsPathName reports whether an argument name means a path. before and last are the last two words of the name.
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

// lastWord returns the last word of an ASCII name as written, and the index at which the word starts.
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

// isCommandName reports whether an argument name means that the argument is a command line, or a part of a command
// line.
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

// nameWords returns the words of a name in lower case. It splits filePath, file_path and FILE-PATH.
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

// IsPathArgument reports whether the name of an argument means that the argument is a path.
func IsPathArgument(name string) bool { return isPathName(name) }

// IsCommandArgument reports whether the name of an argument means that the argument is a command line.
func IsCommandArgument(name string) bool { return isCommandName(name) }

// A foundArgument is the result of searching for an argument: its value, and whether it exists.
type foundArgument struct {
	v  any
	ok bool
}

// findArgument finds an argument by its name, or by several names joined with dots. Letter case is ignored, see
// foldArgumentName. If a list is on the path, one does not exist, and listed contains the argument for each object of
// the list. findArgument returns an error if two arguments have the name, such as "a.b" and b inside a, because the
// server may use either.
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

// findArgumentWithin is like findArgument, but searches v if it is an object, or each object in v if it is a list.
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

// foldArgumentName folds the letter case of a name, also for letters beyond ASCII.
func foldArgumentName(name string) string {
	if !isASCII(name) {
		name = strings.ToUpper(name)
	}
	return strings.ToLower(name)
}

// unescapeURIPath decodes the percent escapes of a URI path. It returns the text unchanged if an escape is invalid.
func unescapeURIPath(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
