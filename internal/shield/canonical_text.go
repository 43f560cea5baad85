package shield

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Removal describes a part that CanonicalText or CanonicalResultText removed from a text.
type Removal struct {
	// Kind is the kind of the removed part: "invisible", "tag", "selector", "bidi", "control", "escape", "private",
	// "marks", "space" or "encoding".
	Kind string
	// At is the byte offset of the removed part in the original text.
	At int
	// Hidden is the text that the removed part encoded, for example with tag characters. It is "" if there was none.
	Hidden string
}

// A cleanMode selects which characters cleanText removes.
type cleanMode int

const (
	cleanDefinition cleanMode = iota
	// cleanResult is for the results of calls. It does not remove terminal colours, titles and links, private-use
	// characters, and moderate amounts of white space.
	cleanResult
	// cleanAll removes every invisible character, even if a script needs it. It also removes everything that the other
	// modes remove.
	cleanAll
)

// CanonicalText returns the canonical form of a text of a tool definition, and the list of removed parts. It removes
// invisible characters, characters that change how others are displayed, escape sequences, and long series of combining
// marks. It also shortens white space that is long enough to move text out of the visible area. Characters that writing
// systems need are not removed, so ordinary text is returned unchanged. No letter is replaced by another letter. The
// function is idempotent, and the result is never longer than the text.
func CanonicalText(text string) (string, []Removal) { return cleanText(text, cleanDefinition) }

// CanonicalResultText is like CanonicalText, for the results of a server. It does not remove terminal colours, titles
// and links, private-use characters, and moderate amounts of white space.
func CanonicalResultText(text string) (string, []Removal) { return cleanText(text, cleanResult) }

// maxCleanPasses is the number of passes over a text after which a last pass uses cleanAll. A removal can make further
// characters removable, so a text is cleaned until a pass does not change it.
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

// isCleanText reports whether a text has nothing to remove. It is a fast test that avoids copying, because most texts
// are clean.
func isCleanText(text string) bool {
	spaces := 0
	for i := range len(text) {
		b := text[i]
		if b > ' ' && b < 0x7F { // most bytes
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
	// A question mark is used because U+FFFD, at three bytes, could make the text longer.
	return strings.ToValidUTF8(text, "?"), []Removal{{Kind: "encoding", At: at}}
}

// A textCleaner makes one cleaning pass over a text.
type textCleaner struct {
	in       string
	how      cleanMode
	out      []byte
	removals []Removal
	prev     rune // the last rune that was not removed
	marks    int  // number of successive combining marks that were not removed
	line     struct {
		end             int
		rtl, unbalanced bool
	}
	// rtl reports whether the text has right-to-left letters. It is valid once searched is set.
	rtl, searched bool
}

func (c *textCleaner) cleanOnce() string {
	c.out = make([]byte, 0, len(c.in))
	for i := 0; i < len(c.in); {
		i += c.cleanRune(i)
	}
	return string(c.out)
}

// cleanRune copies or removes the character at offset i, and returns the number of input bytes that it handled.
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

// maxMarks is the largest number of generic combining marks on one letter. Vietnamese needs two, phonetic notation
// three.
const maxMarks = 4

// isGenericMark reports whether r is a combining mark that can be put on letters of any script.
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

// maxRemovals is the largest number of removals, or of findings, that are reported for one text.
const maxRemovals = 32

func (c *textCleaner) noteRemoval(kind string, at int, hidden string) {
	if n := len(c.removals); n >= maxRemovals || n > 0 && c.removals[n-1].Kind == kind &&
		c.removals[n-1].Hidden == "" && hidden == "" {
		return
	}
	c.removals = append(c.removals, Removal{kind, at, hidden})
}

// cleanReturn handles the carriage return at offset i. It does not change "\r\n", and replaces a single "\r" by "\n".
// On a terminal, the text after a single "\r" would overwrite the line. In the results of calls, a single "\r" is not
// replaced.
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

// Limits of white space in one run. A longer run could move the following text out of the visible area, and is
// shortened. A run shorter than shortSpaceRun needs no check.
const (
	shortSpaceRun       = 12
	maxSpaces           = 40
	maxBlankLines       = 8
	maxResultSpaces     = 160
	maxResultBlankLines = 30
)

// cleanSpace copies the run of white space at offset i. It replaces an overlong run by one space or by up to two line
// ends.
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

// isTablePadding reports whether the white space from offset from to offset to fills a cell of a Markdown table: "|"
// follows, and the line begins with "|".
func (c *textCleaner) isTablePadding(from, to int) bool {
	const most = 4096 // bytes searched for the start of the row
	if to == len(c.in) || c.in[to] != '|' {
		return false
	}
	row := c.in[max(0, from-most):from]
	start := strings.LastIndexByte(row, '\n') + 1
	return (start > 0 || from <= most) && strings.HasPrefix(strings.TrimLeft(row[start:], " \t"), "|")
}

// cleanInvisible copies the invisible character at offset i if a writing system needs it there. Otherwise it removes
// the whole run of invisible characters, decodes the hidden text, and adds a Removal.
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
	for end < len(c.in) { // a run of invisible characters is decoded as a whole
		next, n := utf8.DecodeRuneInString(c.in[end:])
		if !carriesHiddenText(next) || !carriesHiddenText(r) {
			break
		}
		end += n
	}
	c.noteRemoval(removedKind(r), i, decodeInvisible(c.in[i:end]))
	return end - i
}

// nextVisible returns the first visible rune at or after offset i, or 0 if there is none within about 64 bytes.
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

// keepFlag copies a flag emoji that is spelt with tag characters, such as the flag of Scotland. It returns the number
// of bytes copied, or 0 if there is no flag at offset i.
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

// isInvisibleAllowed reports whether the invisible rune r at offset i is legitimate between two runes: the last rune
// that was not removed, and the visible rune next.
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

// isEmojiEnd reports whether r can be the last rune of an emoji, so that a zero-width joiner may follow.
func isEmojiEnd(r rune) bool { return isPictograph(r) || r == 0xFE0F }

// endsWithRepeats reports whether the output ends with r repeated the given number of times.
func (c *textCleaner) endsWithRepeats(r rune, times int) bool {
	last := strings.Repeat(string(r), times)
	return bytes.HasSuffix(c.out, []byte(last))
}

// isUsefulHyphen reports whether the soft hyphen at offset i is inside a word of at least six letters. At least two
// letters must precede and follow the hyphen. A line break can use a soft hyphen only there.
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

// lineIsRightToLeft reports whether the line around offset i has right-to-left letters. It also sets c.line.unbalanced
// if the direction controls of the line are unbalanced.
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

// textHasRightToLeft reports whether the text has right-to-left letters in any line. Direction marks are allowed in
// the other lines of such a text.
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
