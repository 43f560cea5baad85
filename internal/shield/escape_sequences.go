package shield

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// cleanEscape removes the escape sequence at offset i, together with the text that it conceals. In results, it does not
// remove sequences that only set colours, a title or a link. It returns the number of input bytes handled.
func (c *textCleaner) cleanEscape(i int) int {
	size, style := escapeSequence(c.in[i:])
	if style && c.how == cleanResult {
		c.out = append(c.out, c.in[i:i+size]...)
		return size
	}
	end := i + size
	if hidesText(c.in[i:end]) {
		if n := concealedLen(c.in[end:]); n > 0 {
			c.noteRemoval("escape", i, c.in[end:end+n])
			return size + n
		}
	}
	if strings.HasSuffix(c.in[i:end], "K") || strings.HasSuffix(c.in[i:end], "J") {
		c.eraseLine(i)
		return size
	}
	c.noteRemoval("escape", i, "")
	return size
}

// maxCommandBytes is the largest length of an operating system command (a kind of escape sequence) that is recognized.
const maxCommandBytes = 2048

// escapeSequence returns the length of the escape sequence (ECMA-48) at the beginning of a text. The result style
// reports whether the sequence only sets colours, a title or a link.
func escapeSequence(text string) (size int, style bool) {
	r, n := utf8.DecodeRuneInString(text)
	kind := r
	if r == '\x1b' {
		if n == len(text) {
			return n, false
		}
		next, m := utf8.DecodeRuneInString(text[n:])
		if next >= utf8.RuneSelf || next < 0x20 {
			return n, false
		}
		kind, n = next, n+m
	}
	switch kind {
	case '[', '\u009b':
		for n < len(text) && text[n] >= 0x20 && text[n] <= 0x3F && n < 64 {
			n++
		}
		if n == len(text) || text[n] < 0x40 || text[n] > 0x7E {
			return n, false
		}
		return n + 1, text[n] == 'm' && !hidesText(text[:n+1])
	case ']', 'P', 'X', '^', '_', '\u009d':
		within := text[n:min(len(text), n+maxCommandBytes)]
		end, size := strings.IndexByte(within, '\a'), 1
		if i := strings.Index(text[n:min(len(text), n+maxCommandBytes+1)], "\x1b\\"); i >= 0 && (end < 0 || i < end) {
			end, size = i, 2
		}
		if end >= 0 {
			return n + end + size, kind == ']' && setsTitleOrLink(within[:end])
		}
	}
	return n, false
}

// setsTitleOrLink reports whether an operating system command sets the window title, or begins or ends a link.
func setsTitleOrLink(command string) bool {
	for _, kind := range []string{"0;", "1;", "2;", "8;"} {
		if strings.HasPrefix(command, kind) {
			return true
		}
	}
	return false
}

// hidesText reports whether a sequence makes the following text invisible: the style "concealed", or the same colour
// for text and background.
func hidesText(seq string) bool {
	if !strings.HasSuffix(seq, "m") {
		return false
	}
	fore, back := "", ""
	for p := range strings.SplitSeq(strings.Trim(strings.TrimLeft(seq, "\x1b\u009b"), "[m"), ";") {
		switch {
		case p == "8" || p == "08":
			return true
		case len(p) == 2 && p[0] == '3':
			fore = p[1:]
		case len(p) == 2 && p[0] == '4':
			back = p[1:]
		}
	}
	return fore != "" && fore == back
}

// concealedLen returns the length of the concealed text at the beginning of text. The concealed text ends at the next
// escape character or at the end of text.
func concealedLen(text string) int {
	if n := strings.IndexByte(text, '\x1b'); n >= 0 {
		return n
	}
	return len(text)
}

// eraseLine removes the output line that the erasing sequence at offset at would erase on a terminal, and adds a
// Removal for the line.
func (c *textCleaner) eraseLine(at int) {
	start := bytes.LastIndexByte(c.out, '\n') + 1
	if len(bytes.TrimSpace(c.out[start:])) == 0 && start > 0 {
		start = bytes.LastIndexByte(c.out[:start-1], '\n') + 1
	}
	c.noteRemoval("escape", at, string(c.out[start:]))
	c.out = c.out[:start]
	c.prev, _ = utf8.DecodeLastRune(c.out)
}
