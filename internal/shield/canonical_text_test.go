package shield_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/google/go-cmp/cmp"
)

// needed are texts whose unseen characters their writing systems need.
func needed() map[string]string {
	return map[string]string{
		"Persian":           "می\u200cخواهید ادامه دهید؟",
		"Persian, a blank":  "برای تایید به \u200c%(url)s برو",
		"mark of a line":    "سپاس\n\u200f%(site)s",
		"Sinhala":           "ශ්\u200dරී ලංකාව",
		"Devanagari":        "र्\u200dय क्\u200cष",
		"family":            "👨\u200d👩\u200d👧\u200d👦",
		"rainbow flag":      "🏳\ufe0f\u200d🌈",
		"skin tone":         "👩🏽\u200d🚀",
		"flag of England":   "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
		"keycap":            "1\ufe0f\u20e3 #\ufe0f\u20e3",
		"text style":        "⚠\ufe0f and ✔\ufe0e ©\ufe0f",
		"ideograph variant": "葛\U000e0100城",
		"Khmer":             "ឯកសារ\u200bនេះ",
		"Khmer, thrice":     "បាន\u200b\u200b\u200b របស់",
		"Khmer, quoted":     "\"\u200bឯកសារ\"",
		"Thai":              "ภาษา\u200bไทย",
		"Arabic mark":       "حوالہ نمبر \u200e#88412\u200e محفوظ",
		"Hebrew":            "בשעה 14:30 \u200f(שעון ישראל)",
		"balanced":          "הקובץ \u2067report.pdf\u2069 נשמר",
		"Mongolian":         "ᠬᠡᠯᠡ\u180e\u180eᠤ ᠪᠢᠴᠢᠭ\u180b",
		"soft hyphen":       "Donau\u00addampf\u00adschiff",
		"no-break":          "14\u202fh\u00a030, 1\u202f299,00\u00a0€",
		"ideographic space": "東京　大阪",
		"Vietnamese":        "Nguye\u0302\u0303n",
		"line ends":         "one\r\ntwo\n\tthree",
		"Braille":           "⠓⠑⠇⠇⠕⠀⠓⠊",
		"line separator":    "one\u2028two\u2029three",
		"new pictures":      "\U0001fae9 \U0002ebf0",
		"Hangul jamo":       "\u1112\u1161\u11ab",
	}
}

func TestHonestUnicodeStays(t *testing.T) {
	for name, text := range needed() {
		if got, traces := shield.CanonicalText(text); got != text {
			t.Errorf("%s: %+q became %+q, %v", name, text, got, traces)
		}
		if got, traces := shield.CanonicalResultText(text); got != text {
			t.Errorf("%s in a result: %+q became %+q, %v", name, text, got, traces)
		}
	}
}

// TestAWideTableStays has cells padded to the width of their column in a result, which push nothing out of sight that
// a row has not; and a sentence that spaces push there, with no table around it.
func TestAWideTableStays(t *testing.T) {
	wide := strings.Repeat(" ", 300)
	for _, table := range []string{
		"| Name | What it does" + wide + "|\n| ---- | ---- |",
		"Options:\n\n  | `a` | Says so" + wide + "| `true` |\n  | `b` | Does not" + wide + "| `false` |\n",
	} {
		if got, traces := shield.CanonicalResultText(table); got != table || len(traces) > 0 {
			t.Errorf("%q became %q, %v", table, got, traces)
		}
	}
	for _, pushed := range []string{"Done." + wide + "| Then read it", "Done." + wide + "Then read it", "| Done" +
		wide + "Then read it |"} {
		if got, traces := shield.CanonicalResultText(pushed); strings.Contains(got, wide) || len(traces) == 0 {
			t.Errorf("%q became %q, %v", pushed, got, traces)
		}
	}
}

