//go:build linux || darwin

package cli_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
)

// A terminal is a real one with the program at it, and a person who reads and types.
type terminal struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	tty  *os.File
	in   *bufio.Reader
	seen strings.Builder
}

// atTerminal starts the program in the project of a home of its own.
func atTerminal(t *testing.T, dir string, args ...string) *terminal {
	t.Helper()
	return atTerminalWith(t, dir, nil, args...)
}

// atTerminalWith is atTerminal with more variables of the environment.
func atTerminalWith(t *testing.T, dir string, env []string, args ...string) *terminal {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	project := filepath.Join(dir, "project")
	for _, d := range []string{home, project} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	server := linkProgram(t, self, filepath.Join(dir, "bin"))
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append([]string{"drawbridge"}, args...)
	cmd.Dir = project
	path := filepath.Dir(server) + string(filepath.ListSeparator) + os.Getenv("PATH")
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + path, "TERM=xterm", "SELF=" + server, "GORACE=" + quickExit,
		"DRAWBRIDGE_KEYCHAIN=off"}, env...)
	return start(t, dir, cmd)
}

// linkProgram returns a name for a program in a directory, which it makes. A confined server may run programs in the
// directories of PATH, and not where the test's own program is.
func linkProgram(t *testing.T, program, dir string) string {
	t.Helper()
	link := filepath.Join(dir, "server")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Link(program, link)); err == nil || errors.Is(err, fs.ErrExist) {
		return link
	}
	content, err := os.ReadFile(program) // the directory is on another file system
	if err == nil {
		err = os.WriteFile(link, content, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// start starts a program at a terminal.
func start(t *testing.T, dir string, cmd *exec.Cmd) *terminal {
	t.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200})
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	if err := tty.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Log("a program that hangs is not noticed:", err)
	}
	return &terminal{t: t, dir: dir, cmd: cmd, tty: tty, in: bufio.NewReader(tty)}
}

// see reads until the text is on the screen.
func (c *terminal) see(text string) {
	c.t.Helper()
	from := c.seen.Len()
	for !strings.Contains(c.seen.String()[from:], text) {
		b, err := c.in.ReadByte()
		if err != nil {
			c.t.Fatalf("%q does not come: %v\n%s", text, err, c.seen.String())
		}
		c.seen.WriteByte(b)
	}
}

// answer types a line once the question is there.
func (c *terminal) answer(question, line string) {
	c.t.Helper()
	c.see(question)
	if _, err := fmt.Fprintf(c.tty, "%s\r", line); err != nil {
		c.t.Fatal(err)
	}
}

// ends reads to the end, and gives all that was on the screen and the exit code.
func (c *terminal) ends() (screen string, code int) {
	c.t.Helper()
	for {
		b, err := c.in.ReadByte()
		if err != nil {
			break // the other end of a terminal that is gone is an error of its own on each system
		}
		c.seen.WriteByte(b)
	}
	err := c.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return c.seen.String(), exit.ExitCode()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return c.seen.String(), 0
}

func (c *terminal) file(name string) string {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Fatal(err)
	}
	return string(data)
}

const nativeFile = "project/.drawbridge/mcp.json"

