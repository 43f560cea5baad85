package bridge

import (
	"context"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/process"
)

// restartSeen is how soon a follower of a server's standard error sees that the server was started again.
const restartSeen = 200 * time.Millisecond

// Stderr gives the last lines that a server wrote to standard error, oldest first, those of a process that ended too. With
// follow it goes on with each new line, over restarts of the server, until ctx ends, which is no error. The error is for an
// unknown name, or what each gave.
func (f *Fleet) Stderr(ctx context.Context, id drawbridge.ServerID, follow bool, each func(line string) error) error {
	e, err := f.endpoint(id)
	if err != nil {
		return err
	}
	say := func(lines []string) error {
		for _, line := range lines {
			if err := each(line); err != nil {
				return err
			}
		}
		return nil
	}
	e.mu.Lock()
	last := e.stderr
	e.mu.Unlock()
	p := e.program()
	if p == nil {
		if err := say(last); err != nil || !follow {
			return err
		}
	}
	for {
		if err := followOne(ctx, p, follow, say); err != nil || !follow || ctx.Err() != nil {
			return err
		}
		if p = e.nextProgram(ctx, p); p == nil {
			return nil
		}
	}
}

// followOne says what one process writes, to its end where that is wanted.
func followOne(ctx context.Context, p *process.Process, follow bool, say func([]string) error) error {
	if p == nil {
		return nil
	}
	for next := 0; ; {
		lines, then, more := p.StderrFrom(next)
		if err := say(lines); err != nil || !follow {
			return err
		}
		next = then
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		case <-p.Done():
			lines, _, _ := p.StderrFrom(next)
			return say(lines)
		}
	}
}

// program is the process of the connection that is kept; nil for none.
func (e *endpoint) program() *process.Process {
	e.mu.Lock()
	defer e.mu.Unlock()
	if home := e.sessions[e.homeKey()]; home != nil {
		return home.proc
	}
	return nil
}

// nextProgram waits for another process than p; nil at the end of ctx or of the server.
func (e *endpoint) nextProgram(ctx context.Context, p *process.Process) *process.Process {
	tick := time.NewTicker(restartSeen)
	defer tick.Stop()
	for {
		if now := e.program(); now != nil && now != p {
			return now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		case <-e.ctx.Done():
			return nil
		}
	}
}
