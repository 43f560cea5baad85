package deck

import (
	"context"
	"io"
)

// A Shell starts the commands of tools that execute commands. An implementation may run them on this machine, in an
// editor or in a container.
type Shell interface {
	// Start starts a command. The end of ctx cancels only the start; a command that has started continues.
	Start(ctx context.Context, c ShellCommand) (RunningCommand, error)
}

// A ShellCommand is a command line, as a person would type it.
type ShellCommand struct {
	Line string
	// Dir is the working directory, an absolute path.
	Dir string
	// Profile is the configured profile of the client whose call runs the command. It is NoProfile for the person at
	// the command line and for Drawbridge's own agent.
	Profile Profile
	// Env contains variables that are added to the environment of the command, in the form "name=value".
	Env []string
	// Stdout and Stderr receive the output of the command. Each of them is written from one goroutine, and not after
	// the command is done.
	Stdout, Stderr io.Writer
}

// A RunningCommand is a command that was started, including all processes that the command started. Its methods may be
// called from several goroutines.
type RunningCommand interface {
	// Done returns a channel that is closed when all these processes have ended and their output has been written.
	Done() <-chan struct{}
	// Status returns the exit code of the command. For a command that did not exit by itself, it returns -1 and a text
	// such as "signal: killed". It must be called only after the channel of Done is closed.
	Status() (exitCode int, signal string)
	// Stop asks all these processes to end, and kills those that do not end after a grace period. If ctx ends, it kills
	// them immediately. It waits until the processes have ended, and returns an error if a process remains.
	Stop(ctx context.Context) error
}
