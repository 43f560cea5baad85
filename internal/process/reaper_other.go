//go:build unix && !linux

package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func selfPath() (string, error) { return os.Executable() }

// dieWithParent does nothing: only Linux has a parent-death signal.
func dieWithParent(*syscall.SysProcAttr) {}

// becomeSubreaper does nothing: on this system orphans become children of init, and only the process group can be
// ended.
func becomeSubreaper() {}

// closeInheritedFDs marks all inherited file descriptors close-on-exec.
func closeInheritedFDs() { closeOnExec("/dev/fd") }

// nothingLeft reports whether the process group of the leader, which is the program, is empty.
func (r *reaper) nothingLeft() bool { return unix.Kill(-r.leader, 0) != nil }

// remainingPIDs returns the process group of the leader, which is the program, as a negative PID.
func (r *reaper) remainingPIDs() []int { return []int{-r.leader} }
