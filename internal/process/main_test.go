//go:build unix

package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"go.uber.org/goleak"
)

// The test binary is also every program that the tests start: role names which.
const (
	role     = "PROCESS_TEST_ROLE"
	hostRole = "PROCESS_TEST_HOST" // what a host program starts
	beacon   = "PROCESS_TEST_BEACON"
	fallback = "PROCESS_TEST_FALLBACK" // set: without the supervisor
	cage     = "PROCESS_TEST_CAGE"     // a directory: a host confines what it starts, below it
)

func TestMain(m *testing.M) {
	if os.Getenv(fallback) != "" {
		process.DisableSupervisor()
	}
	if os.Getenv(role) == "reckless-host" {
		os.Exit(play("host")) // a host program that does not call RunIfReaper
	}
	process.RunIfReaper()
	if name := os.Getenv(role); name != "" {
		os.Exit(play(name))
	}
	goleak.VerifyTestMain(m)
}

func play(name string) int {
	light := shine(name)
	defer light.Close()
	switch name {
	case "prober":
		playProbe()
	case "parricide": // kills its parent when its standard input ends
		startDetached("leaver")
		startDetached("stubborn")
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = syscall.Kill(os.Getppid(), syscall.SIGKILL)
		forEver()
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "tree": // ends with its standard input, and leaves its grandchildren
		startDetached("stubborn")
		startDetached("sleeper")
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "leaver": // ends at once, and leaves its grandchild
		startDetached("stubborn")
		return 3
	case "shell": // waits for a child of its own group
		_ = command("sleeper").Run()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		fmt.Println("ready")
		forEver()
	case "sleeper":
		fmt.Println("ready")
		forEver()
	case "writer":
		for i := range 300 {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
		fmt.Fprint(os.Stderr, strings.Repeat("x", 20_000)+"\nlast")
	case "host":
		return playHost()
	case "memfd-host":
		return playMemfdHost()
	}
	return 0
}

// playHost starts a program and prints its process ID.
func playHost() int {
	s := spec(os.Getenv(hostRole))
	if dir := os.Getenv(cage); dir != "" {
		s.Dir = dir
		s.Confinement = &confine.Profile{Home: filepath.Join(dir, "home"), UserHome: "/nowhere", Dir: dir}
	}
	p, err := process.Start(context.Background(), s)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(p.PID())
	forEver()
	return 0
}

// forEver ends by itself in the end, should a test leave it behind.
func forEver() { <-time.After(2 * time.Minute) }

// shine holds a connection to the test that lasts as long as the process: its end is how the test sees the process die.
func shine(name string) io.Closer {
	conn, err := net.Dial("tcp4", os.Getenv(beacon))
	if err != nil {
		return io.NopCloser(nil)
	}
	fmt.Fprintln(conn, name)
	_, _ = bufio.NewReader(conn).ReadString('\n') // the test has seen it
	return conn
}

func command(name string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), role+"="+name)
	return cmd
}

// startDetached starts a process that no signal to our process group reaches, and waits until it runs.
func startDetached(name string) {
	cmd := command(name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	_, _ = bufio.NewReader(out).ReadString('\n')
}

func spec(name string, env ...string) process.Spec {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return process.Spec{
		Command: self,
		Env:     append(append(os.Environ(), role+"="+name), env...),
		Grace:   200 * time.Millisecond,
	}
}

// A lighthouse sees which of the test's processes live.
type lighthouse struct {
	t        *testing.T
	listener net.Listener
	lit      chan light
	seen     []light
}

type light struct {
	name string
	conn net.Conn
}

func newLighthouse(t *testing.T) *lighthouse {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0") // which confined programs reach
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(beacon, listener.Addr().String())
	h := &lighthouse{t: t, listener: listener, lit: make(chan light, 16)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			name, _ := bufio.NewReader(conn).ReadString('\n')
			h.lit <- light{strings.TrimSpace(name), conn}
			fmt.Fprintln(conn, "seen")
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return h
}

// ends reports whether the process dies within that time.
func (l light) ends(within time.Duration) bool {
	_ = l.conn.SetReadDeadline(time.Now().Add(within))
	_, err := l.conn.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// await waits until n more processes shine.
func (h *lighthouse) await(n int) {
	for range n {
		h.seen = append(h.seen, <-h.lit)
	}
}

// dark waits until every process that has shone so far is dead, and says who they were.
func (h *lighthouse) dark() (names map[string]int) {
	h.t.Helper()
	h.await(len(h.lit))
	names = map[string]int{}
	for _, l := range h.seen {
		if !l.ends(20 * time.Second) {
			h.t.Errorf("%s is still alive", l.name)
		}
		_ = l.conn.Close()
		names[l.name]++
	}
	return names
}
