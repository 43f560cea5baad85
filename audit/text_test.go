package audit

import (
	"strings"
	"testing"
)

// FuzzHarmless holds that nothing is hidden in a text that is not looked at word by word.
func FuzzHarmless(f *testing.F) {
	for _, s := range []string{"fs__read", "0123456789abcdef0123456789abcdef", "--token", "bearer", "password", "user:pass@host", "a\tb", `token"x"`, "u@h", "editor 1.2",
		"bearer abcdefgh", "x (Basic abcdefgh", "DIGEST abcdefgh", "bearers abcdefgh", "--token x", "a/-p x", "a-token x", "x-----BEGIN KEY----- " + strings.Repeat("MIIEvQ+/", 8), "x-----BEGIN KEY"} {
		f.Add(s)
	}
	for _, prefix := range strings.Fields("ghp_ github_pat_ sk- rk_live_ xoxb- AKIA AGE-SECRET-KEY- eyJ npm_ hf_ ya29. dbr_ pypi- lin_api_") {
		secret := prefix + strings.Repeat("a", leastKnown)
		if harmless("[" + secret + "]") {
			f.Errorf("%s passes", secret)
		}
		f.Add(secret)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !harmless(s) {
			return
		}
		p := parser{s: s}
		for p.i < len(s) {
			p.step()
		}
		if p.found || WithoutKeys(s, func(int) string { return "" }) != s {
			t.Errorf("something is hidden in %q", s)
		}
	})
}
