//go:build unix

package mcptest

import (
	"os/exec"
	"syscall"
)

// startInOwnSession has the command start in a session of its own, out of reach of its process group's signals.
func startInOwnSession(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
