package textfile

import (
	"bytes"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreFiles are the names of files with rules, in the syntax of gitignore(5), that exclude files from a list. In one
// directory, the rules of .ignore override the rules of .gitignore.
var ignoreFiles = []string{".gitignore", ".ignore"}

// maxIgnoreFile is the maximum size in bytes of an ignore file. The rules in a larger file have no effect.
const maxIgnoreFile = 1 << 20

// An ignoreList contains the rules of the ignore files in one directory; see gitignore(5). parent contains the rules of
// the nearest parent directory that has rules. An ignoreList is immutable.
type ignoreList struct {
	parent *ignoreList
	// dir is the directory of the ignore files, relative to the root of the listed tree, such as "a/b/"; "" for the
	// root.
	dir   string
	rules []ignoreRule
	// names and suffixes speed up the search for common rules. They map a plain name, or a suffix such as ".o", to the
	// index in rules of the last rule for it. others contains the indexes of all other rules.
	names, suffixes map[string]int
	others          []int
}

// An ignoreRule is one pattern of an ignore file.
type ignoreRule struct {
	glob string
	// keep is true for a pattern that begins with "!" and includes files again that an earlier rule excludes. dirsOnly
	// is true for a pattern that ends with "/" and applies only to directories. anchored is true for a pattern that is
	// compared with the whole path below the ignore file's directory, not only with the file's name.
	keep, dirsOnly, anchored bool
}

// parseIgnoreList returns the rules in texts, the contents of the ignore files in the directory dir. parent contains
// the rules of the parent directories. If the texts contain no rule, it returns parent.
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

// add appends a rule to rules, and adds its index to names, suffixes or others, depending on the form of its pattern.
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
		r.anchored, line = false, rest // such a pattern is compared with the name only
	}
	if strings.HasSuffix(line, "/**") {
		line += "/*" // it matches everything in the directory, but not the directory
	}
	r.glob = escapeBraces(line)
	return r, doublestar.ValidatePattern(r.glob)
}

// escapeBraces returns the pattern with its braces escaped. Braces have a special meaning in doublestar patterns, but
// not in ignore files.
func escapeBraces(pattern string) string {
	if !strings.ContainsAny(pattern, "{}") {
		return pattern
	}
	return strings.NewReplacer(`\{`, `\{`, `\}`, `\}`, "{", `\{`, "}", `\}`).Replace(pattern)
}

// ignores reports whether the rules exclude the file or directory at the path rel, which is relative to the root of the
// tree. It does not check whether a parent directory is excluded; then the caller must not call it.
func (l *ignoreList) ignores(rel string, isDir bool) bool {
	for ; l != nil; l = l.parent {
		if n := l.lastMatch(rel[len(l.dir):], isDir); n >= 0 {
			return !l.rules[n].keep
		}
	}
	return false
}

// lastMatch returns the index of the last rule that matches a path, or -1. The last matching rule decides. rel is
// relative to the directory of the ignore files.
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
