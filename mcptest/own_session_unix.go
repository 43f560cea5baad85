//go:build unix

package mcptest

import (
	"os/exec"
	"syscall"
)

// startInOwnSession makes the command start in its own session, out of reach of signals to our process group.
func startInOwnSession(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
