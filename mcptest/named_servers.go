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

// ServerVariable is the environment variable that makes RunIfNamedServer run a named server. Its value is the server's
// name.
const ServerVariable = "MCPTEST_SERVER"

// A namedServer is a server that can be started by name. args describes its arguments, does its behaviour. run serves
// and returns the exit code.
type namedServer struct {
	name, args, does string
	run              func(args serverArgs) int
}

// namedServers returns all named servers.
func namedServers() []namedServer {
	return slices.Concat(honestServers(), taskServers(), oddServers(), brokenServers())
}

// DescribeServers returns a line for every server that ServerCommand can start: name, arguments, behaviour.
func DescribeServers() []string {
	var all []string
	for _, b := range namedServers() {
		all = append(all, fmt.Sprintf("%-16s %-12s %s", b.name, b.args, b.does))
	}
	return all
}

// RunIfNamedServer must be called at the beginning of a TestMain. If ServerVariable is set, it runs the server with
// that name, and exits when the server ends. Otherwise it starts a timer that keeps the Go runtime responsive
// (keepRuntimeAwake), and returns.
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
	os.Stdin = process.PolledStdin(own, os.Stdout) // see process.PolledStdin
	code := b.run(os.Args[1:])
	runtime.KeepAlive(own)
	os.Exit(code)
}

// keepRuntimeAwake starts a timer that fires ten times a second until the process ends. Tests wait for processes in
// system calls. A Go runtime that is blocked by such a call (see process.PolledStdin) continues when the next timer is
// due. Without this timer, that could be as late as the timeout of the test.
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

// ServerCommand returns the command that starts a named server: the running test binary, its arguments, and environment
// variables. The environment variables must be added to the environment of the test. The test fails if the name is
// unknown.
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

// raceEnv returns environment variables for servers that are built with the race detector. With them, such a server
// exits at once; by default, it waits a second to detect late races.
func raceEnv() map[string]string { return map[string]string{"GORACE": "atexit_sleep_ms=0"} }

// ServerRow returns the configuration that starts a named server: a JSON object with command, args and env, as in an
// mcp.json file.
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

// serverArgs are the arguments of a named server.
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
