package policy

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on the paths that are found in texts.
const (
	// maxPath is the maximum size of a path in Linux. A longer part of a text is ignored unless it contains "..", which
	// could shorten the path.
	maxPath = 4096
	// maxFoundBytes is the maximum total size of all paths in one text. It is needed because overlapping parts of one
	// word may all be paths.
	maxFoundBytes = 8 << 20
	maxPaths      = 1 << 16
	maxSchemeName = 32
)

var errTooLarge = errors.New("a text is too large to look for paths in it")

// A Certainty states how likely it is that programs read a part of a text as a path. Plain is the most likely.
type Certainty uint8

const (
	// Plain is a path that ends before the first character that ends a path in a common language, such as ";" in a
	// shell.
	Plain Certainty = iota
	// Extended is a Plain path together with the text after it, up to the next blank or quotation mark.
	Extended
	// Guess is a part of a text that only few programs read as a path. Rules that allow ignore it.
	Guess
)

// A Found is a path in a text, as written. Only a home variable at its beginning, such as "$HOME", is replaced by "~".
type Found struct {
	Path string
	Certainty
}

// FindPaths returns the paths in a text that mean the same file in every working directory. These are absolute paths,
// paths that start at a home directory ("~/", "~user/", "$HOME/"), at a Windows drive or at a host ("\\host\share"),
// and file URIs. command reports whether the text is a command line, in which more parts are Plain than in other texts.
// FindPaths returns an error if the text contains too many paths.
func FindPaths(text string, command bool) ([]Found, error) {
	f := pathFinder{text: text, command: command, first: -1, left: maxFoundBytes}
	err := f.find()
	return f.found, err
}

// CommandPaths returns the paths of a command line whose certainty is Plain, see FindPaths.
func CommandPaths(command string) (paths []string) {
	found, _ := FindPaths(command, true) // paths beyond the limit are not needed
	for _, one := range found {
		if one.Certainty == Plain {
			paths = append(paths, one.Path)
		}
	}
	return paths
}

// A pathFinder searches one text for paths, from its beginning to its end.
type pathFinder struct {
	text    string
	command bool
	// first is the index at which a path begins that the caller has already added, such as the whole text; negative if
	// there is none.
	first int

	i int
	// variable is the index after the last variable name before i.
	variable int
	// short and long are the indices at which the current path ends according to endsShort and endsLong. dots is the
	// index of the last ".." before long.
	short, long, dots int
	left              int
	found             []Found
}

// mayBegin are the characters that can begin a path.
var mayBegin = func() (all [256]bool) {
	for _, c := range `/\~$%:` {
		all[c] = true
	}
	return all
}()

func (f *pathFinder) find() error {
	for f.i < len(f.text) {
		if !mayBegin[f.text[f.i]] {
			f.i++
			continue
		}
		switch f.text[f.i] {
		case '/':
			f.slash()
		case '\\':
			f.backslash()
		case '~':
			f.tilde()
		case '$', '%':
			f.dollar()
		case ':':
			f.colon()
		}
		if f.left < 0 || len(f.found) > maxPaths {
			return errTooLarge
		}
	}
	return nil
}

// slash handles a "/". It begins a path unless it is inside another path or between words.
func (f *pathFinder) slash() {
	start := f.i
	f.i += countOf(f.text[start:], '/')
	begins, c := f.begins(start)
	if !begins || !f.command && f.isMarkup(start) {
		return
	}
	if f.ends(f.i) && !f.isRoot(start) { // "yes / no", "// a comment", "<br />"
		return
	}
	f.emit(part{start, start, f.i}, c)
}

// isMarkup reports whether the "/" at start belongs to a tag such as "</p>", or begins a comment such as "/* why */".
func (f *pathFinder) isMarkup(start int) bool {
	rest := f.text[f.i:]
	if start > 0 && f.text[start-1] == '<' {
		name := strings.TrimLeftFunc(rest, func(r rune) bool {
			return r < utf8.RuneSelf &&
				isAlphanumericASCII(byte(r)) || r == ':' || r == '-'
		})
		return strings.HasPrefix(strings.TrimLeft(name, " "), ">")
	}
	stars := countOf(rest, '*')
	return stars > 0 && (stars == len(rest) || isBlank(rest[stars]))
}

