//go:build unix

package admin

import (
	"errors"
	"syscall"
)

// processExists reports whether a process with this ID exists.
func processExists(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
