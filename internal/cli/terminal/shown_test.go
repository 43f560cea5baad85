package terminal

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                  "plain",
		"two\nlines\tétés":       "two\nlines\tétés",
		"می\u200cخواهم":          "می\u200cخواهم",
		"👩\u200d🚀 \u05d0\u200f":  "👩\u200d🚀 \u05d0\u200f",
		"\x1b[2J\x07":            `\x1b[2J\x07`,
		"pass\b\b\b\bword\rover": `pass\x08\x08\x08\x08word\x0dover`,
		"\u009b31m\u0090q\u009c": `\x9b31m\x90q\x9c`,
		"a\u202eb\u202c\u2066":   `a\u{202e}b\u{202c}\u{2066}`,
		"\U000e0041":             `\u{e0041}`,
		"":                       "",
	} {
		if got := Shown(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
		if again := Shown(Shown(text)); again != want {
			t.Errorf("%q is shown as %q at last", text, again)
		}
	}
}

func TestAWriterThatIsShown(t *testing.T) {
	var b strings.Builder
	if n, err := fmt.Fprint(shower{&b}, "\x1b[2J\n"); n != 5 || err != nil || b.String() != "\\x1b[2J\n" {
		t.Errorf("%d, %v: %q", n, err, b.String())
	}
	if For(&b) != io.Writer(&b) {
		t.Error("what is no terminal is shown something else")
	}
}