// isRoot reports whether slashes without a name mean the root directory. That is the case in a command line, in
// quotation marks, or as a value.
func (f *pathFinder) isRoot(start int) bool {
	if f.command {
		return true
	}
	if start == 0 {
		return false
	}
	before := f.text[start-1]
	if isQuote(before) {
		return f.i < len(f.text) && f.text[f.i] == before
	}
	// "--root=/" has such a value, "x =~ y" does not.
	return (before == '=' || before == ':') && start > 1 && isAlphanumericASCII(f.text[start-2])
}

// backslash handles a "\". Two or more backslashes begin a path on another host.
func (f *pathFinder) backslash() {
	start := f.i
	n := countOf(f.text[start:], '\\')
	f.i += n
	if begins, c := f.begins(start); n > 1 && begins {
		end := f.i
		for end < len(f.text) && (isAlphanumericASCII(f.text[end]) || strings.IndexByte("._-$?", f.text[end]) >= 0) {
			end++
		}
		if end == f.i || end == len(f.text) || f.text[end] != '\\' && f.text[end] != '/' {
			return
		}
		host := end
		for end < len(f.text) && (f.text[end] == '\\' || f.text[end] == '/') {
			end++
		}
		if !f.ends(end) && (n > 2 || end == host+1) { // "\\n\\t" is frequent in source code
			f.emit(part{start, start, end}, c)
			f.i = end
		}
	}
}

// tilde handles a "~". It begins a path if "/" follows, or a user name and then "/".
func (f *pathFinder) tilde() {
	start := f.i
	f.i++
	begins, c := f.begins(start)
	if !begins {
		return
	}
	end := start + 1 + userName(f.text[start+1:])
	switch {
	case end < len(f.text) && (f.text[end] == '/' || f.text[end] == '\\'):
		f.i = end + 1
		f.emit(part{start, start, f.i}, c)
	case end == start+1 && f.ends(end) && f.isRoot(start):
		f.emit(part{start, start, end}, c)
	}
}

// userName returns the length of the user name at the beginning of a text.
func userName(text string) int {
	n := 0
	for n < len(text) && (isAlphanumericASCII(text[n]) && (n > 0 || text[n] > '9') || strings.IndexByte("_+-",
		text[n]) >= 0 || n > 0 && text[n] == '.') {
		n++
	}
	return n
}

// dollar handles a "$" or a "%", which may begin a variable.
func (f *pathFinder) dollar() {
	start := f.i
	if n := homeVariable(f.text[start:]); n > 0 {
		f.i += n
		f.emit(part{start, f.i, f.i}, Plain)
		f.i += countOf(f.text[f.i:], '/')
		return
	}
	f.i++
	if f.text[start] == '$' {
		end := f.i
		for end < len(f.text) && (isAlphanumericASCII(f.text[end]) || f.text[end] == '_') {
			end++
		}
		if end > f.i {
			f.variable = end
		}
	}
}

// homeVariable returns the length of the variable for the home directory at the beginning of a text. It returns 0 if
// the text does not begin with such a variable.
func homeVariable(text string) int {
	if text == "" || text[0] != '$' && text[0] != '%' {
		return 0
	}
	n := 0
	switch {
	case strings.HasPrefix(text, "${HOME:"):
		n = strings.IndexByte(text, '}') + 1
	default:
		for _, name := range []string{"${HOME}", "$HOME", "%USERPROFILE%", "%HOME%", "$env:USERPROFILE", "$env:HOME",
			"${env:HOME}", "${env:USERPROFILE}"} {
			if _, ok := cutPrefixFold(text, name); ok {
				n = len(name)
				break
			}
		}
	}
	if n < len(text) && n > 0 && (isAlphanumericASCII(text[n]) || text[n] == '_') && text[n-1] != '}' &&
		text[n-1] != '%' {
		return 0
	}
	return n
}

