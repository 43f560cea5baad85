package shield_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/google/go-cmp/cmp"
)

// TestHost has hosts in other letters than ASCII: their ASCII form, none where they are no names, and which rules are
// met.
func TestHost(t *testing.T) {
	long := strings.Repeat("ü", 2000)
	for _, tt := range []struct{ in, ascii, rule string }{
		{"example.com", "example.com", ""},
		{"EXAMPLE.com", "EXAMPLE.com", ""},
		{"my_host", "my_host", ""},
		{"::1", "::1", ""},
		{"bücher.example", "xn--bcher-kva.example", ""},
		{"straße.de", "xn--strae-oqa.de", ""},
		{"日本語カナ.jp", "xn--lck2c295sncbk91h.jp", ""},
		{"東京tokyo.jp", "xn--tokyo-w91hq39l.jp", ""},
		{"tokyo東京.jp", "xn--tokyo-191hq39l.jp", ""},
		{"मराठी.भारत", "xn--d2b1ag0dl.xn--h2brj9c", ""},
		{"почта.example.рф", "xn--80a1acny.example.xn--p1ai", ""},
		{"نامه\u200cای.com", "xn--mgba3gch31f060k.com", ""},
		{"🍕.ws", "xn--vi8h.ws", ""},
		{"g\u043eogle.com", "xn--gogle-jye.com", "lookalikes"},
		{"xn--ggle-55da.com", "xn--ggle-55da.com", "lookalikes"},
		{"XN--ggle-55da.com", "XN--ggle-55da.com", "lookalikes"},
		{"p\u03b1ypal.com", "xn--pypal-d9d.com", "lookalikes"},
		{"ｇoogle。com", "google.com", ""},
		{"a\u202eb.example", "", "page"},
		{"a\u2066b.example", "", "page"},
		{"go\u200bogle.com", "", "page"},
		{"go\u200cogle.com", "", "page"},
		{"go\u00adogle.com", "", "page"},
		{"goo\u3164gle.com", "", "page"},
		{"goo\u2800gle.com", "", "page"},
		{"goo\U000e0061gle.com", "", "page"},
		{"bank.test\uff0fevil.test", "", "page"},
		{"bank.test\uff20evil.test", "", "page"},
		{"bank.test\u3000evil.test", "", "page"},
		{"bü..de", "", "page"},
		{long, "", "page"},
	} {
		if got, ok := shield.NormalizeHost(tt.in); got != tt.ascii || ok != (tt.ascii != "") {
			t.Errorf("%.40q is %q, %v, want %q", tt.in, got, ok, tt.ascii)
		}
		if tt.in == "::1" {
			continue // an address has it in brackets
		}
		params, err := json.Marshal(map[string]string{"mode": "url", "url": "https://" + tt.in + "/"})
		if err != nil {
			t.Fatal(err)
		}
		report, err := newShield(t).CheckQuestion(params)
		if err != nil {
			t.Fatal(err)
		}
		met := shield.RuleNames(report.Reasons)
		if first := append(met, "")[0]; first != tt.rule {
			t.Errorf("%.40q meets %q, want %q", tt.in, met, tt.rule)
		}
		if diff := cmp.Diff(string(params), string(report.Canonical)); diff != "" {
			t.Errorf("%.40q does not stay (-want +got):\n%s", tt.in, diff)
		}
	}
}

// FuzzHost: what is shown is ASCII, and shown again as it is.
func FuzzHost(f *testing.F) {
	for _, host := range []string{"bücher.example", "a\u202eb", "xn--ggle-55da.com", "ｇoogle。com",
		"\u0646\u0627\u0645\u0647\u200c\u0627\u06cc.com"} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		ascii, ok := shield.NormalizeHost(host)
		if again, still := shield.NormalizeHost(ascii); ok && (!still || again != ascii) {
			t.Errorf("%q became %q and then %q", host, ascii, again)
		}
	})
}
