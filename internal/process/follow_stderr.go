package process

import (
	"context"
	"time"
)

// restartPollInterval is how often a follower checks whether a new program has replaced the ended one.
const restartPollInterval = 200 * time.Millisecond

// FollowStderr calls each with every line that programs write to standard error: first of p, from the oldest kept line
// on, and after its end of the next program that current returns. Both p and the result of current may be nil while no
// program runs. It returns nil when ctx ends, or when the last program has ended and over is closed, which means that
// no other follows. An error of each is returned.
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

// followStderr calls each with the lines of one program until its end.
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
			ended = true // its last lines are still to be read
		}
	}
}

// nextProcess waits for another program than p; it returns nil if none follows.
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
