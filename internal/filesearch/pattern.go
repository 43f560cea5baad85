package filesearch

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// A Pattern finds lines.
type Pattern struct {
	re *regexp.Regexp
	// literal is a text that each matching line contains; empty if there is none. exact is true if a line that contains
	// it matches.
	literal []byte
	exact   bool
	// lines is the expression for a search of a whole text, in which anchors are about lines. It is not used if byLine
	// is set; hasEnd is set if the end of a line matters, which may be CRLF.
	lines          *regexp.Regexp
	byLine, hasEnd bool
}

// CompilePattern compiles a regular expression in the syntax of RE2 with the flags of JavaScript: "i" ignores case, "s"
// lets a dot match a line ending, and g, m, u and y change nothing, since each line is searched.
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
		p.byLine = p.byLine || strings.ContainsAny(text, "\r\n") // lines are searched without their ending
	}
	return p, nil
}

// LiteralPattern returns a pattern for lines that contain a text.
func LiteralPattern(text string, ignoreCase bool) *Pattern {
	flags := ""
	if ignoreCase {
		flags = "i"
	}
	p, err := CompilePattern(regexp.QuoteMeta(text), flags)
	if err != nil {
		panic(err) // a quoted text is an expression
	}
	return p
}

// requiredLiteral returns the longest text that each match of an expression contains; empty if it knows none. exact
// reports that the expression matches that text and no other.
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

// nextMatch returns the bounds of the next line from an offset on that matches, without its line ending; ok is false if
// there is none. At must be the start of a line.
func (p *Pattern) nextMatch(content []byte, at int) (start, end int, ok bool) {
	if p.byLine || p.hasEnd && bytes.Contains(content, []byte("\r\n")) {
		return p.nextByLine(content, at)
	}
	for at < len(content) {
		from := bytes.Index(content[at:], p.literal) // 0 without a literal
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
			return 0, 0, false // behind the last line ending
		}
		if p.exact || p.re.Match(content[start:end]) {
			return start, end, true
		}
		at = nextLine(content, end)
		if len(p.literal) == 0 { // the match went on in later lines: each search could read the whole rest
			return p.nextByLine(content, at)
		}
	}
	return 0, 0, false
}

// nextByLine is nextMatch for an expression that is matched line by line.
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

// lineBounds returns the bounds of the line around an offset, without its line ending.
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

// nextLine returns the start of the line behind the end of one.
func nextLine(content []byte, end int) int {
	if i := bytes.IndexByte(content[end:], '\n'); i >= 0 {
		return end + i + 1
	}
	return len(content)
}
