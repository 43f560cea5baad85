package deck

import (
	"context"
	"io"
)

// A Shell starts commands for the cards that execute. It may be replaced: by that of an editor, or of a container.
type Shell interface {
	// Start starts a command. ctx bounds the start alone.
	Start(ctx context.Context, c ShellCommand) (RunningCommand, error)
}

// A ShellCommand is a command line, as a person would type it.
type ShellCommand struct {
	Line string
	// Dir is the working directory, an absolute path.
	Dir string
	// Profile is that of the client for which the command runs; NoProfile for the person at the command line and the agent.
	Profile Profile
	// Env are variables that are added to the shell's environment, as "name=value".
	Env []string
	// Stdout and Stderr receive the output, each from one goroutine, until the command is done.
	Stdout, Stderr io.Writer
}

// A RunningCommand is a command with everything it started. Its methods may be called from several goroutines.
type RunningCommand interface {
	// Done returns a channel that is closed when the command and everything it started have ended, and their output has
	// been written.
	Done() <-chan struct{}
	// Status returns how the command ended: its exit code, or -1 and a text such as "signal: killed". It is for a command
	// that is done.
	Status() (exitCode int, signal string)
	// Stop ends the command and everything it started, and waits until they have ended. When ctx ends it does not wait
	// for them to end by themselves. The error is for a process that remains.
	Stop(ctx context.Context) error
}
