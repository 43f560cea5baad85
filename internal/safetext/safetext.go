// Package safetext makes untrusted text safe to display, and cuts text to a length.
//
// Untrusted text, such as a server's description or the arguments of a call, may contain dangerous characters. Some
// control a terminal, some change the direction of other characters, and some are invisible. The package replaces each
// such character by its code point in one notation:
//
//	\n \r \t      line feed, carriage return and tab, where they are not kept
//	\u3164        a code point up to U+FFFF
//	\U000e0041    a code point above U+FFFF
//	\xff          a byte that is not part of valid UTF-8
//	\[3000 spaces] a long run of spaces
//
// Exact and Quote also double each backslash, so two different texts never have the same result. Line and Text do not
// change backslashes, so a text may be passed to them twice without a further change. Use Line and Text only for text
// that people read without deciding about it.
//
// The package does not judge the content of a text, does not hide secrets, and does not replace letters that look
// alike. It does not remove combining marks, since most scripts need them.
package safetext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The longest runs of blanks that are not replaced. Text of several lines may have indentation and aligned columns.
const (
	maxRunInLine = 8
	maxRunInText = 32
)

// Line returns s on one line, with each dangerous or invisible character replaced by its code point. Line(Line(s))
// equals Line(s).
func Line(s string) string { return show(s, mode{}) }

// Text returns s with each dangerous or invisible character replaced by its code point. Line feeds and tabs are not
// replaced. Text(Text(s)) equals Text(s).
func Text(s string) string { return show(s, mode{multiline: true}) }

// Exact returns s on one line like Line, with each backslash doubled: different texts have different results. Use it
// for text that a person decides about.
func Exact(s string) string { return show(s, mode{exact: true}) }

// Quote returns Exact(s) between double quotes, with a backslash before each double quote inside.
func Quote(s string) string { return `"` + show(s, mode{exact: true, quoted: true}) + `"` }

// Lines returns the result of Line for each element.
func Lines(all []string) []string {
	var shown []string
	for _, s := range all {
		shown = append(shown, Line(s))
	}
	return shown
}

// Visible reports whether r is displayed as a visible character and has no other effect. The space U+0020 counts as
// visible. All other blanks, fillers, variation selectors, controls, private and unassigned code points count as
// invisible.
func Visible(r rune) bool {
	switch {
	case r >= 0x20 && r < 0x7f:
		return true
	// The replacement character, and blanks that count as symbols or marks.
	case r == utf8.RuneError, r == 0x2800, r == 0x16fe4, r == 0x1d159:
		return false
	case !unicode.IsPrint(r):
		return false
	}
	return !unicode.Is(unicode.Variation_Selector, r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// A mode selects how a function treats line feeds and tabs, backslashes and double quotes.
type mode struct{ multiline, exact, quoted bool }

// blank reports whether r is part of a run of blanks.
func (m mode) blank(r rune) bool { return r == ' ' || r == '\t' && m.multiline }

func (m mode) maxRun() int {
	if m.multiline {
		return maxRunInText
	}
	return maxRunInLine
}

// keeps reports whether r is written unchanged if it is not part of a long run of blanks.
func (m mode) keeps(r rune) bool {
	switch r {
	case '\n', '\t':
		return m.multiline
	case '\\':
		return !m.exact
	case '"':
		return !m.quoted
	}
	return Visible(r)
}

func show(s string, m mode) string {
	if m.unchanged(s) {
		return s
	}
	e := encoder{mode: m}
	out := e.appendRunes(make([]byte, 0, len(s)+16), s)
	return string(e.appendRun(out))
}

// unchanged reports whether the result for s is s itself.
func (m mode) unchanged(s string) bool {
	run := 0
	for _, r := range s {
		if !m.keeps(r) {
			return false
		}
		if !m.blank(r) {
			run = 0
			continue
		}
		if run++; run > m.maxRun() {
			return false
		}
	}
	return true
}

// An encoder writes text in one mode. It does not write a run of blanks before it knows the length of the run.
type encoder struct {
	mode
	spaces, tabs int
	run          []byte // the blanks, until the run is too long to be written unchanged
}

// appendRunes appends s, except for the blanks at its end.
func (e *encoder) appendRunes(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if e.blank(r) {
			e.add(r)
			continue
		}
		dst = e.appendRun(dst)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = fmt.Appendf(dst, `\x%02x`, s[i-1])
		case e.keeps(r):
			dst = utf8.AppendRune(dst, r)
		default:
			dst = appendCodePoint(dst, r)
		}
	}
	return dst
}

// add adds one blank to the current run.
func (e *encoder) add(r rune) {
	if r == ' ' {
		e.spaces++
	} else {
		e.tabs++
	}
	if len(e.run) <= e.maxRun() {
		e.run = append(e.run, byte(r))
	}
}

// appendRun appends the current run of blanks, and starts a new run.
func (e *encoder) appendRun(dst []byte) []byte {
	switch {
	case e.spaces+e.tabs <= e.maxRun():
		dst = append(dst, e.run...)
	case e.tabs == 0:
		dst = fmt.Appendf(dst, `\[%d spaces]`, e.spaces)
	case e.spaces == 0:
		dst = fmt.Appendf(dst, `\[%d tabs]`, e.tabs)
	default:
		dst = fmt.Appendf(dst, `\[%d spaces and tabs]`, e.spaces+e.tabs)
	}
	e.spaces, e.tabs, e.run = 0, 0, e.run[:0]
	return dst
}

func appendCodePoint(dst []byte, r rune) []byte {
	switch {
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\r':
		return append(dst, `\r`...)
	case r == '\t':
		return append(dst, `\t`...)
	case r == '\\' || r == '"':
		return append(dst, '\\', byte(r))
	case r > 0xffff:
		return fmt.Appendf(dst, `\U%08x`, r)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

// OneLine returns the words of s, separated by single spaces and made safe by Line.
func OneLine(s string) string { return Line(strings.Join(strings.Fields(s), " ")) }
