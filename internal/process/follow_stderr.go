package process

import (
	"context"
	"time"
)

// restartPollInterval is how often FollowStderr checks whether a new process has replaced the ended one.
const restartPollInterval = 200 * time.Millisecond

// FollowStderr calls each with every line that several processes in succession write to standard error. It starts with
// the oldest stored line of p. When p has ended, it continues with the next process. current returns the process that
// is running now. Both p and the result of current may be nil while no process is running. over is closed when no
// further process will be started.
//
// FollowStderr returns nil when ctx ends, or when over is closed and the last process has ended. If each returns an
// error, FollowStderr returns that error.
func FollowStderr(ctx context.Context, p *Process, over <-chan struct{}, current func() *Process,
	each func(line string) error) error {
	for {
		if p != nil {
			if err := p.followStderr(ctx, each); err != nil || ctx.Err() != nil {
				return err
			}
		}
		if p = nextProcess(ctx, over, current, p); p == nil {
			return nil
		}
	}
}

// followStderr calls each with the lines of one process until the process ends.
func (p *Process) followStderr(ctx context.Context, each func(line string) error) error {
	for next, ended := 0, false; ; {
		lines, then, more := p.StderrFrom(next)
		for _, line := range lines {
			if err := each(line); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		next = then
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		case <-p.Done():
			ended = true // the last lines must still be read
		}
	}
}

// nextProcess waits until current returns another process than p. It returns nil if ctx ends or over is closed first.
func nextProcess(ctx context.Context, over <-chan struct{}, current func() *Process, p *Process) *Process {
	tick := time.NewTicker(restartPollInterval)
	defer tick.Stop()
	for {
		if now := current(); now != nil && now != p {
			return now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		case <-over:
			return nil
		}
	}
}
