package secrets

import (
	"context"
	"os/exec"
	"syscall"
)

// shell is a command of the system's shell, which gets it as it is written: cmd does not undo the quotes that other
// programs expect around an argument, and with /S takes off those around all of it and no others.
func shell(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd /S /C "` + command + `"`}
	return cmd
}
