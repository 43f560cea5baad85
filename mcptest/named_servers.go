package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

// ServerVariable is the environment variable that names the server a process is to become.
const ServerVariable = "MCPTEST_SERVER"

// A namedServer is one server: what it does, what it takes, and how it runs. run returns the exit code.
type namedServer struct {
	name, args, does string
	run              func(args serverArgs) int
}

// namedServers are all servers.
func namedServers() []namedServer {
	return slices.Concat(honestServers(), taskServers(), oddServers(), brokenServers())
}

// DescribeServers describes every server that Command can start, one a line: name, arguments, what it does.
func DescribeServers() []string {
	var all []string
	for _, b := range namedServers() {
		all = append(all, fmt.Sprintf("%-16s %-12s %s", b.name, b.args, b.does))
	}
	return all
}

// RunIfNamedServer is called first in a TestMain. Where the environment names a server the process becomes that server
// and ends with it; else Run sees to it that the runtime does not stand still for long, and returns.
func RunIfNamedServer() {
	keepRuntimeAwake()
	name := os.Getenv(ServerVariable)
	if name == "" {
		return
	}
	b, ok := findNamedServer(name)
	if !ok {
		fmt.Fprintf(os.Stderr, "mcptest: unknown server %q\n", name)
		os.Exit(2)
	}
	own := os.Stdin
	os.Stdin = process.PolledStdin(own, os.Stdout) // see package stdin
	code := b.run(os.Args[1:])
	runtime.KeepAlive(own)
	os.Exit(code)
}

// keepRuntimeAwake sets a timer that goes off ten times a second for as long as the process lives. Tests wait for
// processes in system calls, and a runtime that stands still because of one (see package stdin) looks around when the
// next timer is due: without this one that may be the end of the test's own patience.
func keepRuntimeAwake() {
	const every = 100 * time.Millisecond
	var timer *time.Timer
	timer = time.AfterFunc(time.Hour, func() { timer.Reset(every) })
	timer.Reset(every)
}

func findNamedServer(name string) (namedServer, bool) {
	all := namedServers()
	i := slices.IndexFunc(all, func(b namedServer) bool { return b.name == name })
	if i < 0 {
		return namedServer{}, false
	}
	return all[i], true
}

// ServerCommand returns the command that starts the server: the running test binary, with its arguments and the
// environment it needs (in addition to any other). The test fails if the name is unknown.
func ServerCommand(t testing.TB, name string, args ...string) (command string, arguments []string, env []string) {
	t.Helper()
	if _, ok := findNamedServer(name); !ok {
		t.Fatalf("mcptest: unknown server %q", name)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env = []string{ServerVariable + "=" + name}
	for name, value := range raceEnv() {
		env = append(env, name+"="+value)
	}
	return self, args, env
}

// raceEnv has a server that was built with the race detector end at once: by default it stays a second to catch late
// races.
func raceEnv() map[string]string { return map[string]string{"GORACE": "atexit_sleep_ms=0"} }

// ServerRow returns the configuration row that starts the server: an object with command, args and env, for an
// mcp.json.
func ServerRow(t testing.TB, name string, args ...string) json.RawMessage {
	t.Helper()
	command, args, _ := ServerCommand(t, name, args...)
	if args == nil {
		args = []string{}
	}
	env := raceEnv()
	env[ServerVariable] = name
	row, err := json.Marshal(map[string]any{"command": command, "args": args, "env": env})
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// serverArgs are the words behind the program's name.
type serverArgs []string

func (a serverArgs) text(i int, otherwise string) string {
	if i < len(a) {
		return a[i]
	}
	return otherwise
}

func (a serverArgs) number(i, otherwise int) int {
	if n, err := strconv.Atoi(a.text(i, "")); err == nil {
		return n
	}
	return otherwise
}

func (a serverArgs) millis(i, otherwise int) time.Duration {
	return time.Duration(a.number(i, otherwise)) * time.Millisecond
}
