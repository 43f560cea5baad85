package injection

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Removal is what Canonical took out of a text.
type Removal struct {
	// Kind is what was there: "invisible", "tag", "selector", "bidi", "control", "escape", "private", "marks", "space"
	// or "encoding".
	Kind string
	// At is where it began, in bytes of the text that was given.
	At int
	// Hidden is what it said, where it said something: the letters of tags, selectors or bits.
	Hidden string
}

// strict is how Clean looks at a text.
type cleanMode int

const (
	cleanDefinition cleanMode = iota
	// cleanResult lets a terminal's colours, titles and links stay, and layout and private signs: for results.
	cleanResult
	// cleanAll takes every unseen rune, even those that a script needs. The other modes leave all that it leaves.
	cleanAll
)

// CanonicalText returns a definition's text in its canonical form, and what it took out of it: every character that
// shows nothing or steers what is shown, escape sequences, floods of marks, and runs of white space that push text out
// of sight. What writing systems need stays, so that an honest text comes back byte for byte; no letter is ever put in
// the place of another. The canonical form of a canonical form is itself, and no form is longer than what was given.
func CanonicalText(text string) (string, []Removal) { return cleanText(text, cleanDefinition) }

// CanonicalResultText is CanonicalText for the results of a server. Colours, titles and links of a terminal, private signs
// and layout stay.
func CanonicalResultText(text string) (string, []Removal) { return cleanText(text, cleanResult) }

// maxCleanPasses bounds how often a text is looked at until nothing more is taken.
const maxCleanPasses = 4

func cleanText(text string, how cleanMode) (string, []Removal) {
	if isCleanText(text) {
		return text, nil
	}
	text, traces := validUTF8(text)
	for i := 0; ; i++ {
		c := textCleaner{in: text, how: how}
		if i == maxCleanPasses {
			c.how = cleanAll
		}
		out := c.cleanOnce()
		if i == 0 {
			traces = append(traces, c.removals...)
		}
		if out == text || i == maxCleanPasses {
			return out, traces
		}
		text = out
	}
}

// isCleanText reports whether a text has nothing to clean; most have not, and are not copied.
func isCleanText(text string) bool {
	spaces := 0
	for i := range len(text) {
		b := text[i]
		if b > ' ' && b < 0x7F { // as most are
			spaces = 0
			continue
		}
		if spaces++; b != ' ' && b != '\n' && b != '\t' || spaces >= shortSpaceRun {
			return false
		}
	}
	return true
}

func validUTF8(text string) (string, []Removal) {
	if utf8.ValidString(text) {
		return text, nil
	}
	at := 0
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			at = i
			break
		}
	}
	// The replacement is the question mark, which fits into a byte.
	return strings.ToValidUTF8(text, "?"), []Removal{{Kind: "encoding", At: at}}
}

// A textCleaner goes once through a text.
type textCleaner struct {
	in       string
	how      cleanMode
	out      []byte
	removals []Removal
	prev     rune // the last rune that was kept
	marks    int  // how many combining marks were kept in a row
	line     struct {
		end             int
		rtl, unbalanced bool
	}
	// rtl says, once searched is set, whether the text has letters that run from right to left.
	rtl, searched bool
}

func (c *textCleaner) cleanOnce() string {
	c.out = make([]byte, 0, len(c.in))
	for i := 0; i < len(c.in); {
		i += c.cleanRune(i)
	}
	return string(c.out)
}

// cleanRune handles the character at i, and returns its bytes.
func (c *textCleaner) cleanRune(i int) int {
	r, size := utf8.DecodeRuneInString(c.in[i:])
	switch {
	case r == '\x1b' || r == '\u009b' || r == '\u009d':
		return c.cleanEscape(i)
	case r == '\r':
		return c.cleanReturn(i)
	case r == ' ' || r == '\t' || r == '\n' || r >= 0xA0 && unicode.IsSpace(r):
		return c.cleanSpace(i)
	case r >= 0x0300 && isGenericMark(r):
		if c.marks++; c.marks > maxMarks {
			c.noteRemoval("marks", i, "")
			return size
		}
	case isInvisible(r):
		return c.cleanInvisible(i, r, size)
	}
	c.keepRune(r)
	return size
}

// maxMarks is how many marks of no script of its own a letter may carry. Vietnamese needs two, phonetics three.
const maxMarks = 4

// isGenericMark are the combining marks that fit on every letter.
func isGenericMark(r rune) bool {
	return r <= 0x036F || r >= 0x1AB0 && r <= 0x1AFF || r >= 0x1DC0 && r <= 0x1DFF || r >= 0x20D0 && r <= 0x20FF ||
		r >= 0xFE20 && r <= 0xFE2F
}

func (c *textCleaner) keepRune(r rune) {
	if !isGenericMark(r) || r < 0x0300 {
		c.marks = 0
	}
	c.out = utf8.AppendRune(c.out, r)
	c.prev = r
}

