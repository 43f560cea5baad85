package mcptest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	// childMark follows the token of a process that was forked by another process.
	childMark = "+child"
	// forked is the misbehaviour of a process that Forks has started: it stays connected.
	forked = "forked"
	// lingering is how long a process that should have ended stays. Processes that a failed test leaves behind end
	// after this time.
	lingering = 10 * time.Minute
)

// misbehaveAsProcess carries out the part of a misbehaviour that comes before any message. over reports whether the
// process must exit, with the exit code code.
func misbehaveAsProcess(order []string, size int) (code int, over bool) {
	switch order[2] {
	case string(ExitAtOnce):
		fmt.Fprintln(os.Stderr, "exit-at-once: cannot find the configuration")
		return 1, true
	case string(Stubborn):
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
	case string(StderrFlood):
		go func() {
			line := append(bytes.Repeat([]byte("e"), 1023), '\n')
			for n := 0; n < size; n += len(line) {
				if _, err := os.Stderr.Write(line); err != nil {
					return
				}
			}
		}()
	case string(Forks):
		for range size {
			if err := forkChild(order); err != nil {
				fmt.Fprintln(os.Stderr, "fakemcp: fork:", err)
				return 2, true
			}
		}
	case forked:
		conn, err := net.DialTimeout("tcp", order[0], lingering)
		if err != nil {
			return 2, true
		}
		_, _ = fmt.Fprintln(conn, order[1]+childMark)
		_ = conn.SetReadDeadline(time.Now().Add(lingering))
		_, _ = io.Copy(io.Discard, conn)
		return 0, true
	}
	return 0, false
}

// forkChild starts this program again, in its own session if the system has sessions.
func forkChild(order []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), fakeServerVariable+"="+
		strings.Join([]string{order[0], order[1], forked, "0"}, " "))
	startInOwnSession(child)
	return child.Start()
}

// lingerAfterEnd waits for the duration lingering if the misbehaviour is Stubborn.
func lingerAfterEnd(misdeed string) {
	if misdeed == string(Stubborn) {
		<-time.After(lingering)
	}
}
