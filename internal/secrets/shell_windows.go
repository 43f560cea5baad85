package secrets

import (
	"context"
	"os/exec"
	"syscall"
)

// shell returns a command that cmd.exe runs. The command line is passed unchanged, because cmd.exe does not interpret
// the quotes that Go adds to arguments. With /S, cmd.exe removes only the outermost quotes.
func shell(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "cmd")
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd /S /C "` + command + `"`}
	return cmd
}
