package secrets

import (
	"context"
	"os/exec"
)

// shell is a command of the system's shell.
func shell(ctx context.Context, command string) *exec.Cmd {
	return exec.CommandContext(ctx, "cmd", "/C", command)
}
