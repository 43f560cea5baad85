package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A globPattern is a glob: "*" stands for any text and "?" for one character.
type globPattern string

// match reports whether all of text is what the pattern says. It takes time in the length of both, at worst multiplied.
func (p globPattern) match(text string) bool {
	glob := string(p)
	star, from := -1, 0 // where the last "*" is, and the text that it has swallowed so far
	g, t := 0, 0
	for t < len(text) {
		switch {
		case g < len(glob) && glob[g] == '*':
			star, from = g, t
			g++
			continue
		case g < len(glob) && glob[g] == '?':
			_, n := utf8.DecodeRuneInString(text[t:])
			g, t = g+1, t+n
			continue
		case g < len(glob) && glob[g] == text[t]:
			g, t = g+1, t+1
			continue
		case star < 0:
			return false
		}
		_, n := utf8.DecodeRuneInString(text[from:])
		from += n
		g, t = star+1, from
	}
	return strings.Trim(glob[g:], "*") == ""
}

// covers reports whether whatever the other pattern matches is matched by p too. It may say no although it is.
func (p globPattern) covers(other globPattern) bool {
	if strings.Contains(string(p), "?") {
		return p == other
	}
	return p.match(string(other))
}

// globPatterns are several of which one must match. Nil is no demand at all.
type globPatterns []globPattern

// foldedPatterns makes patterns that are compared with texts that fold has made.
func foldedPatterns(globs []string) globPatterns {
	var out globPatterns
	for _, g := range globs {
		out = append(out, globPattern(foldLabel(g)))
	}
	return out
}

func (ps globPatterns) match(text string) bool {
	for _, p := range ps {
		if p.match(text) {
			return true
		}
	}
	return false
}

// matchAny reports whether one of the texts matches.
func (ps globPatterns) matchAny(texts []string) bool { return slices.ContainsFunc(texts, ps.match) }

// matchesEverything reports whether the patterns match whatever there is.
func (ps globPatterns) matchesEverything() bool {
	for _, p := range ps {
		if strings.Trim(string(p), "*") == "" {
			return true
		}
	}
	return false
}

// covers reports whether whatever the others match is matched by ps too. Nil covers all, and is covered by what matches
// everything.
func (ps globPatterns) covers(others globPatterns) bool {
	if ps == nil || ps.matchesEverything() {
		return true
	}
	if others == nil {
		return false
	}
	for _, other := range others {
		covered := false
		for _, p := range ps {
			covered = covered || p.covers(other)
		}
		if !covered {
			return false
		}
	}
	return true
}

