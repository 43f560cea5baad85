package process

// An ExitError reports that the server's process has ended.
type ExitError struct{ status error }

func (e *ExitError) Error() string {
	if e.status == nil {
		return "the server exited"
	}
	return "the server exited: " + e.status.Error()
}

func (e *ExitError) Unwrap() error { return e.status }

// ExitStatus returns, for people, how a process ended. It is for processes that are Done.
func (p *Process) ExitStatus() error { return &ExitError{p.Err()} }
