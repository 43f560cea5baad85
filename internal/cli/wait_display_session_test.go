//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestApprovalOfACallInASession asks for the approval of a call of /tools call with a question for y or n, which no line
// that was typed before answers.
func TestApprovalOfACallInASession(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	agentHome(t, home)
	settings := filepath.Join(home, ".config", "drawbridge", "drawbridge.toml")
	file, err := os.OpenFile(settings, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString("[[tools.policy.rules]]\neffect = \"ask\"\ntools = \"echo\"\n")
	if closed := file.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	c := atTerminal(t, dir, "-i")
	c.see("/help")
	c.press("/tools call every__echo text=hello\r")
	c.see("allow once?")
	c.see("y yes")
	c.pressUntil("y", "allow once? yes")
	c.see("hello")
	c.press("/quit\r")
	if screen, code := c.ends(); code != 0 || strings.Contains(screen, "Reply:") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}
