package mcptest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// brokenServers do not do what they were started for.
func brokenServers() []behaviour {
	return []behaviour{
		{"hang", "", "never answers anything", func(arguments) int { return muteAll.stdio() }},
		{"hang-call", "", "legacy; never answers a call", hangCall},
		{"crash-on-call", "", "legacy; a call ends it with code 3 and a line on stderr", crashOnCall},
		{"exit-at-once", "", "writes a line to stderr and ends with code 1", exitAtOnce},
		{"ignore-stdin", "", "legacy; goes on when stdin is closed, and ignores SIGTERM", ignoreStdin},
		{"forks", "FILE", "legacy; starts a grandchild in a session of its own, which writes its pid to FILE and sleeps", forks},
		{"sleeper", "FILE", "the grandchild of forks; speaks no MCP", sleeper},
	}
}

// muteAll has no answer to whatever a client may begin with.
var muteAll = handMade{wire.MethodInitialize: silence, wire.MethodDiscover: silence, wire.MethodPing: silence}

func hangCall(arguments) int {
	return legacyServer().with(handMade{wire.MethodToolsCall: silence}).stdio()
}

func crashOnCall(arguments) int {
	return legacyServer().with(handMade{wire.MethodToolsCall: func(*conversation, wire.Message) {
		fmt.Fprintln(os.Stderr, "panic: the call was too much")
		os.Exit(3)
	}}).stdio()
}

func exitAtOnce(arguments) int {
	fmt.Fprintln(os.Stderr, "exit-at-once: cannot find the configuration")
	return 1
}

func ignoreStdin(arguments) int {
	signal.Ignore(syscall.SIGTERM, os.Interrupt)
	legacyServer().stdio()
	return sleep()
}

func forks(args arguments) int {
	self, err := os.Executable()
	if err != nil {
		return 2
	}
	child := exec.Command(self, args.text(0, ""))
	child.Env = append(os.Environ(), Variable+"=sleeper")
	ownSession(child)
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "mcptest: start the grandchild:", err)
		return 2
	}
	return legacyServer().stdio()
}

// sleeper writes its pid, whole or not at all, and sleeps.
func sleeper(args arguments) int {
	path := args.text(0, "")
	if err := os.WriteFile(path+".new", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return 2
	}
	if err := os.Rename(path+".new", path); err != nil {
		return 2
	}
	return sleep()
}

// sleep is for ever, or nearly: what a broken test leaves behind ends by itself.
func sleep() int {
	wait(10 * time.Minute)
	return 0
}

func wait(d time.Duration) { <-time.After(d) }

// ReadPID reads the file that the server "forks" has its grandchild write. The error is that of a file that is not there
// for as long as the grandchild has not written it.
func ReadPID(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}