// colon handles a ":". It may belong to a file URI, to another URL, or to a drive letter.
func (f *pathFinder) colon() {
	at := f.i
	f.i++
	word := f.text[max(0, at-maxSchemeName):at]
	n := len(word)
	for n > 0 && (isAlphanumericASCII(word[n-1]) || strings.IndexByte("+-.", word[n-1]) >= 0) {
		n--
	}
	scheme, rest := word[n:], f.text[at+1:]
	switch {
	case isSchemeOfFiles(scheme):
		f.fileURI(at - len("file"))
	case isDriveName(scheme) && rest != "" && (rest[0] == '/' || rest[0] == '\\'):
		f.i++
		f.emit(part{at - 1, at - 1, f.i}, Plain)
		if rest[0] == '/' { // some programs read "a:/b" as two paths
			f.emit(part{at + 1, at + 1, f.i}, Guess)
		}
	case scheme != "" && strings.HasPrefix(rest, "//"):
		f.otherURL(at + len("://"))
	}
}

// isSchemeOfFiles reports whether a URI scheme is "file", or ends with the word "file", such as "git+file" or
// "view-source.file".
func isSchemeOfFiles(scheme string) bool {
	n := len(scheme) - len("file")
	return n >= 0 && strings.EqualFold(scheme[n:], "file") && (n == 0 || !isAlphanumericASCII(scheme[n-1]))
}

// isDriveName reports whether a word ends with a drive letter: "C", "-C".
func isDriveName(word string) bool {
	n := len(word)
	return n > 0 && word[n-1]|0x20 >= 'a' && word[n-1]|0x20 <= 'z' && (n == 1 || !isAlphanumericASCII(word[n-2]))
}

// fileURI handles the text after the ":" of a file URI. start is the index at which the URI begins.
func (f *pathFinder) fileURI(start int) {
	if f.i == len(f.text) || isBlank(f.text[f.i]) || isQuote(f.text[f.i]) {
		return
	}
	c := Guess // "file:name" is often just two words
	slashes := 0
	for f.i < len(f.text) && (f.text[f.i] == '/' || f.text[f.i] == '\\') {
		f.i, slashes = f.i+1, slashes+1
	}
	if slashes > 0 || f.command || f.text[f.i] == '%' {
		c = Plain
	}
	if slashes == 2 {
		f.i = f.authorityEnd(f.i)
	}
	f.emit(part{start, start, f.i}, c)
	f.i += countOf(f.text[f.i:], '/')
}

// otherURL handles the text after the "//" of a URL with another scheme than "file". If the URL has no host, its path
// may be a file path, so it is added.
func (f *pathFinder) otherURL(start int) {
	f.i = start
	if start < len(f.text) && f.text[start] == '/' {
		f.i += countOf(f.text[start:], '/')
		f.emit(part{start, start, f.i}, Plain)
		f.emitUnescaped(start)
		return
	}
	f.i = f.authorityEnd(start)
	// The host may be the escaped path of a database socket.
	if host := f.text[start:f.i]; strings.Contains(host, "%2f") || strings.Contains(host, "%2F") {
		f.emitUnescaped(start)
	}
	f.i += countOf(f.text[f.i:], '/')
}

// authorityEnd returns the end of a URL's host that begins at start.
func (f *pathFinder) authorityEnd(start int) int {
	for start < len(f.text) && (isAlphanumericASCII(f.text[start]) || strings.IndexByte("._-~%@:[]+!*",
		f.text[start]) >= 0 || f.text[start] >= utf8.RuneSelf) {
		start++
	}
	return start
}

