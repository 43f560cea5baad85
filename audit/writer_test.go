package audit

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzWriter holds that what is written without the machinery of the standard library is what that would write.
func FuzzWriter(f *testing.F) {
	for _, s := range []string{"", "0", "01234567", "0123456789abcdef\x1f", `"0123456`, "0123456\"\x80", `01234567\`, "01234567 \u00fc", "a\x7fb<&>\u2028", "\xff234567", strings.Repeat("a", 600) + "\u00fc"} {
		for _, n := range []int64{0, 1, -1, 9, 10, 1e9, -1 << 63, 1<<63 - 1} {
			f.Add(s, n, int64(0), int64(0))
		}
	}
	for _, sec := range []int64{0, -1, 1 << 31, -62135596800, -62167219200, -62167219201, 253402300799, 253402300800, 951782400, 951868799, -1 << 62, 1<<63 - 1} {
		for _, nsec := range []int64{0, 1, 10, 100_000_000, 120_000_000, 999_999_999, 1_000, 50} {
			f.Add("x", int64(7), sec, nsec)
		}
	}
	f.Fuzz(func(t *testing.T, s string, n, sec, nsec int64) {
		var quoted bytes.Buffer
		enc := json.NewEncoder(&quoted)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(s)
		at := time.Unix(sec, nsec).In(time.FixedZone("", int(n%50_000)))
		want := strings.TrimSuffix(quoted.String(), "\n") + `,"n":` + strconv.FormatInt(n, 10) + `,"at":"` + at.UTC().Format(time.RFC3339Nano) + `"`
		if n == 0 {
			want = strings.Replace(want, `,"n":0`, "", 1)
		}
		var w writer
		w.quoted(s)
		w.number(`,"n":`, n)
		w.time(`,"at":`, at)
		if string(w.dst) != want {
			t.Errorf("wrote %s\nwant  %s", w.dst, want)
		}
		odd := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r >= utf8.RuneSelf })
		if got := plain(s); got != odd && (got != len(s) || odd >= 0) {
			t.Errorf("%d bytes of %q are plain, not %d", got, s, odd)
		}
	})
}

// FuzzReader holds that a reader takes for a string, and for a scalar, what encoding/json does, and finds the same end of a string
// as who goes byte by byte.
func FuzzReader(f *testing.F) {
	for _, s := range []string{`"`, `"a`, `"a"b`, `"a\"b"`, `"a\`, `"aaaaaaaaaaaaaa\\"`, "\"aaaaaaaa\x1f\"", `"üüüüüüüüüüüü"`, `0`, `00`, `10`, `-`, `-1`, `1-`, `+1`, `1a`, `1e7`, `true`, `nul`, `12345678901234567890`, ` 1`, "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := reader{src: s}
		token, ok := r.token()
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
			r = reader{src: s}
			if ok := r.scalar(); ok != json.Valid([]byte(s)) {
				t.Errorf("%q is a scalar: %v", s, ok)
			}
		}
	})
}
