package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
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

// FuzzRedact checks that redacted arguments are JSON, and that bytes which are not JSON keep nothing.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{`"`, `{"token":"abc","n":1}`, `[{"name":"API_TOKEN","value":{"a":[1,"x"]}}]`, `{"a":1}x`,
		`{"a":00}`, `["--token","x",]`, `"\ud800"`, "\"\xff\"", `{"password":]}`, ` [ true , null ] `,
		`{"value":1,"key":"pin"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := new(RedactionRules).Redact(json.RawMessage(s))
		if valid := rawjson.Valid([]byte(s)) == nil; valid != (rawjson.Valid(got) == nil) || !valid && got != nil {
			t.Errorf("%q is redacted to %q", s, got)
		}
	})
}
