//go:build unix

package transport

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// canCheckConns reports whether the operating system can say, without waiting, whether a connection is alive.
const canCheckConns = true

// An aliveCheck asks the operating system about a connection. The zero value works.
type aliveCheck struct {
	set   [1]unix.PollFd
	quiet bool
	ask   func(fd uintptr)
}

// isQuiet reports whether nothing can be read from a connection: no data and no end.
func (a *aliveCheck) isQuiet(socket syscall.RawConn) bool {
	if a.ask == nil {
		a.ask = a.poll
	}
	a.quiet = false
	return socket.Control(a.ask) == nil && a.quiet
}

func (a *aliveCheck) poll(fd uintptr) {
	a.set[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	for {
		n, err := unix.Poll(a.set[:], 0)
		if err == unix.EINTR {
			continue
		}
		a.quiet = err == nil && n == 0
		return
	}
}
