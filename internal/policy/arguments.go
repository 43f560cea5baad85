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

// Limits on the arguments that rules use. A call that exceeds a limit cannot be evaluated and is denied.
const (
	maxArguments = 1 << 20
	maxDepth     = 64
	// maxJoined limits the number of joined paths: each relative path is joined to each directory in which it may
	// start.
	maxJoined = 1 << 16
)

// callArguments are the arguments of one call. They are parsed when the first rule uses them.
type callArguments struct {
	// params are the params of the request, which contain the arguments; nil if there are none. For a completion
	// request, see completionArguments.
	params       json.RawMessage
	isCompletion bool
	// uri is the URI of a resource. A file URI is also used as a path.
	uri  string
	home string
	// baseDirs are the directories in which relative paths may start, and joinCount is the number of joined paths.
	// hasRelative reports whether a relative path was found.
	baseDirs    []string
	joinCount   int
	hasRelative bool
	inTexts     int // number of paths found in texts
	// cardDefinition is the definition of the card. Its schema may declare which arguments are texts.
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

// A splitPath is a path, split at its slashes: as written, and with letter case folded.
type splitPath struct {
	segments, foldedSegments []string
	// relativeFrom is the relative path as written, if this path was joined to a directory; otherwise nil.
	relativeFrom []string
	// guess marks a text that only few programs use as a path. An allowing rule need not match it.
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

// completionArguments returns the arguments of a completion request: those in the context, and the argument to complete
// with the text typed so far.
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

// canonicalJSON returns the arguments as JSON without blanks, with the member names of objects sorted.
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

// namedPaths returns the cleaned paths in the arguments, at any depth.
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

// collectPaths adds the paths in the value of a named argument to a.paths, at any depth, also from member names. The
// elements of a list have the list's name. A member name may be a relative path too: "a/b" in {"files": {"a/b":
// "text"}}.
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

// lookText adds the paths in a text to a.paths. The whole text is a path if named is set or the text begins like a
// path. Paths inside the text are added too.
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

// isShortLine reports whether a text is a single line, and short enough for a path.
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

// noteHomes adds the directories that "~user" may mean. The home directories of other users are guesses.
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

// addPathReadings adds the paths that programs may read from a text.
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
// a relative path, which leads to another file if it contains "..". Paths in known are not joined again.
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

// joinToBaseDirs adds the relative path, joined to each directory in which it may start. from is the path as written.
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

// isPathName reports whether the last words of an argument name mean a path, such as "filePath", "FILE-PATHS", "path_2"
// or "save_as". A trailing number is ignored.
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

// maxPathWord is longer than every word of an argument name for a path.
const maxPathWord = 24

// policyIsPathName reports whether the last two words of an argument name mean a path.
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

// isCommandName reports whether an argument name means a command line, or a part of a command line.
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

// IsPathArgument reports whether the name of an argument means a path.
func IsPathArgument(name string) bool { return isPathName(name) }

// IsCommandArgument reports whether the name of an argument means a command line.
func IsCommandArgument(name string) bool { return isCommandName(name) }

// A foundArgument is the result of searching for an argument: its value, and whether it exists.
type foundArgument struct {
	v  any
	ok bool
}

// findArgument finds an argument by its name, or by several names joined with dots. The case of letters does not
// matter, see foldArgumentName. If a list is on the path, one does not exist, and listed holds the arguments in the
// objects of the list. The error reports two arguments for the same name, such as "a.b" and b inside a: the server may
// use either.
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

// findArgumentWithin searches an object, or each object in a list, like findArgument.
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
