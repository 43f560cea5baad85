//go:build !windows

package secrets

import (
	"context"
	"os/exec"
	"syscall"
)

// shell returns a command that the shell runs. When ctx is done, the command and all processes of its process group are
// killed.
func shell(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}
