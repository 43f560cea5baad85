package process

// An ExitError says that the server's process has ended.
type ExitError struct{ status error }

func (e *ExitError) Error() string {
	if e.status == nil {
		return "the server exited"
	}
	return "the server exited: " + e.status.Error()
}

func (e *ExitError) Unwrap() error { return e.status }

// ExitStatus says for people how a process ended that is Done.
func (p *Process) ExitStatus() error { return &ExitError{p.Err()} }
