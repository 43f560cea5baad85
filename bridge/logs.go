package bridge

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/process"
)

// Stderr gives the last lines that a server wrote to standard error, oldest first, those of a process that ended too. With
// follow it goes on with each new line, over restarts of the server, until ctx ends, which is no error. The error is for an
// unknown name, or what each gave.
func (f *Fleet) Stderr(ctx context.Context, id drawbridge.ServerID, follow bool, each func(line string) error) error {
	e, err := f.endpoint(id)
	if err != nil {
		return err
	}
	e.mu.Lock()
	lines := e.stderr
	e.mu.Unlock()
	p := e.program()
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
	return process.Follow(ctx, p, e.ctx.Done(), e.program, each)
}

// program is the process of the connection that is kept; nil for none.
func (e *endpoint) program() *process.Process {
	e.mu.Lock()
	defer e.mu.Unlock()
	if home := e.sessions[e.homeKey()]; home != nil {
		return home.proc
	}
	for k, s := range e.sessions {
		if k.lasting { // the home was spared
			return s.proc
		}
	}
	return nil
}
