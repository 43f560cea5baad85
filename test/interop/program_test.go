//go:build peers

package interop

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

// A program is a process that lives until its test ends, with its standard input held open.
type program struct {
	in   io.Writer
	gone <-chan struct{} // closed when it has ended and all it said was read
}

// start runs a program in a process group of its own; out and err get its lines, and may be nil. At the end of the test
// its input is closed and it gets SIGTERM; one that is still there after ten seconds is killed with its group, and the
// test fails. What it said on standard error is in the log of a test that failed.
func start(t *testing.T, cmd *exec.Cmd, out, err func(line string)) *program {
	t.Helper()
	in, inErr := cmd.StdinPipe()
	stdout, outErr := cmd.StdoutPipe()
	stderr, errErr := cmd.StderrPipe()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, problem := range []error{inErr, outErr, errErr, cmd.Start()} {
		if problem != nil {
			t.Fatalf("start %s: %v", cmd.Path, problem)
		}
	}
	var log strings.Builder
	var readers sync.WaitGroup
	readers.Go(func() { eachLine(stdout, out) })
	readers.Go(func() {
		eachLine(io.TeeReader(stderr, &log), err)
	})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		readers.Wait()
		cmd.Wait()
	}()
	t.Cleanup(func() {
		in.Close()
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-gone:
		case <-time.After(10 * time.Second):
			t.Errorf("%s did not end in 10 s after SIGTERM", filepath.Base(cmd.Path))
		}
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-gone
		if t.Failed() {
			t.Logf("%s said on standard error:\n%s", strings.Join(cmd.Args, " "), log.String())
		}
	})
	return &program{in, gone}
}

func eachLine(r io.Reader, do func(string)) {
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if do != nil {
			do(strings.TrimRight(line, "\r\n"))
		}
	}
}

// first gives a line function that keeps the first line for which find answers, and the channel it arrives on.
func first(find func(line string) (string, bool)) (func(string), <-chan string) {
	found := make(chan string, 1)
	return func(line string) {
		if s, ok := find(line); ok {
			select {
			case found <- s:
			default:
			}
		}
	}, found
}

// await waits for what a program is to say.
func await(t *testing.T, p *program, found <-chan string, what string) string {
	t.Helper()
	select {
	case s := <-found:
		return s
	case <-p.gone:
		t.Fatalf("the program ended before %s", what)
	case <-limit(t, 30*time.Second).Done():
		t.Fatalf("no sign of %s", what)
	}
	return ""
}

// everything starts npm's server-everything on a free port of loopback and gives its base URL. The server would listen
// on every interface.
func everything(t *testing.T, transport string) string {
	t.Helper()
	preload, err := filepath.Abs("loopback-listen.cjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "--require", preload, module(t, "@modelcontextprotocol/server-everything/dist/index.js"),
		transport)
	cmd.Env = append(os.Environ(), "PORT=0")
	said, port := first(func(line string) (string, bool) { return strings.CutPrefix(line, "loopback port ") })
	p := start(t, cmd, nil, said)
	return "http://127.0.0.1:" + await(t, p, port, "its port")
}

// row is a server of a configuration file.
type row struct {
	Name    string            `json:"name"`
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Auth    map[string]string `json:"auth,omitempty"`
}

// serveCommand is drawbridge serve over these rows, with a home and a store of its own.
func serveCommand(t *testing.T, rows []row, args ...string) *exec.Cmd {
	t.Helper()
	home := t.TempDir()
	if err := configure(home, rows); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(drawbridge, commandLine(home, append([]string{"serve"}, args...)...)...)
	cmd.Dir, cmd.Env = home, homely(home)
	return cmd
}

// configure writes the configuration of a home.
func configure(home string, rows []row) error {
	text, err := json.Marshal(map[string][]row{"servers": rows})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, "mcp.json"), text, 0o600)
}

// commandLine is a command of drawbridge on the configuration and the store of a home.
func commandLine(home string, args ...string) []string {
	return append(args, "--mcp", filepath.Join(home, "mcp.json"), "--store", filepath.Join(home, "store.db"))
}

// homely is an environment in which nothing of the user's is found.
func homely(home string) []string {
	return append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home)
}

const loopback = "http://127.0.0.1:"

// serveHTTP starts drawbridge serve --http on a free port and gives the URL it prints.
func serveHTTP(t *testing.T, rows []row, args ...string) string {
	t.Helper()
	return served(t, serveCommand(t, rows, append([]string{"--http", "127.0.0.1:0"}, args...)...))
}

// served starts such a command and gives the URL it prints.
func served(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	said, url := first(func(line string) (string, bool) { return line, strings.HasPrefix(line, loopback) })
	p := start(t, cmd, said, nil)
	return await(t, p, url, "the URL on the first line of its standard output")
}
