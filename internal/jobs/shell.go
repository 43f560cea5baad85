package jobs

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

// stopGrace is the grace period in which the processes of a stopped command can end. [process.Process.Stop] first waits
// and sends SIGTERM. After one and a half times stopGrace, it sends SIGKILL to the processes that remain.
const stopGrace = 2 * time.Second

// A LocalShell starts commands on this machine, in bash, or in sh if there is no bash. On Windows, if there is neither,
// it uses cmd.exe. When a command ends, it ends all processes that the command started.
type LocalShell struct {
	// Env is the environment of the commands, in the form "name=value".
	Env []string
	// Confine returns the profile that restricts what a command can access on this machine; nil means no restriction.
	// If Confine is nil, no command is restricted.
	Confine func(c deck.ShellCommand) *confine.Profile
}

var _ deck.Shell = LocalShell{}

// Start implements [deck.Shell].
func (s LocalShell) Start(ctx context.Context, c deck.ShellCommand) (deck.RunningCommand, error) {
	program, args, err := s.shellFor(c)
	if err != nil {
		return nil, err
	}
	spec := process.Spec{Command: program, Args: args, Dir: c.Dir, Env: process.Environ(s.Env, c.Env, true), Grace: stopGrace, Stdout: c.Stdout,
		Stderr: c.Stderr, NoInput: true}
	if s.Confine != nil {
		spec.Confinement = s.Confine(c)
	}
	p, err := process.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	running := &localCommand{process: p, done: make(chan struct{})}
	go running.wait(context.WithoutCancel(ctx)) // returns when the command has ended; Stop ends the command
	return running, nil
}

// shellFor returns the path of the shell program that runs the command line c.Line, and the arguments of the program.
func (s LocalShell) shellFor(c deck.ShellCommand) (program string, args []string, err error) {
	for _, name := range []string{"bash", "sh"} {
		if program, err = process.FindProgram(name, c.Dir, s.Env); err == nil {
			return program, []string{"-c", c.Line}, nil
		}
	}
	if runtime.GOOS == "windows" {
		return "cmd.exe", []string{"/d", "/s", "/c", c.Line}, nil
	}
	return "", nil, fmt.Errorf("find a shell: %w", err)
}

// A localCommand is a command that a LocalShell started.
type localCommand struct {
	process *process.Process
	done    chan struct{}
	stopErr error // the error of process.Stop, set before done is closed
}

// wait waits until the command has ended, ends the processes that it started, and then closes done.
func (c *localCommand) wait(ctx context.Context) {
	<-c.process.Done()
	c.stopErr = c.process.Stop(ctx)
	close(c.done)
}

// Done implements [deck.RunningCommand].
func (c *localCommand) Done() <-chan struct{} { return c.done }

// Status implements [deck.RunningCommand].
func (c *localCommand) Status() (exitCode int, signal string) {
	if code, ok := c.process.ExitCode(); ok {
		return code, ""
	}
	return -1, c.process.Err().Error()
}

// Stop implements [deck.RunningCommand].
func (c *localCommand) Stop(ctx context.Context) error {
	if err := c.process.Stop(ctx); err != nil {
		return err
	}
	<-c.done
	return c.stopErr
}
