//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// startNewSession starts the browser in a session of its own, so that Ctrl-C does not reach it.
func startNewSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
