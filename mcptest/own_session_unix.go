//go:build unix

package mcptest

import (
	"os/exec"
	"syscall"
)

// startInOwnSession makes the command start in its own session. Signals to this process group then do not reach it.
func startInOwnSession(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
