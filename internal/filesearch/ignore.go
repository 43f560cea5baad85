package filesearch

import (
	"bytes"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreFiles are the names of the files whose patterns are followed, in the order of their precedence.
var ignoreFiles = []string{".gitignore", ".ignore"}

// maxIgnoreFile is the maximum size in bytes of a file with patterns. A larger one is not followed.
const maxIgnoreFile = 1 << 20

// An ignoreList holds the patterns of the ignore files of one directory (gitignore(5)). It is immutable.
type ignoreList struct {
	parent *ignoreList
	// dir is the directory of the files, relative to the root of the search: "" or "a/b/".
	dir   string
	rules []ignoreRule
	// names and suffixes say where in rules the last rule for a plain name or a suffix such as ".o" is. Rules that need
	// more work are listed in others.
	names, suffixes map[string]int
	others          []int
}

// An ignoreRule is one pattern.
type ignoreRule struct {
	glob string
	// keep is true for a pattern that begins with "!", dirsOnly for one that ends with "/", and anchored for one that is
	// compared with the whole path.
	keep, dirsOnly, anchored bool
}

// parseIgnoreList parses the texts of the ignore files of a directory.
func parseIgnoreList(parent *ignoreList, dir string, texts ...[]byte) *ignoreList {
	l := &ignoreList{parent: parent, dir: dir, names: map[string]int{}, suffixes: map[string]int{}}
	for _, text := range texts {
		for line := range bytes.Lines(text) {
			if r, ok := parseIgnoreRule(string(bytes.TrimRight(line, "\r\n"))); ok {
				l.add(r)
			}
		}
	}
	if len(l.rules) == 0 {
		return parent
	}
	return l
}

// add adds a rule, and files it by how it can be found.
func (l *ignoreList) add(r ignoreRule) {
	n := len(l.rules)
	l.rules = append(l.rules, r)
	plain := !strings.ContainsAny(r.glob, `*?[\`)
	suffix, isSuffix := strings.CutPrefix(r.glob, "*.")
	switch {
	case r.dirsOnly || r.anchored:
		l.others = append(l.others, n)
	case plain:
		l.names[r.glob] = n
	case isSuffix && !strings.ContainsAny(suffix, `*?[\.`):
		l.suffixes["."+suffix] = n
	default:
		l.others = append(l.others, n)
	}
}

func parseIgnoreRule(line string) (r ignoreRule, ok bool) {
	if line == "" || line[0] == '#' {
		return r, false
	}
	if trimmed := strings.TrimRight(line, " "); strings.HasSuffix(trimmed, `\`) && trimmed != line {
		line = trimmed + " " // an escaped space
	} else {
		line = trimmed
	}
	if rest, found := strings.CutPrefix(line, "!"); found {
		r.keep, line = true, rest
	}
	if rest, found := strings.CutSuffix(line, "/"); found {
		r.dirsOnly, line = true, rest
	}
	r.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	if rest, found := strings.CutPrefix(line, "**/"); found && !strings.Contains(rest, "/") {
		r.anchored, line = false, rest // it means the name alone
	}
	if strings.HasSuffix(line, "/**") {
		line += "/*" // what is in the directory, and not the directory
	}
	r.glob = escapeBraces(line)
	return r, doublestar.ValidatePattern(r.glob)
}

// escapeBraces makes braces plain: they are special to doublestar, and not in ignore files.
func escapeBraces(pattern string) string {
	if !strings.ContainsAny(pattern, "{}") {
		return pattern
	}
	return strings.NewReplacer(`\{`, `\{`, `\}`, `\}`, "{", `\{`, "}", `\}`).Replace(pattern)
}

// ignores reports whether a path below the root is ignored. Its directories are known not to be.
func (l *ignoreList) ignores(rel string, isDir bool) bool {
	for ; l != nil; l = l.parent {
		if n := l.lastMatch(rel[len(l.dir):], isDir); n >= 0 {
			return !l.rules[n].keep
		}
	}
	return false
}

// lastMatch returns the index of the last rule that matches; -1 if none does.
func (l *ignoreList) lastMatch(rel string, isDir bool) int {
	last := -1
	name := path.Base(rel)
	if n, ok := l.names[name]; ok {
		last = n
	}
	if n, ok := l.suffixes[path.Ext(name)]; ok {
		last = max(last, n)
	}
	for i := len(l.others) - 1; i >= 0 && l.others[i] > last; i-- {
		r := l.rules[l.others[i]]
		subject := name
		if r.anchored {
			subject = rel
		}
		if (isDir || !r.dirsOnly) && doublestar.MatchUnvalidated(r.glob, subject) {
			return l.others[i]
		}
	}
	return last
}
