package process

import (
	"errors"
	"os/exec"
)

// An ExitError reports that the server's process has ended.
type ExitError struct{ status error }

func (e *ExitError) Error() string {
	if e.status == nil {
		return "the server exited"
	}
	return "the server exited: " + e.status.Error()
}

func (e *ExitError) Unwrap() error { return e.status }

// ExitStatus returns an error that describes how the process ended. It must be called only after Done is closed.
func (p *Process) ExitStatus() error { return &ExitError{p.Err()} }

// ExitCode returns the exit code of the program. ok is false if a signal ended the program. ExitCode must be called
// only after Done is closed.
func (p *Process) ExitCode() (code int, ok bool) {
	err := p.Err()
	if err == nil {
		return 0, true
	}
	if exit, isExit := errors.AsType[*exec.ExitError](err); isExit && exit.Exited() {
		return exit.ExitCode(), true
	}
	return -1, false
}
