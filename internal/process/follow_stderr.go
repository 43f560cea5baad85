package process

import (
	"context"
	"time"
)

// restartPollInterval is how soon a follower sees that another program has taken the place of one.
const restartPollInterval = 200 * time.Millisecond

// FollowStderr says each line that programs write to standard error, as it comes: of p, from the oldest line that is
// kept on, and when it has ended, of the next one that current gives. Both p and what current gives are nil where
// there is none at the moment. It returns nil when ctx ends, and when the last program has ended and over is closed,
// which says that no other comes. An error is what each gave.
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

// followStderr says what one program writes, to its end.
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
			ended = true // what it said last is still to be read
		}
	}
}

// nextProcess waits for another program than p; nil where none comes any more.
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