// foldLabel makes names comparable: without blanks around them, in lower case.
func foldLabel(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// A pathGlob is a glob for paths, cut at its slashes: "**" stands for any number of names.
type pathGlob []string

// newPathGlob cleans a pattern as paths are cleaned.
func newPathGlob(text, home string) pathGlob {
	return strings.Split(cleanPath(text, home), "/")
}

// match reports whether the names of a path are what the glob says. "/a/**" is "/a" too.
func (g pathGlob) match(names []string) bool {
	star, from := -1, 0
	i, n := 0, 0
	for n < len(names) {
		switch {
		case i < len(g) && g[i] == "**":
			star, from = i, n
			i++
			continue
		case i < len(g) && globPattern(g[i]).match(names[n]):
			i, n = i+1, n+1
			continue
		case star < 0:
			return false
		}
		from++
		i, n = star+1, from
	}
	for i < len(g) && g[i] == "**" {
		i++
	}
	return i == len(g)
}

// cleanPath makes a path comparable: "/" between its names, "." and ".." taken out, "~" put in where home is known, and
// the path of a file URI.
func cleanPath(text, home string) string { return cleanSlashes(pathOf(text, home)) }

func cleanSlashes(text string) string {
	text = strings.ReplaceAll(text, `\`, "/")
	if len(text) > 2 && text[1] == ':' && text[2] == '/' { // a drive of Windows
		text = "/" + strings.ToLower(text[:1]) + text[1:]
	}
	return path.Clean(text)
}

// pathOf is a text as a path: that of a file URI, and with "~" put in.
func pathOf(text, home string) string {
	text = strings.TrimSpace(text)
	if rest, ok := cutPrefixFold(text, fileScheme); ok && isFileURI(text) {
		text = unescapeURIPath(rest)
		if rest, ok := strings.CutPrefix(text, "//"); ok {
			text = rest
			if i := strings.IndexByte(text, '/'); i > 0 { // a host
				text = text[i:]
			}
		}
	}
	if n := homeVariable(text); n > 0 {
		text = "~" + text[n:]
	} else if n := userName(strings.TrimPrefix(text, "~")); n > 0 && text[0] == '~' && home != "" &&
		text[1:1+n] == path.Base(home) {
		text = "~" + text[1+n:]
	}
	if rest, ok := strings.CutPrefix(text, "~"); ok && home != "" && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
		text = home + rest
	}
	return text
}

// browserPath is the path that readers find in a file URI who go by the URL standard: "\" is "/" to them, a host ends
// before anything is unescaped, and a path begins at the root.
func browserPath(uri string) string {
	rest, _ := cutPrefixFold(uri, fileScheme)
	rest = strings.ReplaceAll(rest, `\`, "/")
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		_, rest, _ = strings.Cut(after, "/")
	}
	return unescapeURIPath("/" + strings.TrimPrefix(rest, "/"))
}

// trimAsURL is a text as readers take it for a URL: without what they pass over.
func trimAsURL(text string) string {
	text = strings.TrimFunc(text, func(r rune) bool { return r <= ' ' || unicode.IsSpace(r) })
	if strings.ContainsAny(text, "\t\r\n") {
		text = strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(text)
	}
	return text
}

// writtenPaths returns the paths that a text may say, "." and ".." and "\" and all.
func writtenPaths(text, home string) []string {
	all := []string{pathOf(text, home)}
	if !isFileURI(text) {
		return all
	}
	uris := []string{strings.TrimSpace(text), trimAsURL(text)}
	if end := strings.IndexAny(uris[1], "?#"); end > 0 { // some know nothing of what may follow the path
		uris = append(uris, uris[1][:end])
	}
	for _, uri := range uris {
		for _, path := range []string{pathOf(uri, home), browserPath(uri)} {
			if _, is := cutPrefixFold(uri, fileScheme); is && !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	}
	return all
}

// PathSpellings returns the paths that programs may take a text for, "." and ".." and all; home stands in the place of
// "~". One that is absolute to some, and has ".." in it, is a relative one to others.
func PathSpellings(text, home string) (all []string) {
	for _, as := range writtenPaths(text, home) {
		plain := strings.ReplaceAll(as, `\`, "/")
		if all = append(all, plain); as != plain {
			all = append(all, as)
		}
	}
	if hasParentSegment(text) && !slices.Contains(all, text) {
		all = append(all, text)
	}
	return all
}

// pathReadings returns the paths that programs may take a text for: some have "\" between names, to others it is a
// letter of one, so that ".." leads from elsewhere.
func pathReadings(text, home string) (all []string) {
	add := func(p string) {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	for _, as := range writtenPaths(text, home) {
		add(cleanSlashes(as))
		if strings.Contains(as, `\`) && strings.Contains(as, "..") {
			add(path.Clean(as))
		}
	}
	return all
}

// hasParentSegment reports whether ".." is one of the names in a path.
func hasParentSegment(path string) bool {
	if !strings.Contains(path, "..") {
		return false
	}
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if name == ".." {
			return true
		}
	}
	return false
}

const fileScheme = "file:"

// isFileURI reports whether a text is the URI of a file, in any of the forms that RFC 8089 has, or in one that readers
// take for it.
func isFileURI(text string) bool {
	seen := 0
	for i := 0; seen < len(fileScheme); i++ {
		switch {
		case i == len(text):
			return false
		case lowerASCII(text[i]) == fileScheme[seen]:
			seen++
		case text[i] == '\t', text[i] == '\r', text[i] == '\n', seen == 0 &&
			(text[i] <= ' ' || text[i] >= utf8.RuneSelf):
		default:
			return false
		}
	}
	rest, ok := cutPrefixFold(trimAsURL(text), fileScheme)
	return ok && rest != "" && (rest[0] == '/' || rest[0] == '\\' || !strings.ContainsFunc(rest, unicode.IsSpace))
}

// IsFileURI reports whether a text is the URI of a file.
func IsFileURI(text string) bool { return isFileURI(text) }

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}
