//go:build !windows

package secrets

import (
	"context"
	"os/exec"
	"syscall"
)

// shell returns a shell command. When ctx ends, the command and all processes that it started are ended.
func shell(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}
