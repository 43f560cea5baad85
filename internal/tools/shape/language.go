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
	// maxColumns is the longest line; a tab counts as tabColumns.
	maxColumns = 120
	tabColumns = 4
)

// banned matches phrases that a reader has to decode. The style guide says what to write in their place.
var banned = regexp.MustCompile(
	`(?i)says whether|\bgives\b|\b(?:nobody|somebody|whoever|anew|midst)\b|\b(?:is|are) no [a-z]` +
		`|\bbut for\b|of which there is none`)

// plain matches standard English that banned would match: "there is no such file", "it is no longer used".
var plain = regexp.MustCompile(`(?i)\bthere (?:is|are) no\b|\b(?:is|are) no longer\b`)

// wordLists are packages whose string literals are data of a detector, not texts for people.
var wordLists = []string{"internal/injection"}

// phrases counts the banned phrases of the program.
type phrases struct {
	shown  []string // in public packages, and in texts that a person may see
	inside []string // in comments of internal packages
}

func bannedIn(text string) int {
	text = plain.ReplaceAllString(strings.ReplaceAll(text, "gives up", ""), "")
	return len(banned.FindAllString(text, -1))
}

// language notes the banned phrases of a file of the program.
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
	if slices.Contains(wordLists, dir) {
		return
	}
	ast.Inspect(f.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") {
			note(true, lit, lit.Value)
		}
		return true
	})
}

// longLines counts the lines of a file and those of more than maxColumns columns.
func (s *shape) longLines(source []byte) {
	for line := range strings.Lines(string(source)) {
		s.lines++
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line)+(tabColumns-1)*strings.Count(line, "\t") > maxColumns {
			s.overlong++
		}
	}
}

// isOneWord reports whether a name in mixed case is one word.
func isOneWord(name string) bool {
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			return strings.ToUpper(name) == name
		}
	}
	return true
}
