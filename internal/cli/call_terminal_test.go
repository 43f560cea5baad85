//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// askingHome writes a configuration with one server whose echo waits for approval.
func askingHome(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "home", ".config", "drawbridge")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"mcp.json": fmt.Sprintf(`{"servers": {"every": {"command": %q, "env": {%q: "everything"}}}}`, self,
			mcptest.ServerVariable),
		"drawbridge.toml": "[[tools.policy.rules]]\neffect = \"ask\"\ntools = \"echo\"\n",
	} {
		if err := os.WriteFile(filepath.Join(config, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAPersonAnswersAtTheCall: a call that waits for approval says so at once, shows its arguments, and takes the
// answer: in a process of the command's own and at the hub.
func TestAPersonAnswersAtTheCall(t *testing.T) {
	for _, place := range []string{"own", "hub"} {
		t.Run(place, func(t *testing.T) {
			dir := t.TempDir()
			askingHome(t, dir)
			if place == "hub" {
				d := newDesk(t)
				d.home, d.env["HOME"] = filepath.Join(dir, "home"), filepath.Join(dir, "home")
				d.project = dir
				d.talk()
			}
			for _, test := range []struct {
				answer, want string
				code         int
			}{
				{"y", "for \\u202e you", 0}, {"", "a person said no", 1}, {"n", "a person said no", 1},
			} {
				c := atTerminal(t, dir, "tools", "call", "every__echo", `{"text":"for \u202e you `+test.answer+`"}`)
				c.see(`"text": "for \u202e you ` + test.answer + `"`)
				c.answer("waits for approval (5m; or: drawbridge ask): allow once? [y/N] ", test.answer)
				screen, code := c.ends()
				if code != test.code || !strings.Contains(screen, test.want) {
					t.Errorf("answered %q: exit code %d\n%s", test.answer, code, screen)
				}
			}
			c := atTerminal(t, dir, "tools", "call", "every__echo", `{"text":"stop"}`)
			c.see("allow once? [y/N]")
			if _, err := c.tty.WriteString("\x03"); err != nil {
				t.Fatal(err)
			}
			if screen, code := c.ends(); code != 130 || !strings.Contains(screen, "interrupted") {
				t.Errorf("Ctrl-C at the question: exit code %d\n%s", code, screen)
			}
		})
	}
}

// TestAnAnswerElsewhereEndsTheQuestion: the question of a call that was answered by "drawbridge ask" disappears.
func TestAnAnswerElsewhereEndsTheQuestion(t *testing.T) {
	dir := t.TempDir()
	askingHome(t, dir)
	d := newDesk(t)
	d.home, d.env["HOME"] = filepath.Join(dir, "home"), filepath.Join(dir, "home")
	c := atTerminal(t, dir, "tools", "call", "every__echo", `{"text":"hello"}`)
	c.see("allow once? [y/N]")
	d.run(0, "ask", "allow", d.waiting())
	if screen, code := c.ends(); code != 0 || !strings.Contains(screen, "\nhello") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// TestProgressIsDrawn: the progress of a tool is in the status line of a terminal.
func TestProgressIsDrawn(t *testing.T) {
	dir := t.TempDir()
	askingHome(t, dir)
	c := atTerminal(t, dir, "tools", "call", "every__progress", `{"steps":3}`)
	c.see("2 of 3")
	if screen, code := c.ends(); code != 0 || strings.HasSuffix(strings.TrimSpace(screen), "of 3") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}
