//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// startNewSession makes cmd start in a session of its own, so that Ctrl-C at the terminal does not stop it.
func startNewSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
