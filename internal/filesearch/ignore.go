package filesearch

import (
	"bytes"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreFiles are the names of the ignore files. The rules of a later file override the rules of an earlier one.
var ignoreFiles = []string{".gitignore", ".ignore"}

// maxIgnoreFile is the maximum size in bytes of an ignore file. A larger file is ignored.
const maxIgnoreFile = 1 << 20

// An ignoreList has the rules of the ignore files of one directory (gitignore(5)). It is immutable.
type ignoreList struct {
	parent *ignoreList
	// dir is the directory of the ignore files, relative to the root of the search: "" or "a/b/".
	dir   string
	rules []ignoreRule
	// names and suffixes map a plain name, or a suffix such as ".o", to the index of its last rule in rules. others has
	// the indices of all other rules.
	names, suffixes map[string]int
	others          []int
}

// An ignoreRule is one pattern of an ignore file.
type ignoreRule struct {
	glob string
	// keep is true for a pattern that begins with "!". dirsOnly is true for a pattern that ends with "/". anchored is true
	// for a pattern that is compared with the path below the ignore file's directory, not with the name.
	keep, dirsOnly, anchored bool
}

// parseIgnoreList parses the texts of the ignore files of a directory. It returns parent if the texts have no rule.
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

// add adds a rule to rules, and to the index for its form: names, suffixes or others.
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

// escapeBraces escapes braces: they are special in doublestar patterns, but not in ignore files.
func escapeBraces(pattern string) string {
	if !strings.ContainsAny(pattern, "{}") {
		return pattern
	}
	return strings.NewReplacer(`\{`, `\{`, `\}`, `\}`, "{", `\{`, "}", `\}`).Replace(pattern)
}

// ignores reports whether the rules exclude a path. rel is relative to the root. None of its parent directories may be
// excluded.
func (l *ignoreList) ignores(rel string, isDir bool) bool {
	for ; l != nil; l = l.parent {
		if n := l.lastMatch(rel[len(l.dir):], isDir); n >= 0 {
			return !l.rules[n].keep
		}
	}
	return false
}

// lastMatch returns the index of the last rule that matches, or -1. rel is relative to the directory of the ignore
// files.
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
