//go:build linux || darwin

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// configured has a person's own configuration in a new directory.
func configured(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	own := filepath.Join(dir, "home/.config/drawbridge")
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "mcp.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// address reads the screen up to an address that somebody signs in at.
func (c *terminal) address() string {
	c.t.Helper()
	c.see("state=")
	c.see("\n")
	all := regexp.MustCompile(`https?://\S+response_type=code\S+`).FindAllString(c.seen.String(), -1)
	return all[len(all)-1]
}

// TestPasteAtATerminal shows the address where no browser can, and takes what the person brings back, once it is right.
func TestPasteAtATerminal(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{})
	dir := configured(t, fmt.Sprintf(`{"servers": {"protected": {"type": "http", "url": %q}}}`, p.ResourceURL))
	c := atTerminal(t, dir, "mcp", "auth", "protected")
	c.see(`To sign in at "protected" with ` + p.Issuer + ", open")
	back, err := p.SignInRedirect(t.Context(), c.address())
	if err != nil {
		t.Fatal(err)
	}
	c.see("no display was found, and BROWSER is not set: open it yourself.")
	const prompt = "Or paste the address that your browser ended at: "
	c.answer(prompt, "")
	c.answer(prompt, "http://127.0.0.1:1/callback?code=c&state=s")
	c.see("State mismatch - possible CSRF attack")
	c.answer(prompt, "hello")
	c.see("Missing authorization code")
	c.answer(prompt, back)
	c.see(`✓ Signed in at "protected"`)
	screen, code := c.ends()
	if code != 0 || !strings.Contains(screen, "the server answers: 2 tools") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// TestSignInIsCancelled leaves at the prompt: not signed in.
func TestSignInIsCancelled(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{})
	dir := configured(t, fmt.Sprintf(`{"servers": {"protected": {"type": "http", "url": %q}}}`, p.ResourceURL))
	for _, key := range []string{"\x03", "\x04"} {
		c := atTerminal(t, dir, "mcp", "auth", "protected")
		c.see("Or paste the address")
		if _, err := c.tty.WriteString(key); err != nil {
			t.Fatal(err)
		}
		c.see("Sign-in cancelled.")
		if screen, code := c.ends(); code != 1 {
			t.Errorf("exit code %d\n%s", code, screen)
		}
	}
	if n := p.Counts().Tokens; n != 0 {
		t.Errorf("%d tokens were had", n)
	}
}

// TestPasteLater ends at a terminal what another process began.
func TestPasteLater(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{})
	dir := configured(t, fmt.Sprintf(`{"servers": {"protected": {"type": "http", "url": %q}}}`, p.ResourceURL))
	c := atTerminal(t, dir, "mcp", "test", "protected")
	back, err := p.SignInRedirect(t.Context(), c.address())
	if err != nil {
		t.Fatal(err)
	}
	c.ends()
	c = atTerminal(t, dir, "mcp", "auth", "protected", "--code", "-")
	c.answer("The address that your browser ended at: ", back)
	c.see("the server answers: 2 tools")
	if screen, code := c.ends(); code != 0 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// TestWizardSignsIn adds a server that requires a sign-in: the test offers to sign in.
func TestWizardSignsIn(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{})
	c := atTerminal(t, t.TempDir(), "mcp", "add", "protected")
	c.answer("Transport", "http")
	c.answer("URL: ", p.ResourceURL)
	c.answer("Header", "")
	c.answer("Scope", "user")
	c.answer("Add it?", "yes")
	c.answer("Test it now?", "")
	c.see(`✗ Failed to connect to "protected": `)
	c.answer(`Sign in at "protected" now? [Y/n] `, "")
	c.see("Server requires OAuth authentication. Launching authorization flow...")
	c.see("To sign in")
	back, err := p.SignInRedirect(t.Context(), c.address())
	if err != nil {
		t.Fatal(err)
	}
	c.answer("Or paste the address", back)
	c.see("the server answers: 2 tools")
	if screen, code := c.ends(); code != 0 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// TestQuickFormProbes has the quick form of add, at a terminal, try a URL and start the sign-in; --no-probe does neither.
func TestQuickFormProbes(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{})
	dir := t.TempDir()
	c := atTerminal(t, dir, "mcp", "add", "later", "--scope", "user", "--no-probe", "--url", p.ResourceURL)
	if screen, code := c.ends(); code != 0 || !strings.Contains(screen, `✓ Added server "later"`) ||
		strings.Contains(screen, "authentication") {
		t.Errorf("without a probe: exit code %d\n%s", code, screen)
	}
	c = atTerminal(t, dir, "mcp", "add", "protected", "--scope", "user", "--url", p.ResourceURL)
	c.see(`✓ Added server "protected" to user config`)
	c.see("Server requires OAuth authentication. Launching authorization flow...")
	c.see("To sign in")
	back, err := p.SignInRedirect(t.Context(), c.address())
	if err != nil {
		t.Fatal(err)
	}
	c.answer("Or paste the address", back)
	c.see("the server answers: 2 tools")
	if screen, code := c.ends(); code != 0 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}
