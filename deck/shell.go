package deck

import (
	"context"
	"io"
)

// A Shell starts commands for cards that execute commands. An implementation may run them in an editor or in a
// container.
type Shell interface {
	// Start starts a command. ctx limits only the start, not the command.
	Start(ctx context.Context, c ShellCommand) (RunningCommand, error)
}

// A ShellCommand is a command line, as a person would type it.
type ShellCommand struct {
	Line string
	// Dir is the working directory, an absolute path.
	Dir string
	// Profile is the profile of the client that runs the command. It is NoProfile for the person at the command line and
	// for the agent.
	Profile Profile
	// Env are variables that are added to the environment of the shell, in the form "name=value".
	Env []string
	// Stdout and Stderr receive the output until the command is done. Each is written from one goroutine.
	Stdout, Stderr io.Writer
}

// A RunningCommand is a started command with all processes that it started. Its methods may be called from several
// goroutines.
type RunningCommand interface {
	// Done returns a channel that is closed when all these processes have ended and their output has been written.
	Done() <-chan struct{}
	// Status returns how the command ended: its exit code, or -1 and a text such as "signal: killed". Call it only after
	// the command is done.
	Status() (exitCode int, signal string)
	// Stop ends all these processes, and waits until they have ended. If ctx ends, it kills them without a further wait.
	// It returns an error if a process remains.
	Stop(ctx context.Context) error
}
