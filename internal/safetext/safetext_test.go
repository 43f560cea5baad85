package safetext

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestNotation(t *testing.T) {
	spaces := strings.Repeat(" ", 3000)
	for _, tt := range []struct{ in, line, text, exact string }{
		{"", "", "", ""},
		{"grüße, 你好, 🙂", "grüße, 你好, 🙂", "grüße, 你好, 🙂", "grüße, 你好, 🙂"},
		{"two\nlines\tand\rmore", `two\nlines\tand\rmore`, "two\nlines\tand\\rmore", `two\nlines\tand\rmore`},
		{"\x1b]0;t\a\b\x7f", `\u001b]0;t\u0007\u0008\u007f`, `\u001b]0;t\u0007\u0008\u007f`,
			`\u001b]0;t\u0007\u0008\u007f`},
		{"\u009b\u202e\u2066", `\u009b\u202e\u2066`, `\u009b\u202e\u2066`, `\u009b\u202e\u2066`},
		{"\u115f\u1160\u3164\uffa0", `\u115f\u1160\u3164\uffa0`, `\u115f\u1160\u3164\uffa0`,
			`\u115f\u1160\u3164\uffa0`},
		{"\u2764\ufe0f\U000e0100", `❤\ufe0f\U000e0100`, `❤\ufe0f\U000e0100`, `❤\ufe0f\U000e0100`},
		{"\u034f\u2800\u00ad\u180e\u200b\u200d", `\u034f\u2800\u00ad\u180e\u200b\u200d`,
			`\u034f\u2800\u00ad\u180e\u200b\u200d`, `\u034f\u2800\u00ad\u180e\u200b\u200d`},
		{"\U000e0041\ue000\u0378\u2028", `\U000e0041\ue000\u0378\u2028`, `\U000e0041\ue000\u0378\u2028`,
			`\U000e0041\ue000\u0378\u2028`},
		{"\u00a0\u3000\ufffd\xff", `\u00a0\u3000\ufffd\xff`, `\u00a0\u3000\ufffd\xff`, `\u00a0\u3000\ufffd\xff`},
		{`C:\new \u3164`, `C:\new \u3164`, `C:\new \u3164`, `C:\\new \\u3164`},
		{"a        b", "a        b", "a        b", "a        b"},
		{"a         b", `a\[9 spaces]b`, "a         b", `a\[9 spaces]b`},
		{spaces, `\[3000 spaces]`, `\[3000 spaces]`, `\[3000 spaces]`},
		{spaces + "\t", `\[3000 spaces]\t`, `\[3001 spaces and tabs]`, `\[3000 spaces]\t`},
		{`[3000 spaces] \[3000 spaces]`, `[3000 spaces] \[3000 spaces]`, `[3000 spaces] \[3000 spaces]`,
			`[3000 spaces] \\[3000 spaces]`},
	} {
		if got := Line(tt.in); got != tt.line {
			t.Errorf("Line(%+q) = %+q, want %+q", tt.in, got, tt.line)
		}
		if got := Text(tt.in); got != tt.text {
			t.Errorf("Text(%+q) = %+q, want %+q", tt.in, got, tt.text)
		}
		if got := Exact(tt.in); got != tt.exact {
			t.Errorf("Exact(%+q) = %+q, want %+q", tt.in, got, tt.exact)
		}
	}
	if got, want := Quote("a\"b\\\n"), `"a\"b\\\n"`; got != want {
		t.Errorf("Quote returns %s, want %s", got, want)
	}
}

// TestNothingUnseenIsLeft shows every code point there is.
func TestNothingUnseenIsLeft(t *testing.T) {
	for r := range rune(unicode.MaxRune + 1) {
		line := Line(string(r))
		if line != string(r) { // its notation
			if strings.ContainsFunc(line, func(shown rune) bool { return shown <= ' ' || shown >= 0x7f }) {
				t.Fatalf("Line(%U) = %+q", r, line)
			}
		} else if r != ' ' && unicode.In(r, unicode.C, unicode.Z, unicode.Variation_Selector,
			unicode.Other_Default_Ignorable_Code_Point) {
			t.Fatalf("Line(%U) is the character itself", r)
		}
	}
}

