package textfile

import (
	"slices"
	"strings"
)

// A line is a line of a text: the characters without the line ending, and byte offsets in the text.
type line struct {
	text       string
	start, end int // end is where the line ending begins
	next       int // the offset of the next line
}

// splitLines returns the lines of a text. A line ending at the end of the text does not begin another, empty line.
func splitLines(content string) (lines []line) {
	for at := 0; at < len(content); {
		next := len(content)
		if i := strings.IndexByte(content[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		end := next
		if end > at && content[end-1] == '\n' {
			if end--; end > at && content[end-1] == '\r' {
				end--
			}
		}
		lines = append(lines, line{content[at:end], at, end, next})
		at = next
	}
	return lines
}

const blanks = " \t"

func trimTrailing(s string) string { return strings.TrimRight(s, blanks) }

func trimBoth(s string) string { return strings.Trim(s, blanks) }

// findLines returns the replacements for all sequences of whole lines that equal e.Old except for white space at the
// ends of lines. If there are none, it searches for lines that differ in indentation. It also returns the tolerance
// with which it found the lines.
func findLines(content string, e Edit) ([]replacement, Tolerance) {
	lines, old := splitLines(content), splitLines(e.Old)
	if !slices.ContainsFunc(old, func(l line) bool { return trimBoth(l.text) != "" }) {
		return nil, Exact // blank lines occur everywhere
	}
	withEnd := strings.HasSuffix(e.Old, "\n")
	for _, tolerance := range []Tolerance{TrailingSpace, Indentation} {
		var found []replacement
		for at := 0; at+len(old) <= len(lines); {
			adapt, ok := matchLines(lines[at:at+len(old)], old, tolerance)
			if !ok {
				at++
				continue
			}
			last := lines[at+len(old)-1]
			one := replacement{start: lines[at].start, end: last.end, text: e.New}
			if withEnd {
				one.end = last.next
			}
			one.text = withLineEnding(adapt(e.New), endingOf(content, lines[at], lines))
			if withEnd && last.next == last.end { // the file must still end without a line ending
				one.text = strings.TrimSuffix(strings.TrimSuffix(one.text, "\n"), "\r")
			}
			found = append(found, one)
			at += len(old)
		}
		if len(found) > 0 {
			return found, tolerance
		}
	}
	return nil, Exact
}

// endingOf returns the line ending of l. If l is the last line and has none, it returns the line ending of the first
// line in lines, or "\n".
func endingOf(content string, l line, lines []line) string {
	for _, one := range []line{l, lines[0]} {
		if one.next > one.end {
			return content[one.end:one.next]
		}
	}
	return "\n"
}

// matchLines reports whether the lines of the file equal the old lines of the edit, if differences of this tolerance
// are ignored. adapt changes the new text of the edit in the same way in which the file's lines differ from the old
// lines.
func matchLines(file, old []line, tolerance Tolerance) (adapt func(string) string, ok bool) {
	trim := trimTrailing
	if tolerance == Indentation {
		trim = trimBoth
	}
	for i := range old {
		if trim(file[i].text) != trim(old[i].text) {
			return nil, false
		}
	}
	if tolerance != Indentation {
		return func(text string) string { return text }, true
	}
	return indentationOf(file, old)
}

// indentationOf finds a change of indentation that, applied to every old line of the edit, results in the lines of the
// file. Such a change adds the same indentation to all lines, removes it, replaces spaces with tabs, or replaces tabs
// with spaces. adapt applies this change to a text. ok is false if there is no such change.
func indentationOf(file, old []line) (adapt func(string) string, ok bool) {
	var pairs [][2]string // the indentation in the edit, and in the file
	for i := range old {
		if trimBoth(old[i].text) != "" {
			pairs = append(pairs, [2]string{indentOf(old[i].text), indentOf(file[i].text)})
		}
	}
	first := pairs[0]
	if more, deeper := strings.CutSuffix(first[1], first[0]); deeper && all(pairs, func(a, b string) bool {
		return b == more+a
	}) {
		return eachLine(func(indent string) string { return more + indent }), true
	}
	if less, flatter := strings.CutSuffix(first[0], first[1]); flatter && all(pairs, func(a, b string) bool {
		return a == less+b
	}) {
		return eachLine(func(indent string) string { return strings.TrimPrefix(indent, less) }), true
	}
	for width := 1; width <= 8; width++ {
		spaces := strings.Repeat(" ", width)
		toTabs := func(indent string) string { return tabsFor(indent, spaces) }
		if all(pairs, func(a, b string) bool { return toTabs(a) == b }) {
			return eachLine(toTabs), true
		}
		toSpaces := func(indent string) string { return strings.ReplaceAll(indent, "\t", spaces) }
		if all(pairs, func(a, b string) bool { return toSpaces(a) == b }) {
			return eachLine(toSpaces), true
		}
	}
	return nil, false
}

func all(pairs [][2]string, ok func(a, b string) bool) bool {
	return !slices.ContainsFunc(pairs, func(p [2]string) bool { return !ok(p[0], p[1]) })
}

func indentOf(text string) string { return text[:len(text)-len(strings.TrimLeft(text, blanks))] }

// tabsFor returns the indentation with each unit at its start replaced with a tab. unit is a number of spaces.
func tabsFor(indent, unit string) string {
	tabs := 0
	for strings.HasPrefix(indent, unit) {
		indent = indent[len(unit):]
		tabs++
	}
	return strings.Repeat("\t", tabs) + indent
}

// eachLine returns a function that applies change to the indentation of each nonblank line of a text.
func eachLine(change func(indent string) string) func(string) string {
	return func(text string) string {
		lines := strings.SplitAfter(text, "\n")
		for i, one := range lines {
			if indent := indentOf(one); trimBoth(strings.TrimRight(one, "\r\n")) != "" {
				lines[i] = change(indent) + one[len(indent):]
			}
		}
		return strings.Join(lines, "")
	}
}
