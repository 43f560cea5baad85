package main

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxColumns is the maximum length of a line; a tab counts as tabColumns columns.
	maxColumns = 120
	tabColumns = 4
)

// banned matches phrases that are hard to understand. The style guide lists the words to use instead.
var banned = regexp.MustCompile(
	`(?i)says whether|\bgives\b|\b(?:nobody|somebody|whoever|anew|midst)\b|\b(?:is|are) no [a-z]` +
		`|\bbut for\b|of which there is none`)

// plain matches correct English phrases that banned would match too: "there is no such file", "it is no longer used".
// bannedIn ignores these phrases.
var plain = regexp.MustCompile(`(?i)\bthere (?:is|are) no\b|\b(?:is|are) no longer\b`)

// wordLists are files whose string literals are the data of a detector, not texts for people. The literals of these
// files may contain banned phrases.
var wordLists = []string{"internal/shield/addressee.go", "internal/shield/markers.go", "internal/shield/rules.go"}

// phrases lists the places of the banned phrases in the program, each as "file:line".
type phrases struct {
	shown  []string // in public packages, and in texts that a person may see
	inside []string // in comments of internal packages
}

// bannedIn returns the number of banned phrases in text.
func bannedIn(text string) int {
	text = plain.ReplaceAllString(strings.ReplaceAll(text, "gives up", ""), "")
	return len(banned.FindAllString(text, -1))
}

// language adds the banned phrases of the file to f.phrases, if the file belongs to the program.
func (f *reading) language() {
	dir := path.Dir(f.name)
	if f.test || !isProgram(dir) {
		return
	}
	note := func(shown bool, at ast.Node, text string) {
		for range bannedIn(text) {
			if shown {
				f.phrases.shown = append(f.phrases.shown, f.at(at))
			} else {
				f.phrases.inside = append(f.phrases.inside, f.at(at))
			}
		}
	}
	for _, group := range f.file.Comments {
		note(isPublic(dir), group, group.Text())
	}
	if slices.Contains(wordLists, f.name) {
		return
	}
	ast.Inspect(f.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") {
			note(true, lit, lit.Value)
		}
		return true
	})
}

// longLines adds the number of lines of a file to s.lines, and the number of lines longer than maxColumns to
// s.overlong.
func (s *shape) longLines(source []byte) {
	for line := range strings.Lines(string(source)) {
		s.lines++
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line)+(tabColumns-1)*strings.Count(line, "\t") > maxColumns {
			s.overlong++
		}
	}
}

// isOneWord reports whether a Go name is one word: it has no capital after the first letter, or only capitals.
func isOneWord(name string) bool {
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			return strings.ToUpper(name) == name
		}
	}
	return true
}
