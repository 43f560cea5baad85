package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"
)

// A CallSite is where calls are counted together: who calls which tool of which server.
type CallSite struct{ Caller, Server, Tool string }

// LoopLimits says how often the same call may end the same way within 60 seconds before it is held. Zero is any number
// of times.
type LoopLimits struct {
	// Errors is for calls that end in the same error, Calls for any.
	Errors, Calls int
}

// A LoopState is the same call, made again and again.
type LoopState struct {
	// Times is how often it ended the same way, Errors that this way was an error.
	Times  int
	Errors bool
	// RetryAt is when one more is let through.
	RetryAt time.Time
}

// maxSites is how many sites a breaker remembers in one minute: who calls more of them is not in a loop.
const maxSites = 4096

// maxRunsPerSite is how many different calls it remembers of one site.
const maxRunsPerSite = 64

// A LoopBreaker finds callers who make the same call again and again, and learn nothing. A call costs it next to
// nothing unless calls are counted that succeed, or one of that site has ended in an error lately: arguments are
// looked at then only. Its methods may be called from several goroutines.
type LoopBreaker struct {
	limits        LoopLimits
	seed          maphash.Seed
	canonicalArgs func(args []byte) []byte

	mu sync.Mutex
	// start is when the breaker was first asked.
	start time.Time
	// recentKeys has the keys of arguments by how they were written: a call is asked about, and soon after it ends.
	recentKeys [maxRecentKeys]struct{ written, key uint64 }
	// current and before are the runs of the minute that began at since, and of the one before it, by site and
	// arguments.
	current, previous map[CallSite]map[uint64]*callRun
	since             time.Time
	// longest is how long runs were at most after a call of the minute of now, longestBefore after one of the minute
	// before.
	longest, longestBefore runLengths
}

// runLengths are those of the longest run that ends in an error, and of the longest other one.
type runLengths struct{ failed, fine int }

// A callRun is the same call with the same end.
type callRun struct {
	resultKey uint64
	failed    bool
	// times is when those of the last 60 seconds ended, counted from the breaker's start, the oldest first: no more of
	// them than the most that are let through.
	times []time.Duration
}

// maxRecentKeys is how many keys of arguments are remembered.
const maxRecentKeys = 64

// NewLoopBreaker makes a breaker that has seen no call. Same gives arguments so that those which mean the same are the
// same bytes; nil leaves them as they are written.
func NewLoopBreaker(l LoopLimits, same func(args []byte) []byte) *LoopBreaker {
	if same == nil {
		same = func(args []byte) []byte { return args }
	}
	return &LoopBreaker{limits: l, seed: maphash.MakeSeed(), canonicalArgs: same,
		current: map[CallSite]map[uint64]*callRun{}}
}

// argumentsKey tells arguments from others that mean something else. The lock is not held.
func (b *LoopBreaker) argumentsKey(args []byte) uint64 {
	written := maphash.Bytes(b.seed, args)
	known := &b.recentKeys[written%maxRecentKeys]
	b.mu.Lock()
	key, ok := known.key, known.written == written && written != 0
	b.mu.Unlock()
	if ok {
		return key
	}
	key = maphash.Bytes(b.seed, b.canonicalArgs(args))
	b.mu.Lock()
	defer b.mu.Unlock()
	known.written, known.key = written, key
	return key
}

// CheckCall reports whether a call is one too many of a loop. args gives its arguments; it may be left uncalled.
func (b *LoopBreaker) CheckCall(at CallSite, args func() []byte, now time.Time) (LoopState, bool) {
	if !b.isNearLimit(now) {
		return LoopState{}, false
	}
	key := b.argumentsKey(args())
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.findRun(at, key)
	if r == nil {
		return LoopState{}, false
	}
	most := b.limitFor(r.failed)
	if most == 0 || len(r.times) < most {
		return LoopState{}, false
	}
	again := b.start.Add(r.times[len(r.times)-most] + Window)
	return LoopState{most, r.failed, again}, now.Before(again)
}

