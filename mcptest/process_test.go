package mcptest_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// A process is a server that is spoken to line by line.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	command, args, env := mcptest.ServerCommand(t, name, args...)
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Env = append(os.Environ(), env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &process{t, cmd, stdin, bufio.NewScanner(stdout)}
}

func (p *process) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// hear gives the next line, or the test ends.
func (p *process) hear() string {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatalf("it said nothing: %v", p.lines.Err())
	}
	return p.lines.Text()
}

func (p *process) echo() {
	p.t.Helper()
	p.say(echo)
	if got := p.hear(); got != hi {
		p.t.Fatalf("got %q", got)
	}
}

// forks leaves a grandchild behind that outlives it, and the test takes it away.
func TestForks(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	p := start(t, "forks", pidFile)
	pid := 0
	for pid == 0 {
		p.echo()
		pid, _ = mcptest.ReadPID(pidFile)
	}
	if err := p.stdin.Close(); err != nil {
		t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	grandchild, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := grandchild.Kill(); err != nil {
		t.Errorf("the grandchild %d was gone: %v", pid, err)
	}
}