// emitUnescaped adds the text of a URL from start, with its percent escapes decoded, to f.found.
func (f *pathFinder) emitUnescaped(start int) {
	f.seek(f.i)
	part := f.text[start:f.long]
	if strings.IndexByte(part, '%') < 0 || len(part) > maxPath {
		return
	}
	if i := strings.IndexAny(part, "?#"); i > 0 {
		part = part[:i]
	}
	f.say(unescapeURIPath(part), Plain)
}

// begins reports whether a path may begin at i, judged by the text before i. It also returns the certainty of the path.
func (f *pathFinder) begins(i int) (bool, Certainty) {
	for i > 0 && f.text[i-1] == '\\' { // JSON may be written with "\/etc"
		i--
	}
	if i == 0 {
		return true, Plain
	}
	soft := Guess
	if f.command {
		soft = Plain
	}
	if i == f.variable { // "$NONE/etc"
		return true, soft
	}
	switch before := f.text[i-1]; {
	case isAlphanumericASCII(before):
		return f.isOption(i), soft
	case before >= utf8.RuneSelf:
		r, _ := utf8.DecodeLastRuneInString(f.text[:i])
		if unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) {
			return true, Guess
		}
		return true, Plain
	case strings.IndexByte("._-~/*?%", before) >= 0:
		return false, Guess
	case strings.IndexByte(")]}#+", before) >= 0:
		return true, soft
	}
	return true, Plain
}

// isOption reports whether the text before i is a command-line option of letters, as in "-I/usr".
func (f *pathFinder) isOption(i int) bool {
	n := i
	for n > 0 && i-n < maxSchemeName && isAlphanumericASCII(f.text[n-1]) && f.text[n-1] > '9' {
		n--
	}
	if n == i || n == 0 || f.text[n-1] != '-' {
		return false
	}
	return n == 1 || isBlank(f.text[n-2]) || isQuote(f.text[n-2])
}

// ends reports whether a path must end at i, judged by endsShort.
func (f *pathFinder) ends(i int) bool { return i >= len(f.text) || endsShort[f.text[i]] }

// endsLong are the characters that end a path in every text. endsShort also contains the characters that end a path
// only in some languages.
var endsLong, endsShort = func() (long, short [256]bool) {
	for c := range ' ' + 1 {
		long[c], short[c] = true, true
	}
	for _, c := range "\"'`<>|" {
		long[c], short[c] = true, true
	}
	for _, c := range ";&()=,:]}" {
		short[c] = true
	}
	return long, short
}()

// seek sets short and long to the ends of a path that contains the index from, and sets dots.
func (f *pathFinder) seek(from int) {
	if f.short < from {
		for f.short = from; !f.ends(f.short); {
			f.short++
		}
	}
	if f.long < from || f.long == 0 {
		for f.long = from; f.long < len(f.text) && !endsLong[f.text[f.long]]; {
			f.long++
		}
		if f.dots = strings.LastIndex(f.text[from:f.long], ".."); f.dots >= 0 {
			f.dots += from
		}
	}
}

// A part is the position of a path in the text.
type part struct {
	// begin is the index at which the path begins. If the path begins with a home variable, start is the index after
	// the variable; otherwise start equals begin.
	begin, start int
	// from is an index inside the path; the path cannot end before it.
	from int
}

// prefix returns "~" if the path begins with a home variable, otherwise "".
func (p part) prefix() string {
	if p.begin < p.start {
		return "~"
	}
	return ""
}

// emit adds a path to f.found in each form that programs may read. The path that begins at f.first is already known, so
// emit adds it only with other ends.
func (f *pathFinder) emit(p part, c Certainty) {
	f.seek(p.from)
	known := p.begin == f.first
	if known {
		c = Guess
	}
	if !f.tooLong(p.start, f.short) && (!known || f.short < len(f.text)) {
		f.say(p.prefix()+f.text[p.start:f.short], c)
		f.sayBegin(p.prefix(), f.text[p.start:f.short])
	}
	if f.long > f.short && !f.tooLong(p.start, f.long) && (!known || f.long < len(f.text)) {
		f.say(p.prefix()+f.text[p.start:f.long], max(c, Extended))
	}
	if !known && f.long < len(f.text) {
		f.sayQuoted(p, max(c, Extended))
	}
}

