package tui

import "context"

// runningCommands are the commands that have not ended. Each is cancelled by its own function: one that ends does not
// change how another one, or a run, is cancelled. The zero value has none.
type runningCommands struct {
	last    int
	cancels map[int]context.CancelFunc
}

// add adds a command and returns its context and its number for remove.
func (r *runningCommands) add(parent context.Context) (ctx context.Context, number int) {
	ctx, cancel := context.WithCancel(parent)
	if r.cancels == nil {
		r.cancels = map[int]context.CancelFunc{}
	}
	r.last++
	r.cancels[r.last] = cancel
	return ctx, r.last
}

// remove removes a command that has ended.
func (r *runningCommands) remove(number int) {
	if cancel, ok := r.cancels[number]; ok {
		cancel()
		delete(r.cancels, number)
	}
}

// cancel cancels all commands.
func (r *runningCommands) cancel() {
	for _, cancel := range r.cancels {
		cancel()
	}
}

// any reports whether a command has not ended.
func (r *runningCommands) any() bool { return len(r.cancels) > 0 }