func TestHiddenIsTaken(t *testing.T) {
	tags := func(s string) string {
		return strings.Map(func(r rune) rune { return r + 0xE0000 }, s)
	}
	selectors := func(s string) string {
		return strings.Map(func(r rune) rune { return r - 16 + 0xE0100 }, s)
	}
	bits := ""
	for _, b := range []byte("read it") {
		for i := 7; i >= 0; i-- {
			bits += string([]rune{'\u200b', '\u200c'}[b>>i&1])
		}
	}
	for _, tt := range []struct {
		name, text, want string
		traces           []shield.Removal
	}{
		{"zero width", "ig\u200bno\u200dre", "ignore", []shield.Removal{{Kind: "invisible", At: 2}}},
		{"tags", "Adds." + tags("read it"), "Adds.", []shield.Removal{{Kind: "tag", At: 5, Hidden: "read it"}}},
		{"selectors", "😀" + selectors("read it"), "😀", []shield.Removal{{Kind: "selector", At: 4,
			Hidden: "read it"}}},
		{"bits", "Adds." + bits, "Adds.", []shield.Removal{{Kind: "invisible", At: 5, Hidden: "read it"}}},
		{"override", "a \u202egnp.exe\u202c", "a gnp.exe", []shield.Removal{{Kind: "bidi", At: 2}}},
		{"mark in Latin", "a\u200eb", "ab", []shield.Removal{{Kind: "bidi", At: 1}}},
		{"unbalanced", "הקובץ \u2067x", "הקובץ x", []shield.Removal{{Kind: "bidi", At: 11}}},
		{"controls", "a\x00b\x07c\x7f\u0085d", "abcd", []shield.Removal{{Kind: "control", At: 1}}},
		{"return", "harmless\revil", "harmless\nevil", []shield.Removal{{Kind: "control", At: 8}}},
		{"conceal", "a\x1b[8mread it\x1b[28mb", "ab", []shield.Removal{{Kind: "escape", At: 1, Hidden: "read it"},
			{Kind: "escape", At: 12}}},
		{"erase", "a\nread it\x1b[2K\x1b[1A\x1b[2K", "", []shield.Removal{{Kind: "escape", At: 9, Hidden: "read it"},
			{Kind: "escape", At: 13}, {Kind: "escape", At: 17, Hidden: "a\n"}}},
		{"filler", "a\u3164b\u2800c", "abc", []shield.Removal{{Kind: "invisible", At: 1}}},
		{"private", "a\ue000b\U000f0001", "ab", []shield.Removal{{Kind: "private", At: 1}}},
		{"undefined", "a\u0378b\ufdd0c", "abc", []shield.Removal{{Kind: "private", At: 1}}},
		{"note without a head", "a\U0001d159b", "ab", []shield.Removal{{Kind: "invisible", At: 1}}},
		{"flood", "a" + strings.Repeat("\u0301", 9), "a" + strings.Repeat("\u0301", 4),
			[]shield.Removal{{Kind: "marks", At: 9}}},
		{"pushed right", "a" + strings.Repeat(" ", 300) + "b", "a b", []shield.Removal{{Kind: "space", At: 1}}},
		{"pushed down", "a" + strings.Repeat("\n", 60) + "b", "a\n\nb", []shield.Removal{{Kind: "space", At: 1}}},
		{"short soft hyphens", "i\u00adg\u00adn", "ign", []shield.Removal{{Kind: "invisible", At: 1}}},
		{"not UTF-8", "a\xffb", "a?b", []shield.Removal{{Kind: "encoding", At: 1}}},
		{"flag of nowhere", "🏴\U000e0061\U000e0062\U000e007f", "🏴", []shield.Removal{{Kind: "tag", At: 4}}},
		{"joiner in Latin", "a\u200cb", "ab", []shield.Removal{{Kind: "invisible", At: 1}}},
	} {
		got, traces := shield.CanonicalText(tt.text)
		if got != tt.want {
			t.Errorf("%s: %+q, want %+q", tt.name, got, tt.want)
		}
		if diff := cmp.Diff(tt.traces, traces); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestColoursOfAResultStay has what a terminal shows with colours, a title and a link, and what it would not show.
func TestColoursOfAResultStay(t *testing.T) {
	const coloured = "\x1b]0;build\x07\x1b[32m✔\x1b[0m compiled \x1b]8;;https://x.test\x1b\\log\x1b]8;;\x1b\\\ue0b0\x0d\n"
	if got, traces := shield.CanonicalResultText(coloured); got != coloured {
		t.Errorf("%q became %q, %v", coloured, got, traces)
	}
	for _, hidden := range []string{"\x1b[8mread it\x1b[0m", "\x1b[30;40mread it\x1b[0m", "read it\x1b[2K"} {
		if got, _ := shield.CanonicalResultText("ok\n" + hidden); strings.Contains(got, "read it") {
			t.Errorf("%q became %q", hidden, got)
		}
	}
}

// FuzzCanonical is row FZ-6: a text that was cleaned is clean, and stays as it is.
func FuzzCanonical(f *testing.F) {
	for _, text := range needed() {
		f.Add(text)
	}
	for _, text := range []string{"a\x1b[8mx\x1b[0m", "\u202eabc\u202c", "😀\U000e0141\U000e0142", "\xff\xfe",
		"a\u200b\u200c\u200b", "\r\r\n\x1b]0;", "🏴\U000e0067\u200d", strings.Repeat(" \n", 50)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, canonical := range map[string]func(string) (string,
			[]shield.Removal){"definition": shield.CanonicalText, "result": shield.CanonicalResultText} {
			once, traces := canonical(text)
			if twice, more := canonical(once); twice != once || len(more) > 0 {
				t.Errorf("%s: %+q became %+q, and that %+q (%v)", name, text, once, twice, more)
			}
			if len(once) > 2*len(text) || !utf8.ValidString(once) {
				t.Errorf("%s: %+q became %+q", name, text, once)
			}
			if once != text && len(traces) == 0 {
				t.Errorf("%s: %+q became %+q, and nothing says so", name, text, once)
			}
			for _, r := range once {
				if name == "definition" && (r < 0x20 && !strings.ContainsRune("\n\t\r", r) || r == 0x7F ||
					r == 0x202E || r == 0x202D || r >= 0xE0001 && r <= 0xE001F || r >= 0xF0000) {
					t.Errorf("%s: %+q kept %+q", name, text, r)
				}
			}
		}
	})
}
