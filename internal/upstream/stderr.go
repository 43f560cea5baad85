package upstream

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

// ReadStderr calls each with the last lines that a server wrote to standard error, oldest first. It also works after
// the server's process has ended. With follow, it then calls each with new lines, also after restarts of the server,
// until ctx ends. The end of ctx is not an error. ReadStderr returns an error for an unknown name, and the errors of
// each.
func (f *Fleet) ReadStderr(ctx context.Context, id drawbridge.ServerID, follow bool,
	each func(line string) error) error {
	e, err := f.serverByID(id)
	if err != nil {
		return err
	}
	lines := e.health.lastStderr()
	p := e.sessions.primaryProcess()
	switch {
	case p != nil && follow:
		lines = nil // FollowStderr repeats them
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
	return process.FollowStderr(ctx, p, e.ctx.Done(), e.sessions.primaryProcess, each)
}