// maxRemovals bounds what is told of one text.
const maxRemovals = 32

func (c *textCleaner) noteRemoval(kind string, at int, hidden string) {
	if n := len(c.removals); n >= maxRemovals || n > 0 && c.removals[n-1].Kind == kind &&
		c.removals[n-1].Hidden == "" && hidden == "" {
		return
	}
	c.removals = append(c.removals, Removal{kind, at, hidden})
}

// cleanReturn lets the end of a line be, and makes one of a return that would have written over it.
func (c *textCleaner) cleanReturn(i int) int {
	switch {
	case strings.HasPrefix(c.in[i:], "\r\n"):
		c.keepRune('\r')
		c.keepRune('\n')
		return 2
	case c.how == cleanResult:
		c.keepRune('\r')
		return 1
	}
	c.noteRemoval("control", i, "")
	c.keepRune('\n')
	return 1
}

// How much white space in a row is layout, and from where on it pushes text out of sight.
const (
	shortSpaceRun       = 12
	maxSpaces           = 40
	maxBlankLines       = 8
	maxResultSpaces     = 160
	maxResultBlankLines = 30
)

// cleanSpace keeps a run of white space, or what is enough of it.
func (c *textCleaner) cleanSpace(i int) int {
	end, lines := i, 0
	for end < len(c.in) {
		r, size := utf8.DecodeRuneInString(c.in[end:])
		if r != ' ' && r != '\t' && r != '\n' && (r < 0xA0 || !unicode.IsSpace(r)) {
			break
		}
		if r == '\n' {
			lines++
		}
		end += size
	}
	most, mostLines := maxSpaces, maxBlankLines
	if c.how == cleanResult {
		most, mostLines = maxResultSpaces, maxResultBlankLines
	}
	run := c.in[i:end]
	if lines <= mostLines && utf8.RuneCountInString(run)-lines <= most*max(lines, 1) || c.how == cleanResult &&
		lines == 0 && c.isTablePadding(i, end) {
		for _, r := range run {
			c.keepRune(r)
		}
		return end - i
	}
	c.noteRemoval("space", i, "")
	if lines > 1 {
		c.keepRune('\n')
	}
	if lines > 0 {
		c.keepRune('\n')
	} else {
		c.keepRune(' ')
	}
	return end - i
}

// isTablePadding reports whether what stands between two places fills up a cell of a table, in a line that begins as
// its rows do.
func (c *textCleaner) isTablePadding(from, to int) bool {
	const most = 4096 // bytes of a row before it
	if to == len(c.in) || c.in[to] != '|' {
		return false
	}
	row := c.in[max(0, from-most):from]
	start := strings.LastIndexByte(row, '\n') + 1
	return (start > 0 || from <= most) && strings.HasPrefix(strings.TrimLeft(row[start:], " \t"), "|")
}

// cleanInvisible keeps what a writing system needs, and takes the rest.
func (c *textCleaner) cleanInvisible(i int, r rune, size int) int {
	if c.how != cleanAll {
		if n := c.keepFlag(i, r); n > 0 {
			return n
		}
		if c.isInvisibleAllowed(i, r, c.nextVisible(i+size)) {
			c.keepRune(r)
			return size
		}
	}
	end := i + size
	for end < len(c.in) { // what hides in a row is read as one
		next, n := utf8.DecodeRuneInString(c.in[end:])
		if !carriesHiddenText(next) || !carriesHiddenText(r) {
			break
		}
		end += n
	}
	c.noteRemoval(removedKind(r), i, decodeInvisible(c.in[i:end]))
	return end - i
}

// nextVisible returns the next rune that is seen.
func (c *textCleaner) nextVisible(i int) rune {
	for n, r := range c.in[i:] {
		if !isInvisible(r) && r != '\x1b' {
			return r
		}
		if n > 64 {
			break
		}
	}
	return 0
}

// keepFlag keeps a flag that is spelt with tags, whole.
func (c *textCleaner) keepFlag(i int, r rune) int {
	if r < tagFirst || r > tagLast || c.prev != blackFlag {
		return 0
	}
	name, n := "", 0
	for _, t := range c.in[i:] {
		if t < tagFirst || t > tagLast || len(name) > 5 {
			return 0
		}
		n += utf8.RuneLen(t)
		if t == tagLast {
			break
		}
		name += string(t - tagFirst)
	}
	if !isFlagTag(name) || !strings.HasSuffix(c.in[:i+n], string(tagLast)) {
		return 0
	}
	for _, t := range c.in[i : i+n] {
		c.keepRune(t)
	}
	return n
}

