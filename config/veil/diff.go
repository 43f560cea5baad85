package veil

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/aymanbagabas/go-udiff"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// maxShown is how much of a line is shown: a file may be one line.
const maxShown = 160

// Diff is a unified diff of a file without what may be a secret; nil stands for no file. It shows the file's structure:
// names, punctuation, truth values, small numbers, and the words in shown. It is empty where nothing changes.
func Diff(path string, before, after []byte, shown []string) string {
	edits := udiff.Lines(string(before), string(after))
	diff, err := udiff.ToUnifiedDiff(label(path, before), label(path, after), string(before), edits, udiff.DefaultContextLines)
	if err != nil || len(diff.Hunks) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", diff.From, diff.To)
	for _, hunk := range diff.Hunks {
		fmt.Fprintf(&b, "@@ -%d +%d @@\n", hunk.FromLine, hunk.ToLine)
		for _, line := range hunk.Lines {
			sign := " "
			switch line.Kind {
			case udiff.Delete:
				sign = "-"
			case udiff.Insert:
				sign = "+"
			}
			b.WriteString(strings.TrimRight(sign+safetext.Truncate(conceal(doc.FormatOf(path), line.Content, shown), maxShown, safetext.Runes, "…"), " ") + "\n")
		}
	}
	return b.String()
}

func label(path string, v []byte) string {
	if v == nil {
		return "/dev/null"
	}
	return path
}

// jsonToken finds what a line of JSON or TOML is made of; yamlToken of YAML, where a text without quotes goes to the
// end of the line, or to a comment.
var (
	jsonToken = made(`"(?:[^"\\]|\\.)*"?|'[^']*'?|//.*|/\*.*|#.*|[^\s"'{}\[\](),:=/#]+|[\s{}\[\](),:=]+|.`)
	yamlToken = made(`"(?:[^"\\]|\\.)*"?|'[^']*'?|#.*|[^\s"'{}\[\],#:-][^\s"'{}\[\],#:]*|[\s{}\[\],:-]+|.`)
	structure = made(`^(?:[\s{}\[\](),:=-]+|true|false|null)$`)
	count     = made(`^[0-9]{1,6}$`)
	endsValue = made(`^(?:$|[,}\]/#])`)
	assigns   = made(`^=\s*[^=\s]`)
	bareName  = made(`^[A-Za-z0-9_.$/@-]+$`)
	tableName = made(`^\s*\[\[?[A-Za-z0-9_./"' -]+\]?\]\s*$`)
)

// mostName and mostTable are how long a name and the line of a table's may be. They stand here and not in the expressions, which
// would be many times as long, and take as much longer to make.
const mostName, mostTable = 64, 200

func isBareName(word string) bool { return len(word) <= mostName && bareName().MatchString(word) }

// conceal gives a line with "…" in the place of what may be a secret.
func conceal(format doc.Format, line string, shown []string) string {
	line = strings.TrimRight(line, "\r\n")
	if len(line) > 4*maxShown { // what is behind is not shown, and would take long to look at
		line = safetext.Truncate(line, 4*maxShown, safetext.Bytes, "")
	}
	if format == doc.TOML && len(line) <= mostTable && tableName().MatchString(line) {
		return line
	}
	tokens := jsonToken().FindAllString(line, -1)
	if format == doc.YAML {
		tokens = yamlToken().FindAllString(line, -1)
	}
	named := false // YAML has one name a line; what looks like another one is text
	for i, token := range tokens {
		rest := strings.TrimLeft(strings.Join(tokens[i+1:], ""), " \t")
		word := strings.Trim(token, `"'`)
		switch {
		case structure().MatchString(token), slices.Contains(shown, unescaped(word)):
		case count().MatchString(token) && (i < 2 || strings.TrimSpace(tokens[i-1]) != "") && endsValue().MatchString(rest):
		case isBareName(word) && nameBefore(rest, format) && (format != doc.YAML || !named):
			named = true
		default:
			tokens[i] = concealed(format, token)
		}
	}
	return strings.Join(tokens, "")
}

// nameBefore says whether what follows a word makes it a name. The padding of a secret in base64 does not.
func nameBefore(rest string, format doc.Format) bool {
	if format == doc.TOML {
		return assigns().MatchString(rest)
	}
	return strings.HasPrefix(rest, ":")
}

// concealed keeps what a token is recognised by.
func concealed(format doc.Format, token string) string {
	switch {
	case strings.HasPrefix(token, `"`):
		return `"…"`
	case format == doc.JSON && (strings.HasPrefix(token, "//") || strings.HasPrefix(token, "/*")):
		return token[:2] + " …"
	case strings.HasPrefix(token, "#"):
		return "# …"
	}
	return "…"
}

// unescaped undoes the one escape that paths have.
func unescaped(word string) string { return strings.ReplaceAll(word, `\\`, `\`) }

// made is an expression that is made when it is first needed: most starts of the program need none of these.
func made(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
