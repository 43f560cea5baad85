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

// becomeSubreaper does nothing: orphans fall to init here, and only the process group can be ended.
func becomeSubreaper() {}

// closeInheritedFDs has no descriptor passed on that this process was given by somebody who forgot it.
func closeInheritedFDs() { closeOnExec("/dev/fd") }

// nothingLeft says whether nothing is left in the leader's process group.
func (r *reaper) nothingLeft() bool { return unix.Kill(-r.leader, 0) != nil }

// remainingPIDs is the leader's process group.
func (r *reaper) remainingPIDs() []int { return []int{-r.leader} }
