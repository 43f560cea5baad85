//go:build linux || darwin

package cli_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// TestTwoOriginsAtATerminal signs in where the page and the token endpoint have different origins. The person sees both
// before anything is sent, and a plain return is a no.
func TestTwoOriginsAtATerminal(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{})
	other := strings.Replace(p.Issuer, "127.0.0.1", "localhost", 1)
	p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Discovery.Set = map[string]any{"token_endpoint": other + "/token"} })
	dir := t.TempDir()
	file := filepath.Join(dir, "home/.config/drawbridge/mcp.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"servers":{"protected":{"url":%q}}}`, p.ResourceURL), 0o600); err != nil {
		t.Fatal(err)
	}
	const question = "Sign in at the first, and send the result to the second? [y/N] "
	ask := func(answer string) *terminal {
		c := atTerminal(t, dir, "mcp", "auth", "protected", "--no-browser")
		c.see(`"protected" signs in with ` + p.Issuer + ". That issuer has you sign in at")
		c.see("  " + p.Issuer)
		c.see("  " + other)
		c.see("Accept that only if both belong to the same service.")
		c.answer(question, answer)
		return c
	}
	screen, code := ask("").ends()
	if code != 1 || !strings.Contains(screen, "Sign-in cancelled.") || strings.Contains(screen, "To sign in at") {
		t.Errorf("a plain return ends with %d:\n%s", code, screen)
	}
	c := ask("y")
	c.see("Or paste the address that your browser ended at: ")
	page := regexp.MustCompile(`http://127\.0\.0\.1:\d+/authorize\?\S+`).FindString(c.seen.String())
	if code := oauthtest.Main(context.Background(), []string{"visit", page}, io.Discard, os.Stderr); code != 0 {
		t.Fatalf("the browser at %q ends with %d", page, code)
	}
	if screen, code := c.ends(); code != 0 || !strings.Contains(screen, `✓ Signed in at "protected"`) {
		t.Errorf("a yes ends with %d:\n%s", code, screen)
	}
}
