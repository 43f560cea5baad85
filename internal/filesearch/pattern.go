package filesearch

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// A Pattern is a compiled search expression for lines.
type Pattern struct {
	re *regexp.Regexp
	// literal is a text that every matching line contains; it is empty if no such text is known. exact is true if every
	// line that contains literal matches.
	literal []byte
	exact   bool
	// lines is the expression for a search of a whole file: "^" and "$" match at each line. It is not used if byLine is
	// set. hasEnd is true if the expression contains "$", because lines may end with CRLF.
	lines          *regexp.Regexp
	byLine, hasEnd bool
}

// CompilePattern compiles a regular expression in RE2 syntax, with flags as in JavaScript. The flag "i" ignores case,
// and "s" lets a dot match a line ending. The flags "g", "m", "u" and "y" have no effect, because every line is
// searched.
func CompilePattern(expression, flags string) (*Pattern, error) {
	modes := ""
	for _, f := range flags {
		switch f {
		case 'i', 's':
			modes += string(f)
		case 'g', 'm', 'u', 'y':
		default:
			return nil, fmt.Errorf("flag %q is none of g, i, m, s, u, y", f)
		}
	}
	if modes != "" {
		expression = "(?" + modes + ")" + expression
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	p := &Pattern{re: re, hasEnd: strings.Contains(expression, "$"),
		byLine: strings.Contains(expression, `\A`) || strings.Contains(expression, `\z`)}
	if p.lines, err = regexp.Compile("(?m)" + expression); err != nil {
		return nil, err
	}
	if parsed, err := syntax.Parse(expression, syntax.Perl); err == nil {
		text, exact := requiredLiteral(parsed.Simplify())
		p.literal, p.exact = []byte(text), exact && text != ""
		p.byLine = p.byLine || strings.ContainsAny(text, "\r\n") // lines are matched without their line endings
	}
	return p, nil
}

// LiteralPattern returns a pattern for lines that contain text.
func LiteralPattern(text string, ignoreCase bool) *Pattern {
	flags := ""
	if ignoreCase {
		flags = "i"
	}
	p, err := CompilePattern(regexp.QuoteMeta(text), flags)
	if err != nil {
		panic(err) // QuoteMeta always returns a valid expression
	}
	return p
}

// requiredLiteral returns the longest text that every match of an expression contains, or "" if it finds none. exact
// reports whether the expression matches exactly this text and nothing else.
func requiredLiteral(re *syntax.Regexp) (text string, exact bool) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return "", false
		}
		return string(re.Rune), true
	case syntax.OpCapture:
		return requiredLiteral(re.Sub[0])
	case syntax.OpPlus:
		text, _ = requiredLiteral(re.Sub[0])
		return text, false
	case syntax.OpRepeat:
		if re.Min > 0 {
			text, _ = requiredLiteral(re.Sub[0])
		}
		return text, false
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if one, _ := requiredLiteral(sub); len(one) > len(text) {
				text = one
			}
		}
		return text, false
	}
	return "", false
}

// nextMatch returns the bounds of the first matching line at or after an offset, without its line ending. ok is false
// if there is no matching line. The offset must be the start of a line.
func (p *Pattern) nextMatch(content []byte, at int) (start, end int, ok bool) {
	if p.byLine || p.hasEnd && bytes.Contains(content, []byte("\r\n")) {
		return p.nextByLine(content, at)
	}
	for at < len(content) {
		from := bytes.Index(content[at:], p.literal) // 0 if literal is empty
		if len(p.literal) == 0 {
			from = -1
			if found := p.lines.FindIndex(content[at:]); found != nil {
				from = found[0]
			}
		}
		if from < 0 {
			return 0, 0, false
		}
		if start, end = lineBounds(content, at+from); start == len(content) {
			return 0, 0, false // at the end of the file, after the last line ending
		}
		if p.exact || p.re.Match(content[start:end]) {
			return start, end, true
		}
		at = nextLine(content, end)
		if len(p.literal) == 0 { // the match spans lines; further whole-text searches could each read the rest of the file
			return p.nextByLine(content, at)
		}
	}
	return 0, 0, false
}

// nextByLine does the same as nextMatch, but matches the expression against each line separately.
func (p *Pattern) nextByLine(content []byte, at int) (start, end int, ok bool) {
	for at < len(content) {
		start, end = lineBounds(content, at)
		if p.re.Match(content[start:end]) {
			return start, end, true
		}
		at = nextLine(content, end)
	}
	return 0, 0, false
}

// lineBounds returns the bounds of the line that contains an offset, without its line ending.
func lineBounds(content []byte, at int) (start, end int) {
	start = bytes.LastIndexByte(content[:at], '\n') + 1
	end = len(content)
	if i := bytes.IndexByte(content[at:], '\n'); i >= 0 {
		end = at + i
	}
	if end > start && content[end-1] == '\r' {
		end--
	}
	return start, end
}

// nextLine returns the start of the next line. end is the end of a line, before its line ending.
func nextLine(content []byte, end int) int {
	if i := bytes.IndexByte(content[end:], '\n'); i >= 0 {
		return end + i + 1
	}
	return len(content)
}
