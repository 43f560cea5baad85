//go:build !unix

package transport

import "syscall"

// canCheckConns reports whether the operating system can say, without waiting, whether a connection is alive.
const canCheckConns = false

// An aliveCheck does nothing on this system.
type aliveCheck struct{}

func (a *aliveCheck) isQuiet(syscall.RawConn) bool { return false }
