//go:build unix

package login

import (
	"os/exec"
	"syscall"
)

// apart keeps the browser out of our session: Ctrl-C is not for it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
