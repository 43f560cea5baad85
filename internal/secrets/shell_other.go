//go:build !windows

package secrets

import (
	"context"
	"os/exec"
	"syscall"
)

// shell is a command of the system's shell, which ends with everything it started when ctx does.
func shell(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}
