//go:build bench

package bench

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A benchProcess is one of the programs that are measured, until its test ends.
type benchProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// patience is the longest that a process may live: one that says nothing any more ends the test instead of holding it
// up.
const patience = 10 * time.Minute

// start runs a command. When the test ends its input is closed and it gets SIGTERM; after ten seconds its group is
// killed.
func start(t testing.TB, cmd *exec.Cmd) *benchProcess {
	t.Helper()
	p := &benchProcess{cmd: cmd}
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	var stderr safeBuilder
	cmd.Stderr, cmd.WaitDelay = &stderr, 5*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, err := range []error{inErr, outErr, cmd.Start()} {
		if err != nil {
			t.Fatalf("start %s: %v", cmd.Path, err)
		}
	}
	p.in, p.out = in, bufio.NewReaderSize(out, 64<<10)
	overdue := time.AfterFunc(patience, p.kill)
	t.Cleanup(func() {
		overdue.Stop()
		p.stop()
		if t.Failed() && stderr.String() != "" {
			t.Logf("%s:\n%s", strings.Join(cmd.Args, " "), stderr.String())
		}
	})
	return p
}

// stop ends the process and waits for it. It may be called twice.
func (p *benchProcess) stop() {
	p.in.Close()
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	overdue := time.AfterFunc(10*time.Second, p.kill)
	defer overdue.Stop()
	p.cmd.Wait()
}

func (p *benchProcess) kill() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

// url reads the first line that the process prints.
func (p *benchProcess) url(t testing.TB) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%s printed no URL: %v", filepath.Base(p.cmd.Path), err)
	}
	return strings.TrimSpace(line)
}

// stdio is a client on the process's standard input and output.
func (p *benchProcess) stdio() client { return &stdioClient{in: p.in, out: p.out} }

type safeBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *safeBuilder) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuilder) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// role is the command of this binary in a role.
func role(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(self(t), args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+name)
	return cmd
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// server is a row of a configuration file.
type server struct {
	Name    string            `json:"name"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Type    string            `json:"type,omitempty"`
	Fence   *bool             `json:"fence,omitempty"`
	Pace    int               `json:"max_calls_per_minute,omitempty"`
	Timeout int               `json:"timeout,omitempty"`
}

// onStdio is the row of an upstream that is started with command.
func onStdio(name, command string, args ...string) server {
	return server{Name: name, Command: command, Args: args, Env: map[string]string{roleVariable: "upstream"}}
}

// configure writes a configuration into a new directory and gives its path and that of a store beside it.
func configure(t testing.TB, rows ...server) (config, store string) {
	t.Helper()
	dir := t.TempDir()
	config = filepath.Join(dir, "mcp.json")
	text, err := json.Marshal(map[string][]server{"servers": rows})
	if err == nil {
		err = os.WriteFile(config, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return config, filepath.Join(dir, "store.db")
}

// serve is the command drawbridge serve, as it is shipped.
func serve(config, store string, args ...string) *exec.Cmd {
	cmd := exec.Command(drawbridge, append([]string{"serve", "--mcp", config, "--store", store}, args...)...)
	cmd.Dir = filepath.Dir(store)
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "XDG_CONFIG_HOME="+cmd.Dir, "XDG_STATE_HOME="+cmd.Dir)
	return cmd
}

// mounted waits until a call goes through, which it does not before its server was listed for the first time.
func mounted(t testing.TB, c client, r request) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(time.Minute)
	for {
		_, err := c.call(r)
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("never mounted: %v", err)
		}
	}
}

// connect opens a client on an HTTP door, until the test ends.
func connect(t testing.TB, url string) *httpClient {
	t.Helper()
	c, err := dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
