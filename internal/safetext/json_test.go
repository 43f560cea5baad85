package safetext

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		``:                                   ``,
		"{\"a\":\"plain\\u001b\"}\n":         "{\"a\":\"plain\\u001b\"}\n",
		`"grüße, 你好, ελλ, 🙂"`:                `"grüße, 你好, ελλ, 🙂"`,
		"\"\u009b\x7f\u202e\u2066\"":         `"\u009b\u007f\u202e\u2066"`,
		"\"a\u200bb\u200d\ufeff\u00ad\"":     `"a\u200bb\u200d\ufeff\u00ad"`,
		"\"\U000e0041\ufe0f\U000e0100\"":     `"\udb40\udc41\ufe0f\udb40\udd00"`,
		"\"\u3164\u115f\u2800\u2028\ue000\"": `"\u3164\u115f\u2800\u2028\ue000"`,
		"\"a\x9bb\"":                         `"a\ufffdb"`,
	} {
		if got := string(JSON([]byte(in))); got != want {
			t.Errorf("JSON(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestJSONSaysTheSame reads all characters there are.
func TestJSONSaysTheSame(t *testing.T) {
	var b strings.Builder
	for r := range rune(unicode.MaxRune + 1) {
		b.WriteRune(r)
	}
	in, err := json.Marshal(b.String())
	if err != nil {
		t.Fatal(err)
	}
	out := JSON(in)
	var got string
	if err := json.Unmarshal(out, &got); err != nil || got != b.String() {
		t.Fatalf("it says something else (%v)", err)
	}
	for _, r := range string(out) {
		if (r < 0x20 || r >= 0x7f) && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl,
			unicode.Zp, unicode.Bidi_Control, unicode.Variation_Selector) {
			t.Fatalf("%U is there as it was", r)
		}
	}
}
