//go:build !unix

package admin

import "os"

// processExists reports whether a process with this ID exists.
func processExists(pid int) bool {
	if pid <= 0 {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
