package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzQuoted holds that a text is quoted as encoding/json would, and that nothing is called plain that is not.
func FuzzQuoted(f *testing.F) {
	for _, s := range []string{"", "0", "01234567", "0123456789abcdef\x1f", `"0123456`, "0123456\"\x80", `01234567\`,
		"01234567 \u00fc", "a\x7fb<&>\u2028", "\xff234567", strings.Repeat("a", 600) + "\u00fc"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(s)
		var w recordWriter
		if w.appendQuoted(s); string(w.dst) != strings.TrimSuffix(want.String(), "\n") {
			t.Errorf("wrote %s\nwant  %s", w.dst, want.String())
		}
		odd := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r >= utf8.RuneSelf })
		if got := plainPrefixLen(s); got != odd && (got != len(s) || odd >= 0) {
			t.Errorf("%d bytes of %q are plain, not %d", got, s, odd)
		}
	})
}

// FuzzReader holds that a reader takes for a string, and for a scalar, what encoding/json does, and finds the same end
// of a string as who goes byte by byte.
func FuzzReader(f *testing.F) {
	for _, s := range []string{`"`, `"a`, `"a"b`, `"a\"b"`, `"a\`, `"aaaaaaaaaaaaaa\\"`, "\"aaaaaaaa\x1f\"",
		`"üüüüüüüüüüüü"`, `0`, `00`, `10`, `-`, `-1`, `1-`, `+1`, `1a`, `1e7`, `true`, `nul`,
		`12345678901234567890`, ` 1`, "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := jsonReader{src: s}
		token, ok := r.readString()
		start := len(s) - len(strings.TrimLeft(s, " \n\r\t"))
		want, end := "", start
		if strings.HasPrefix(s[start:], `"`) {
			for i := start + 1; i < len(s) && (s[i] >= ' '); i++ {
				if s[i] == '\\' {
					i++
				} else if s[i] == '"' {
					want, end = s[start:i+1], i+1
					break
				}
			}
		}
		if token != want || ok != (want != "") || r.i != end {
			t.Errorf("read %q %v up to %d of %q, want %q up to %d", token, ok, r.i, s, want, end)
		}
		if word := strings.TrimLeft(s, " \n\r\t"); word == s && !strings.ContainsAny(s, " \n\r\t,]}{[\"") {
			r = jsonReader{src: s}
			if ok := r.readScalar(); ok != json.Valid([]byte(s)) {
				t.Errorf("%q is a scalar: %v", s, ok)
			}
		}
	})
}
