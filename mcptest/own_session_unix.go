//go:build unix

package mcptest

import (
	"os/exec"
	"syscall"
)

// startInOwnSession makes the command start in its own session. Signals to the process group of this process then do
// not reach the command.
func startInOwnSession(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
