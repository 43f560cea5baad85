//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// startNewSession keeps the browser out of our session: Ctrl-C is not for it.
func startNewSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
