package mcptest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// brokenServers returns the servers that do not answer, that exit, or that start other processes.
func brokenServers() []namedServer {
	return []namedServer{
		{"hang", "", "never answers anything", func(serverArgs) int { return muteAll.stdio() }},
		{"hang-call", "", "legacy; never answers a call", hangCall},
		{"crash-on-call", "", "legacy; a call ends it with code 3 and a line on stderr", crashOnCall},
		{"exit-at-once", "", "writes a line to stderr and ends with code 1", exitAtOnce},
		{"ignore-stdin", "", "legacy; goes on when stdin is closed, and ignores SIGTERM", ignoreStdin},
		{"forks", "FILE",
			"legacy; starts a grandchild in a session of its own, which writes its pid to FILE and sleeps", forks},
		{"sleeper", "FILE", "the grandchild of forks; speaks no MCP", sleeper},
	}
}

// muteAll is a server that never answers the first requests of a client.
var muteAll = methodTable{mcp.MethodInitialize: neverAnswer, mcp.MethodDiscover: neverAnswer,
	mcp.MethodPing: neverAnswer}

func hangCall(serverArgs) int {
	return legacyServer().with(methodTable{mcp.MethodToolsCall: neverAnswer}).stdio()
}

func crashOnCall(serverArgs) int {
	return legacyServer().with(methodTable{mcp.MethodToolsCall: func(*messageStream, mcp.Message) {
		fmt.Fprintln(os.Stderr, "panic: the call was too much")
		os.Exit(3)
	}}).stdio()
}

func exitAtOnce(serverArgs) int {
	fmt.Fprintln(os.Stderr, "exit-at-once: cannot find the configuration")
	return 1
}

func ignoreStdin(serverArgs) int {
	signal.Ignore(syscall.SIGTERM, os.Interrupt)
	legacyServer().stdio()
	return sleepLong()
}

func forks(args serverArgs) int {
	self, err := os.Executable()
	if err != nil {
		return 2
	}
	child := exec.Command(self, args.text(0, ""))
	child.Env = append(os.Environ(), ServerVariable+"=sleeper")
	startInOwnSession(child)
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "mcptest: start the grandchild:", err)
		return 2
	}
	return legacyServer().stdio()
}

// sleeper writes its process ID to a file, in one step, and sleeps.
func sleeper(args serverArgs) int {
	path := args.text(0, "")
	if err := os.WriteFile(path+".new", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return 2
	}
	if err := os.Rename(path+".new", path); err != nil {
		return 2
	}
	return sleepLong()
}

// sleepLong sleeps for ten minutes. Processes that a failed test leaves behind end after this time.
func sleepLong() int {
	pause(10 * time.Minute)
	return 0
}

func pause(d time.Duration) { <-time.After(d) }

// ReadPID returns the process ID in the file that the grandchild of the named server "forks" writes. Before the
// grandchild has written the file, the error is fs.ErrNotExist.
func ReadPID(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}
