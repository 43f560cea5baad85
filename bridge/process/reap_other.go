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

// adopt does nothing: orphans fall to init here, and only the process group can be ended.
func adopt() {}

// keepToOurselves has no descriptor passed on that this process was given by somebody who forgot it.
func keepToOurselves() { closeOnExec("/dev/fd") }

// alone says whether nothing is left in the leader's process group.
func (r *reaper) alone() bool { return unix.Kill(-r.leader, 0) != nil }

// targets is the leader's process group.
func (r *reaper) targets() []int { return []int{-r.leader} }