// isInvisibleAllowed reports whether the unseen rune r at i belongs where it stands: after the rune that was kept last,
// before next.
func (c *textCleaner) isInvisibleAllowed(i int, r, next rune) bool {
	prev := c.prev
	switch {
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF:
		return !isInvisible(prev) && takesVariation(prev, r, next)
	case r == nonJoiner:
		return usesJoiners(prev) || prev == ' ' && c.lineIsRightToLeft(i)
	case r == joiner:
		return usesJoiners(prev) || isEmojiEnd(prev) && isPictograph(next)
	case r == zeroSpace:
		return usesZeroWidthSpace(prev) || prev == zeroSpace && !c.endsWithRepeats(r, 3) || !isInvisible(prev) &&
			usesZeroWidthSpace(next)
	case r == softHyphen:
		return c.isUsefulHyphen(i)
	case r >= 0x180B && r <= 0x180F:
		return prev != 0x180B && (unicode.Is(unicode.Mongolian, prev) && !c.endsWithRepeats(r, 2))
	case r == 0x034F:
		return unicode.Is(unicode.Hebrew, prev) && unicode.Is(unicode.Hebrew, next)
	case r == 0x115F, r == 0x1160:
		return prev >= 0x1100 && prev <= 0x11FF || next >= 0x1100 && next <= 0x11FF
	case r == 0x2800:
		return prev > 0x2800 && prev <= 0x28FF
	case r >= 0xE000 && r <= 0xF8FF:
		return c.how == cleanResult
	case r == 0x200E, r == 0x200F, r == 0x061C:
		return !isInvisible(prev) && (c.lineIsRightToLeft(i) || c.textHasRightToLeft())
	case r >= 0x202A && r <= 0x202C, r >= 0x2066 && r <= 0x2069:
		return c.lineIsRightToLeft(i) && !c.line.unbalanced
	}
	return false
}

// isEmojiEnd reports whether an emoji may end with r, so that a joiner may follow.
func isEmojiEnd(r rune) bool { return isPictograph(r) || r == 0xFE0F }

// endsWithRepeats reports whether the last so many runes that were kept are r already.
func (c *textCleaner) endsWithRepeats(r rune, times int) bool {
	last := strings.Repeat(string(r), times)
	return bytes.HasSuffix(c.out, []byte(last))
}

// isUsefulHyphen reports whether the soft hyphen at i stands within a long word, where one is of use, with two letters
// at least on either side.
func (c *textCleaner) isUsefulHyphen(i int) bool {
	before, after := 0, 0
	for j := i; j > 0; {
		r, n := utf8.DecodeLastRuneInString(c.in[:j])
		if !unicode.IsLetter(r) {
			break
		}
		before, j = before+1, j-n
	}
	for _, r := range c.in[i+len(string(softHyphen)):] {
		if !unicode.IsLetter(r) || after > 16 {
			break
		}
		after++
	}
	return before >= 2 && after >= 2 && before+after >= 6
}

// lineIsRightToLeft reports whether the line that i stands in has letters that run from right to left, and notes
// whether its controls are balanced.
func (c *textCleaner) lineIsRightToLeft(i int) bool {
	if i < c.line.end {
		return c.line.rtl
	}
	start := strings.LastIndexByte(c.in[:i], '\n') + 1
	c.line.end = len(c.in)
	if n := strings.IndexByte(c.in[i:], '\n'); n >= 0 {
		c.line.end = i + n
	}
	c.line.rtl, c.line.unbalanced = false, false
	var open []rune
	for _, r := range c.in[start:c.line.end] {
		switch {
		case r == 0x202A, r == 0x202B, r == 0x2066, r == 0x2067, r == 0x2068:
			open = append(open, r)
		case r == 0x202C, r == 0x2069:
			isolate := r == 0x2069
			if n := len(open); n == 0 || open[n-1] >= 0x2066 != isolate {
				c.line.unbalanced = true
			} else {
				open = open[:n-1]
			}
		case r == 0x202D, r == 0x202E:
			c.line.unbalanced = true
		case isRightToLeft(r) && unicode.IsLetter(r):
			c.line.rtl = true
		}
	}
	c.line.unbalanced = c.line.unbalanced || len(open) > 0
	return c.line.rtl
}

// textHasRightToLeft reports whether the text has letters that run from right to left: marks of direction stand on
// lines without any, too.
func (c *textCleaner) textHasRightToLeft() bool {
	if !c.searched {
		c.searched, c.rtl = true, strings.ContainsFunc(c.in, func(r rune) bool {
			return isRightToLeft(r) &&
				unicode.IsLetter(r)
		})
	}
	return c.rtl
}

func removedKind(r rune) string {
	switch {
	case r >= tagFirst && r <= tagLast:
		return "tag"
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF:
		return "selector"
	case slices.Contains([]rune{0x200E, 0x200F, 0x061C}, r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		return "bidi"
	case r < 0xA0:
		return "control"
	case r >= 0xE000 && r <= 0xF8FF, r >= 0xF0000, isUnassigned(r) && !unicode.Is(unicode.Cf, r):
		return "private"
	}
	return "invisible"
}