// tooLong reports whether a part of the text is longer than maxPath and contains no ".." that could shorten the path.
func (f *pathFinder) tooLong(start, end int) bool { return end-start > maxPath && f.dots < start }

// sayBegin adds a path again without text at its end that may not belong to it. Such text is the end of a sentence, the
// query of a URL, or "\n" in source code.
func (f *pathFinder) sayBegin(prefix, path string) {
	begin := path
	if i := strings.IndexAny(begin, `?#*\`); i > 0 && begin[0] != '\\' {
		begin = begin[:i]
	}
	if !strings.HasSuffix(begin, "..") {
		begin = strings.TrimRight(begin, ".!")
	}
	if begin != "" && begin != path {
		f.say(prefix+begin, Guess)
	}
}

// sayQuoted adds a path that contains blanks, if they are escaped with "\" or the path is in quotation marks.
func (f *pathFinder) sayQuoted(p part, c Certainty) {
	if f.long > p.start && f.text[f.long-1] == '\\' && f.text[f.long] == ' ' {
		f.say(p.prefix()+unquoteBlanks(f.text[p.start:min(len(f.text), p.start+maxPath)]), c)
	}
	if p.begin == 0 || !isQuote(f.text[p.begin-1]) || f.text[f.long] == f.text[p.begin-1] {
		return
	}
	mark := f.text[p.begin-1]
	rest := f.text[f.long:min(len(f.text), f.long+maxPath)]
	if i := strings.IndexByte(rest, mark); i > 0 && !strings.ContainsAny(rest[:i], "\r\n") {
		f.say(p.prefix()+f.text[p.start:f.long+i], c)
	}
}

// unquoteBlanks returns the first word of a text as a shell reads it: a "\" is removed, and the character after it is a
// part of the word.
func unquoteBlanks(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		} else if endsLong[text[i]] {
			break
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func (f *pathFinder) say(path string, c Certainty) {
	if f.left -= len(path); f.left >= 0 {
		f.found = append(f.found, Found{path, c})
	}
}

func countOf(text string, c byte) (n int) {
	for n < len(text) && text[n] == c {
		n++
	}
	return n
}

func isBlank(c byte) bool { return c <= ' ' }

// decodeSlashes returns the text with its percent escapes decoded. ok is false if no escape is a slash or backslash, or
// if an escape is invalid.
func decodeSlashes(text string) (decoded string, ok bool) {
	if !strings.Contains(text, "%") {
		return "", false
	}
	lower := strings.ToLower(text)
	if !strings.Contains(lower, "%2f") && !strings.Contains(lower, "%5c") {
		return "", false
	}
	decoded, err := url.PathUnescape(text)
	return decoded, err == nil
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// beginsAsPath reports whether a whole text may be a path, whatever the argument's name is. It returns true for paths
// that mean the same file in every working directory, and for paths that begin with "..".
func beginsAsPath(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" {
		return false
	}
	switch text[0] {
	case '.': // "../" leads to a directory above the working directory
		return strings.HasPrefix(text, "../") || strings.HasPrefix(text, `..\`)
	case '/': // a "/" that does not begin "// a comment" or "/** a comment */"
		rest := strings.TrimLeft(strings.TrimLeft(text, "/"), "*")
		return rest == "" || !isBlank(rest[0])
	case '\\':
		return len(text) > 2 && text[1] == '\\' && !isBlank(text[2])
	case '~':
		n := 1 + userName(text[1:])
		return len(text) == 1 || n < len(text) && (text[n] == '/' || text[n] == '\\')
	case '$', '%':
		n := homeVariable(text)
		return n > 0 && (n == len(text) || text[n] == '/' || text[n] == '\\')
	}
	return len(text) > 2 && text[1] == ':' && (text[2] == '/' || text[2] == '\\') && isDriveName(text[:1])
}
