package upstream

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

// ReadStderr gives the last lines that a server wrote to standard error, oldest first, those of a process that ended
// too. With follow it goes on with each new line, over restarts of the server, until ctx ends, which is no error. The
// error is for an unknown name, or what each gave.
func (f *Fleet) ReadStderr(ctx context.Context, id drawbridge.ServerID, follow bool,
	each func(line string) error) error {
	e, err := f.serverByID(id)
	if err != nil {
		return err
	}
	e.mu.Lock()
	lines := e.stderr
	e.mu.Unlock()
	p := e.primaryProcess()
	switch {
	case p != nil && follow:
		lines = nil // they come with those that follow
	case p != nil:
		lines = p.Stderr()
	}
	for _, line := range lines {
		if err := each(line); err != nil {
			return err
		}
	}
	if !follow {
		return nil
	}
	return process.FollowStderr(ctx, p, e.ctx.Done(), e.primaryProcess, each)
}

// primaryProcess is the process of the connection that is kept; nil for none.
func (e *managedServer) primaryProcess() *process.Process {
	e.mu.Lock()
	defer e.mu.Unlock()
	if home := e.sessions[e.primaryKey()]; home != nil {
		return home.proc
	}
	for k, s := range e.sessions {
		if k.sharedByKind { // the home was spared
			return s.proc
		}
	}
	return nil
}
