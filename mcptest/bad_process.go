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
	// childMark is appended to the token with which a process authenticates, if another process of the server forked
	// it.
	childMark = "+child"
	// forked is the name of the misbehaviour of a process that Forks has started: it stays connected until the server
	// ends.
	forked = "forked"
	// lingering is how long a process runs whose misbehaviour is that it does not exit. Processes that remain after a
	// failed test end after this time.
	lingering = 10 * time.Minute
)

// misbehaveAsProcess carries out the part of a misbehaviour that comes before any message. order contains the fields of
// fakeServerVariable. If over is true, the process must exit with the exit code code.
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
