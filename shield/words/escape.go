package words

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// escape takes the escape sequence at i, and what it conceals. A result's colours, titles and links stay as they are.
func (c *cleaner) escape(i int) int {
	size, style := sequence(c.in[i:])
	if style && c.how == lenient {
		c.out = append(c.out, c.in[i:i+size]...)
		return size
	}
	end := i + size
	if conceals(c.in[i:end]) {
		if n := shown(c.in[end:]); n > 0 {
			c.took("escape", i, c.in[end:end+n])
			return size + n
		}
	}
	if strings.HasSuffix(c.in[i:end], "K") || strings.HasSuffix(c.in[i:end], "J") {
		c.erase(i)
		return size
	}
	c.took("escape", i, "")
	return size
}

// mostCommand bounds how far the end of a command to the system is looked for.
const mostCommand = 2048

// sequence measures the escape sequence that text begins with (ECMA-48), and says whether it only styles: colours,
// a title, a link.
func sequence(text string) (size int, style bool) {
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
		return n + 1, text[n] == 'm' && !conceals(text[:n+1])
	case ']', 'P', 'X', '^', '_', '\u009d':
		within := text[n:min(len(text), n+mostCommand)]
		end, size := strings.IndexByte(within, '\a'), 1
		if i := strings.Index(text[n:min(len(text), n+mostCommand+1)], "\x1b\\"); i >= 0 && (end < 0 || i < end) {
			end, size = i, 2
		}
		if end >= 0 {
			return n + end + size, kind == ']' && styles(within[:end])
		}
	}
	return n, false
}

// styles says whether an operating system command sets a title or begins or ends a link.
func styles(command string) bool {
	for _, kind := range []string{"0;", "1;", "2;", "8;"} {
		if strings.HasPrefix(command, kind) {
			return true
		}
	}
	return false
}

// conceals says whether a sequence hides what comes after it: concealed, or in black on black and its like.
func conceals(seq string) bool {
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

// shown measures what is concealed: up to the next sequence that styles.
func shown(text string) int {
	if n := strings.IndexByte(text, '\x1b'); n >= 0 {
		return n
	}
	return len(text)
}

// erase takes the line that an erasing sequence would have taken from the screen.
func (c *cleaner) erase(at int) {
	start := bytes.LastIndexByte(c.out, '\n') + 1
	if len(bytes.TrimSpace(c.out[start:])) == 0 && start > 0 {
		start = bytes.LastIndexByte(c.out[:start-1], '\n') + 1
	}
	c.took("escape", at, string(c.out[start:]))
	c.out = c.out[:start]
	c.prev, _ = utf8.DecodeLastRune(c.out)
}