// CanSkipRecording reports that it makes no difference that a call ended like that, whichever it was: Ended need not be
// told.
func (b *LoopBreaker) CanSkipRecording(failed bool, now time.Time) bool {
	if b.limitFor(failed) > 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rotateWindow(now)
	return len(b.current)+len(b.previous) == 0
}

// RecordEnd counts a call that has ended: failed says that it was in an error, end gives what tells its end from
// others. Both functions may be left uncalled.
func (b *LoopBreaker) RecordEnd(at CallSite, args func() []byte, failed bool, end func() []byte, now time.Time) {
	most := b.limitFor(failed)
	if most == 0 {
		b.forgetRuns(at, args, now)
		return
	}
	key, sum := b.argumentsKey(args()), maphash.Bytes(b.seed, end())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rotateWindow(now)
	r := b.current[at][key]
	kept := r != nil
	if !kept {
		r = b.previous[at][key]
	}
	if r == nil || r.failed != failed || r.resultKey != sum {
		r, kept = &callRun{resultKey: sum, failed: failed}, false
	}
	ended := now.Sub(b.start)
	old := 0
	for old < len(r.times) && (ended-r.times[old] >= Window || len(r.times)-old >= most) {
		old++
	}
	r.times = append(r.times[old:], ended)
	if failed {
		b.longest.failed = max(b.longest.failed, len(r.times))
	} else {
		b.longest.fine = max(b.longest.fine, len(r.times))
	}
	if !kept {
		b.storeRun(at, key, r)
	}
}

// forgetRuns ends the runs of a call that has ended in a way that does not count.
func (b *LoopBreaker) forgetRuns(at CallSite, args func() []byte, now time.Time) {
	if !b.hasRuns(at, now) {
		return
	}
	key := b.argumentsKey(args())
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.current[at], key)
	delete(b.previous[at], key)
}

// isNearLimit reports whether any run may be so long that its call is held: where none is, nothing need be known of the
// call.
func (b *LoopBreaker) isNearLimit(now time.Time) bool {
	b.mu.Lock()
	b.rotateWindow(now)
	failed, fine := max(b.longest.failed, b.longestBefore.failed), max(b.longest.fine, b.longestBefore.fine)
	b.mu.Unlock()
	return failed > 0 && failed >= b.limitFor(true) || fine > 0 && fine >= b.limitFor(false)
}

// hasRuns reports whether a call of a site was counted lately.
func (b *LoopBreaker) hasRuns(at CallSite, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rotateWindow(now)
	return b.current[at] != nil || b.previous[at] != nil
}

// limitFor is how many calls are let through that end like that; 0 is any number.
func (b *LoopBreaker) limitFor(failed bool) int {
	most := b.limits.Calls
	if failed && b.limits.Errors > 0 && (most == 0 || b.limits.Errors < most) {
		most = b.limits.Errors
	}
	return most
}

// rotateWindow begins a new minute where the last one is over. What nobody has called since is forgotten with the one
// before it.
func (b *LoopBreaker) rotateWindow(now time.Time) {
	if b.start.IsZero() {
		b.start = now
	}
	switch gone := now.Sub(b.since); {
	case gone >= 2*Window:
		b.previous, b.current, b.since = nil, map[CallSite]map[uint64]*callRun{}, now
		b.longest, b.longestBefore = runLengths{}, runLengths{}
	case gone >= Window:
		b.previous, b.current, b.since = b.current, map[CallSite]map[uint64]*callRun{}, now
		b.longest, b.longestBefore = runLengths{}, b.longest
	}
}

// findRun returns the run of a call; nil where there is none.
func (b *LoopBreaker) findRun(at CallSite, key uint64) *callRun {
	if r := b.current[at][key]; r != nil {
		return r
	}
	return b.previous[at][key]
}

// storeRun remembers a run, unless there are more of them than a loop has.
func (b *LoopBreaker) storeRun(at CallSite, key uint64, r *callRun) {
	runs := b.current[at]
	if runs == nil {
		if len(b.current) >= maxSites {
			return
		}
		runs = map[uint64]*callRun{}
		b.current[at] = runs
	}
	if runs[key] != nil || len(runs) < maxRunsPerSite {
		runs[key] = r
	}
}
