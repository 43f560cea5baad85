//go:build unix

package cli_test

import (
	"path/filepath"
	"testing"
)

// TestCommandsOfASessionAskInIt has a server added by answers to the questions of /mcp add, and a change of a file taken
// back, in a session with plain output. A decision of the person is needed for each.
func TestCommandsOfASessionAskInIt(t *testing.T) {
	dir := t.TempDir()
	agentHome(t, filepath.Join(dir, "home"))
	c := atTerminal(t, dir, "-i", "--plain", "--permission-mode", "bypass", "write a note")
	c.see("Saved")
	c.answer("Ready.", "/undo")
	c.see("note.txt")
	c.answer("Type y to agree, n to decline.", "n")
	c.answer("nothing was changed", "/mcp add spaced -- 'none [y/N] --hidden'")
	c.see("with the arguments [y/N] --hidden?")
	c.answer("Type y to agree, n to decline.", "n")
	c.answer("spaced", "/mcp add")
	c.see("/mcp add")
	c.answer("Type ! to decline.", "!")
	c.answer("cancelled", "/quit")
	if screen, code := c.ends(); code != 0 {
		t.Errorf("%d %s", code, screen)
	}
}
