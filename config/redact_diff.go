package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/aymanbagabas/go-udiff"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// maxDiffLine is the maximum number of characters shown of a line, because a whole file may be one line.
const maxDiffLine = 160

// redactedDiff returns a unified diff of a file in which possible secrets are replaced. before and after are the
// contents; nil means that the file does not exist. The diff shows names, punctuation, booleans, small numbers, and the
// words in shown; all other text is replaced by "…". The result is empty if the file does not change.
//
// A JSON file with a line that is too long to show is first split into one line for each value.
func redactedDiff(path string, before, after []byte, shown []string) string {
	if configfile.FormatOf(path) == configfile.JSON && (hasLongLine(before) || hasLongLine(after)) {
		before, after = breakLines(before), breakLines(after)
	}
	edits := udiff.Lines(string(before), string(after))
	diff, err := udiff.ToUnifiedDiff(diffLabel(path, before), diffLabel(path, after), string(before), edits,
		udiff.DefaultContextLines)
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
			b.WriteString(strings.TrimRight(sign+safetext.Truncate(redactLine(configfile.FormatOf(path), line.Content,
				shown), maxDiffLine, safetext.Runes, "…"), " ") + "\n")
		}
	}
	return b.String()
}

func hasLongLine(data []byte) bool {
	for line := range bytes.Lines(data) {
		if len(line) > maxDiffLine {
			return true
		}
	}
	return false
}

// breakLines returns JSON with one line for each member and item, indented by depth; nil if data is nil. Strings and
// comments are not split.
func breakLines(data []byte) []byte {
	if data == nil {
		return nil
	}
	out, depth := []byte{}, 0
	newline := func() {
		out = append(bytes.TrimRight(out, " \t\n\r"), '\n')
		out = append(out, strings.Repeat("  ", min(max(depth, 0), 20))...)
	}
	for _, token := range breakToken().FindAll(data, -1) {
		switch {
		case len(bytes.TrimSpace(token)) == 0:
			if bytes.ContainsRune(token, '\n') {
				newline()
			} else if n := len(out); n > 0 && out[n-1] != ' ' {
				out = append(out, ' ')
			}
		case bytes.HasPrefix(token, []byte("//")):
			out = append(out, token...)
			newline()
		case token[0] == '{' || token[0] == '[':
			depth++
			out = append(out, token...)
			newline()
		case token[0] == '}' || token[0] == ']':
			depth--
			newline()
			out = append(out, token...)
		case token[0] == ',':
			out = append(out, token...)
			newline()
		default:
			out = append(out, token...)
		}
	}
	return append(bytes.TrimRight(out, " \t\n\r"), '\n')
}

// breakToken matches the tokens that breakLines does not split.
var breakToken = lazyregexp.New(`"(?:[^"\\]|\\.)*"?|//[^\n]*|/\*(?s:.*?)\*/|[{}\[\],]|\s+|[^"{}\[\],\s/]+|/`)

func diffLabel(path string, v []byte) string {
	if v == nil {
		return "/dev/null"
	}
	return path
}

// jsonToken matches the tokens of a line of JSON or TOML. yamlToken matches the tokens of a line of YAML. In YAML a
// plain scalar extends to the end of the line or to a comment.
var (
	jsonToken       = lazyregexp.New(`"(?:[^"\\]|\\.)*"?|'[^']*'?|//.*|/\*.*|#.*|[^\s"'{}\[\](),:=/#]+|[\s{}\[\](),:=]+|.`)
	yamlToken       = lazyregexp.New(`"(?:[^"\\]|\\.)*"?|'[^']*'?|#.*|[^\s"'{}\[\],#:-][^\s"'{}\[\],#:]*|[\s{}\[\],:-]+|.`)
	structuralToken = lazyregexp.New(`^(?:[\s{}\[\](),:=-]+|true|false|null)$`)
	smallNumber     = lazyregexp.New(`^[0-9]{1,6}$`)
	valueEnd        = lazyregexp.New(`^(?:$|[,}\]/#])`)
	assignment      = lazyregexp.New(`^=\s*[^=\s]`)
	bareName        = lazyregexp.New(`^[A-Za-z0-9_.$/@-]+$`)
	tableHeader     = lazyregexp.New(`^\s*\[\[?[A-Za-z0-9_./"' -]+\]?\]\s*$`)
)

// maxBareName and maxTableHeader limit the length of a name and of a table header. They are not repetition counts in
// the expressions, because such counts would make compiling the expressions many times slower.
const maxBareName, maxTableHeader = 64, 200

func isBareName(word string) bool { return len(word) <= maxBareName && bareName().MatchString(word) }

// redactLine returns a line with possible secrets replaced by "…".
func redactLine(format configfile.Format, line string, shown []string) string {
	line = strings.TrimRight(line, "\r\n")
	if len(line) > 4*maxDiffLine { // the rest is not shown, and matching it would be slow
		line = safetext.Truncate(line, 4*maxDiffLine, safetext.Bytes, "")
	}
	if format == configfile.TOML && len(line) <= maxTableHeader && tableHeader().MatchString(line) {
		return line
	}
	tokens := jsonToken().FindAllString(line, -1)
	if format == configfile.YAML {
		tokens = yamlToken().FindAllString(line, -1)
	}
	named := false // a line of YAML has one name; a second name is text
	for i, token := range tokens {
		rest := strings.TrimLeft(strings.Join(tokens[i+1:], ""), " \t")
		word := strings.Trim(token, `"'`)
		switch {
		case structuralToken().MatchString(token), slices.Contains(shown, unescapeBackslashes(word)):
		case smallNumber().MatchString(token) && (i < 2 || strings.TrimSpace(tokens[i-1]) != "") &&
			valueEnd().MatchString(rest):
		case isBareName(word) && hasNameSeparator(rest, format) && (format != configfile.YAML || !named):
			named = true
		default:
			tokens[i] = redactToken(format, token)
		}
	}
	return strings.Join(tokens, "")
}

// hasNameSeparator reports whether rest, the text after a word, begins with the separator of a name and its value. In
// TOML, the padding "=" of base64 is not such a separator.
func hasNameSeparator(rest string, format configfile.Format) bool {
	if format == configfile.TOML {
		return assignment().MatchString(rest)
	}
	return strings.HasPrefix(rest, ":")
}

// redactToken returns the token with its text replaced by "…". Quotation marks and the start of a comment remain.
func redactToken(format configfile.Format, token string) string {
	switch {
	case strings.HasPrefix(token, `"`):
		return `"…"`
	case format == configfile.JSON && (strings.HasPrefix(token, "//") || strings.HasPrefix(token, "/*")):
		return token[:2] + " …"
	case strings.HasPrefix(token, "#"):
		return "# …"
	}
	return "…"
}

// unescapeBackslashes replaces double backslashes, the only escape in paths.
func unescapeBackslashes(word string) string { return strings.ReplaceAll(word, `\\`, `\`) }