// original returns the text that Exact shows as s.
func original(s string) (string, error) {
	var b strings.Builder
	for s != "" {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			return b.String() + s, nil
		}
		b.WriteString(s[:at])
		s = s[at:]
		if count, rest, ok := strings.Cut(s, " spaces]"); ok && strings.HasPrefix(s, `\[`) {
			n, err := strconv.Atoi(count[2:])
			if err != nil {
				return "", err
			}
			b.WriteString(strings.Repeat(" ", n))
			s = rest
			continue
		}
		r, multibyte, rest, err := strconv.UnquoteChar(s, 0)
		if err != nil {
			return "", err
		}
		if multibyte {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
		s = rest
	}
	return b.String(), nil
}

func FuzzShow(f *testing.F) {
	for _, s := range []string{"", "a\u3164\\u3164\xff", "\t\n\r\"\\", strings.Repeat(" ", 9) + `\[9 spaces]`,
		"\xe3\x85", "\U000e0041\ufffd"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, at int) {
		if got, err := original(Exact(s)); err != nil || got != s {
			t.Errorf("Exact(%+q) = %+q is read as %+q, %v", s, Exact(s), got, err)
		}
		if once := Line(s); Line(once) != once || strings.ContainsFunc(once, func(r rune) bool { return !Visible(r) }) {
			t.Errorf("Line(%+q) = %+q", s, once)
		}
		if once := Text(s); Text(once) != once {
			t.Errorf("Text(%+q) = %+q", s, once)
		}
		at = min(max(at, 0), len(s))
		var b strings.Builder
		w := NewWriter(&b)
		fmt.Fprint(w, s[:at])
		fmt.Fprint(w, s[at:])
		if err := w.Flush(); err != nil || b.String() != Text(s) {
			t.Errorf("%+q written in two parts, cut at %d: %+q, want %+q (%v)", s, at, b.String(), Text(s), err)
		}
	})
}

func TestTruncate(t *testing.T) {
	const family = "👩\u200d👧"
	for _, tt := range []struct {
		in       string
		max      int
		unit     Unit
		ellipsis string
		want     string
	}{
		{"short", 5, Bytes, "…", "short"},
		{"longer", 5, Bytes, "…", "lo…"},
		{"üüü", 5, Bytes, "", "üü"},
		{"üüü", 5, Bytes, "…", "ü…"},
		{"üüü", 2, Bytes, "…", "ü"},
		{"\x80\x80\x80\x80\x80\x80", 5, Bytes, "", "\x80\x80\x80\x80\x80"},
		{"üüü", 3, Runes, "…", "üüü"},
		{"üüüü", 3, Runes, "…", "üü…"},
		{family + family + "!", 2, Graphemes, "…", family + "…"},
		{family + family, 2, Graphemes, "…", family + family},
		{"any", 0, Runes, "…", ""},
		{"any", -1, Bytes, "", ""},
		{"", 0, Bytes, "…", ""},
	} {
		if got := Truncate(tt.in, tt.max, tt.unit, tt.ellipsis); got != tt.want {
			t.Errorf("Truncate(%+q, %d, %d, %q) = %+q, want %+q", tt.in, tt.max, tt.unit, tt.ellipsis, got, tt.want)
		}
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("grüße 👩\u200d👧", 4)
	f.Add("\x80\x80\xff", 2)
	f.Fuzz(func(t *testing.T, s string, most int) {
		for _, unit := range []Unit{Bytes, Runes, Graphemes} {
			got := Truncate(s, most, unit, "")
			if !strings.HasPrefix(s, got) || len(got) > 0 && length(got, unit) > most || utf8.ValidString(s) &&
				!utf8.ValidString(got) {
				t.Errorf("Truncate(%+q, %d, %d) = %+q", s, most, unit, got)
			}
		}
	})
}

func TestPrintedArgumentsAreShown(t *testing.T) {
	type name string
	got := Sprintf("%-6s|%q|%v|%d|%s|%.1f|%s", name("a\x1b"), name("b\u3164"), fmt.Errorf("c\n"), 7, Shown("\x1b[0m"),
		1.5, []byte("d\t"))
	if want := `a\u001b|"b\u3164"|c\n|7|` + "\x1b[0m" + `|1.5|d\t`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var b strings.Builder
	Fprintln(&b, "a\u202e", 1)
	Fprintf(&b, "%4s|%4d\n", "ü", 5)
	if want := "a\\u202e 1\n   ü|   5\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
