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

// match reports whether the pattern matches all of text. In the worst case, its time is proportional to the product of
// both lengths.
func (p globPattern) match(text string) bool {
	glob := string(p)
	star, from := -1, 0 // index of the last "*", and the end of the text that it matches so far
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

// covers reports whether p matches every text that other matches. It may return false although p does.
func (p globPattern) covers(other globPattern) bool {
	if strings.Contains(string(p), "?") {
		return p == other
	}
	return p.match(string(other))
}

// globPatterns are alternatives: a text matches if one pattern matches.
type globPatterns []globPattern

// foldedPatterns returns the patterns with letter case folded, for comparison with texts that foldLabel returned.
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

// matchAny reports whether one of the texts matches one of the patterns.
func (ps globPatterns) matchAny(texts []string) bool { return slices.ContainsFunc(texts, ps.match) }

// matchesEverything reports whether one of the patterns matches every text.
func (ps globPatterns) matchesEverything() bool {
	for _, p := range ps {
		if strings.Trim(string(p), "*") == "" {
			return true
		}
	}
	return false
}

// covers reports whether ps match every text that others match. It may return false although they do. Nil patterns
// match every text.
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

// foldLabel folds a name for comparison: it removes surrounding blanks and converts to lower case.
func foldLabel(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// A pathGlob is a glob for paths, split at its slashes. "**" matches any number of path segments.
type pathGlob []string

// newPathGlob returns the glob for a pattern. The pattern is cleaned with cleanPath, like the paths with which it is
// compared.
func newPathGlob(text, home string) pathGlob {
	return strings.Split(cleanPath(text, home), "/")
}

// match reports whether the glob matches the segments of a path. "/a/**" matches "/a" too.
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

// cleanPath returns a path in a form for comparison. Segments are separated by "/", and "." and ".." are resolved. "~"
// is replaced by home unless home is empty, and a file URI is replaced by its path.
func cleanPath(text, home string) string { return cleanSlashes(pathOf(text, home)) }

func cleanSlashes(text string) string {
	text = strings.ReplaceAll(text, `\`, "/")
	if len(text) > 2 && text[1] == ':' && text[2] == '/' { // a Windows drive
		text = "/" + strings.ToLower(text[:1]) + text[1:]
	}
	return path.Clean(text)
}

// pathOf returns a text as a path: a file URI is replaced by its path, and "~" by home.
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

// browserPath returns the path of a file URI as browsers read it, by the URL standard. "\" counts as "/", the end of
// the host is found before percent escapes are decoded, and the path begins at the root.
func browserPath(uri string) string {
	rest, _ := cutPrefixFold(uri, fileScheme)
	rest = strings.ReplaceAll(rest, `\`, "/")
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		_, rest, _ = strings.Cut(after, "/")
	}
	return unescapeURIPath("/" + strings.TrimPrefix(rest, "/"))
}

// trimAsURL removes the characters that URL parsers ignore: surrounding white space, tabs and line breaks.
func trimAsURL(text string) string {
	text = strings.TrimFunc(text, func(r rune) bool { return r <= ' ' || unicode.IsSpace(r) })
	if strings.ContainsAny(text, "\t\r\n") {
		text = strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(text)
	}
	return text
}

// writtenPaths returns the paths that a text may mean. "." and ".." in them are not resolved, and "\" is not replaced.
func writtenPaths(text, home string) []string {
	all := []string{pathOf(text, home)}
	if !isFileURI(text) {
		return all
	}
	uris := []string{strings.TrimSpace(text), trimAsURL(text)}
	if end := strings.IndexAny(uris[1], "?#"); end > 0 { // some parsers treat query and fragment as part of the path
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

// PathSpellings returns the paths that programs may read from a text. "~" is replaced by home; "." and ".." are not
// resolved. If the text contains "..", the text itself is also returned, since some programs read it as a relative
// path.
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

// pathReadings returns the paths that a text may mean, with "." and ".." resolved. Some programs read "\" as a
// separator, others as part of a name. If ".." is next to a "\", the two readings differ, and both are returned.
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

// hasParentSegment reports whether a path contains the segment "..".
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

// isFileURI reports whether a text is a file URI, in a form of RFC 8089 or in another form that parsers accept.
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

// IsFileURI reports whether a text is a file URI.
func IsFileURI(text string) bool { return isFileURI(text) }

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}
