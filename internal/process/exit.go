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

// A programStatus is the status of a program that ended otherwise than with code 0. code is -1 if a signal ended it.
type programStatus struct {
	code int
	text string
}

func (s *programStatus) Error() string { return s.text }

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
	if status, ok := errors.AsType[*programStatus](err); ok && status.code >= 0 {
		return status.code, true
	}
	return -1, false
}