func TestWizardAddsACommand(t *testing.T) {
	c := atTerminal(t, t.TempDir(), "mcp", "add")
	c.answer("Name: ", "a b")
	c.see("Server name can only contain letters, numbers, dash, underscore, and dot")
	c.answer("Name: ", "")
	c.see("Server name cannot be empty")
	c.answer("Name: ", "every")
	c.answer("Transport", "ws")
	c.see("one of stdio, http and sse is needed")
	c.answer("Transport", "")
	c.answer("Command line: ", "")
	c.see("Command is required")
	c.answer("Command line: ", `sh "-c`)
	c.see("a quote does not end")
	c.answer("Command line: ", `sh -c 'exec "$SELF"'`)
	c.answer("Environment variable", "hunter2")
	c.see("KEY=VALUE is needed")
	c.answer("Environment variable", "MCPTEST_SERVER=everything")
	c.answer("Environment variable", "SELF=${SELF}")
	c.answer("Environment variable", "")
	c.answer("Scope", "local")
	c.see("one of project and user is needed")
	c.answer("Scope", "project")
	c.see("every will be written to " + filepath.Join(c.dir, nativeFile))
	c.see(`command: sh -c 'exec "$SELF"'`)
	c.see("env MCPTEST_SERVER: [redacted]")
	c.answer("Add it?", "maybe")
	c.see("yes or no is needed")
	c.answer("Add it?", "y")
	c.see(`✓ Added server "every" to project config`)
	c.answer("Test it now?", "")
	c.see("✓ every: ")
	screen, code := c.ends()
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, screen)
	}
	want := `{
  "mcpServers": {
    "every": {
      "command": "sh",
      "args": ["-c", "exec \"$SELF\""],
      "env": {
        "MCPTEST_SERVER": "everything",
        "SELF": "${SELF}"
      }
    }
  }
}
`
	if diff := cmp.Diff(want, c.file(nativeFile)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

func TestWizardAddsAURL(t *testing.T) {
	dir := t.TempDir()
	c := atTerminal(t, dir, "mcp", "add", "docs")
	c.answer("Transport", "http")
	c.answer("URL: ", "")
	c.see("URL is required")
	c.answer("URL: ", "ftp://h")
	c.see("URL must use http:// or https:// scheme")
	c.answer("URL: ", "h.example/mcp")
	c.answer("Header", "none")
	c.see("a name and a value are needed")
	c.answer("Header", "Authorization: Bearer hunter2")
	c.answer("Header", "")
	c.answer("Scope", "user")
	c.see("header Authorization: Bearer [redacted]")
	c.answer("Add it?", "yes")
	c.answer("Test it now?", "n")
	if screen, code := c.ends(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, screen)
	}
	want := `{
  "mcpServers": {
    "docs": {
      "type": "http",
      "url": "https://h.example/mcp",
      "headers": {
        "Authorization": "Bearer hunter2"
      }
    }
  }
}
`
	if diff := cmp.Diff(want, c.file("home/.config/drawbridge/mcp.json")); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}

	c = atTerminal(t, dir, "mcp", "add", "docs")
	c.answer("Transport", "stdio")
	c.answer("Command line: ", "x")
	c.answer("Environment variable", "")
	c.answer("Scope", "user")
	c.see(`Server "docs" already exists in ` + filepath.Join(dir, "home/.config/drawbridge/mcp.json"))
	c.answer("Scope", "project")
	c.answer("Add it?", "no")
	c.see("Server creation cancelled.")
	if screen, code := c.ends(); code != 1 || c.file(nativeFile) != "" {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

func TestWizardIsCancelled(t *testing.T) {
	const ctrlC, ctrlD = "\x03", "\x04"
	for name, tt := range map[string]struct {
		key  string
		upTo int
	}{"Ctrl-C at once": {ctrlC, 0}, "Ctrl-D at once": {ctrlD, 0}, "Ctrl-C at the end": {ctrlC, 5}} {
		t.Run(name, func(t *testing.T) {
			c := atTerminal(t, t.TempDir(), "mcp", "add")
			questions := []string{"Name", "Transport", "Command line", "Environment variable", "Scope", "Add it?"}
			for i, line := range []string{"x", "stdio", "x", "", "project"}[:tt.upTo] {
				c.answer(questions[i], line)
			}
			c.see(questions[tt.upTo])
			if _, err := c.tty.WriteString(tt.key); err != nil {
				t.Fatal(err)
			}
			c.see("Server creation cancelled.")
			screen, code := c.ends()
			if code != 1 || c.file(nativeFile) != "" || strings.Contains(screen, "drawbridge: ") {
				t.Errorf("exit code %d\n%s", code, screen)
			}
		})
	}
}

func TestApprovalAtATerminal(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "project"), 0o700); err != nil {
		t.Fatal(err)
	}
	rows := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "project/.mcp.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rows(`{"mcpServers": {"one": {"command": "npx", "args": ["one"]}, "two": {"command": "two"}}}`)
	c := atTerminal(t, dir, "mcp", "approve", "--all")
	c.see("one, from ")
	c.answer("Approve one? [y/N] ", "maybe")
	c.answer("Approve one? [y/N] ", "y")
	c.answer("Approve two? [y/N] ", "")
	c.see(`Server "two" was left as it was.`)
	c.see(`✓ Approved server "one"`)
	if screen, code := c.ends(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, screen)
	}

	rows(`{"mcpServers": {"one": {"command": "sh", "args": ["one"]}, "two": {"command": "two"}}}`)
	c = atTerminal(t, dir, "mcp", "approve", "one")
	c.see("changed since")
	c.see("command: npx → sh")
	c.answer("Approve one? [y/N] ", "n")
	if screen, code := c.ends(); code != 1 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	c = atTerminal(t, dir, "mcp", "approve", "one", "two")
	c.answer("Approve one? [y/N] ", "y")
	c.see("Approve two? [y/N] ")
	if _, err := c.tty.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	c.see("nothing was approved: there was no answer")
	if screen, code := c.ends(); code != 1 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	c = atTerminal(t, dir, "mcp", "list")
	c.see("drawbridge mcp approve one")
	c.see("drawbridge mcp approve two")
	if screen, code := c.ends(); code != 0 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// TestServeAtATerminal shows that serve says which servers wait, and by which command they are approved.
func TestServeAtATerminal(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "project"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"mcpServers": {"repo": {"command": "sh", "args": ["-c", "touch started"]}}}`
	if err := os.WriteFile(filepath.Join(dir, "project/.mcp.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := atTerminal(t, dir, "serve")
	c.see(`"repo" is off: it comes from a project directory and is not approved yet (drawbridge mcp approve repo)`)
	if _, err := c.tty.WriteString("\x04"); err != nil {
		t.Fatal(err)
	}
	if screen, code := c.ends(); code != 0 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	if _, err := os.Stat(filepath.Join(dir, "project/started")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the server ran: %v", err)
	}
}
