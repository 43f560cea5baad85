package secrets

import (
	"context"
	"os/exec"
	"syscall"
)

// shell returns a command of the system's shell, which gets it as written. cmd does not undo the quotes that other
// programs expect around an argument; with /S it removes only the outermost quotes.
func shell(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd /S /C "` + command + `"`}
	return cmd
}
