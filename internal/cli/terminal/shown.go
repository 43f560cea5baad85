package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Shown gives a text of a server's as a terminal may have it: what it would obey, or turn round, stands there as an escape
// that can be read. Lines, tabs and the marks that scripts need stay.
func Shown(text string) string {
	if !strings.ContainsFunc(text, obeyed) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !obeyed(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}

// obeyed says whether a terminal does something at a character, or turns the direction of what follows.
func obeyed(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x2028, r == 0x2029, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return unicode.IsControl(r)
}

// For gives a writer for a server's own words: at a terminal they are Shown, each Write by itself; anywhere else they are as they
// are.
func For(w io.Writer) io.Writer {
	if Is(w) {
		return shower{w}
	}
	return w
}

type shower struct{ w io.Writer }

func (s shower) Write(p []byte) (int, error) {
	if _, err := io.WriteString(s.w, Shown(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
