package textfile

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// A Pattern is a compiled regular expression or text that Grep compares with each line of a file, without the line
// ending.
type Pattern struct {
	re *regexp.Regexp
	// literal is a text that every matching line contains; searching for it is faster than matching re. It is empty if
	// no such text is known. exact is true if every line that contains literal matches, so that re is not needed.
	literal []byte
	exact   bool
	// lines is the expression for the search of a whole file, in which "^" and "$" match at each line. If byLine is
	// set, lines is not used, and re is matched against each line separately. hasEnd is true if the expression contains
	// "$". A file with CRLF line endings is then searched line by line too, because "$" in lines does not match before
	// CR.
	lines          *regexp.Regexp
	byLine, hasEnd bool
}

// CompilePattern compiles a regular expression in RE2 syntax, with flags as in JavaScript. The flag "i" ignores case.
// The flags "g", "m", "s", "u" and "y" are accepted, but do not change which lines match, because each line is matched
// separately. It returns an error for any other flag.
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

// LiteralPattern returns a pattern that matches lines that contain text. If ignoreCase is set, case is ignored.
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

// requiredLiteral returns a text that every match of an expression contains, or "" if it finds none. Of several such
// texts it returns the longest that it finds. exact reports whether the expression matches this text and no other text.
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

// nextMatch returns the start and the end of the first matching line at or after the offset at; the end is before the
// line ending. ok is false if there is no such line. at must be the start of a line.
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

// nextByLine does the same as nextMatch, but matches re against each line separately, which is slower and works for
// every expression.
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

// lineBounds returns the start and the end of the line that contains the offset at; the end is before the line ending.
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

// nextLine returns the start of the line after the line that ends at the offset end; end is before the line ending.
// After the last line it returns the length of content.
func nextLine(content []byte, end int) int {
	if i := bytes.IndexByte(content[end:], '\n'); i >= 0 {
		return end + i + 1
	}
	return len(content)
}
