package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"
)

// A CallSite identifies calls that are counted together: a caller's calls of one tool of a server.
type CallSite struct{ Caller, Server, Tool string }

// LoopLimits bounds how often the same call may end the same way within 60 seconds. Zero means no limit.
type LoopLimits struct {
	// Errors is for calls that end in the same error, Calls for any result.
	Errors, Calls int
}

// A LoopState describes a call that was repeated too often.
type LoopState struct {
	// Times is how often it ended the same way; Errors reports that it was an error each time.
	Times  int
	Errors bool
	// RetryAt is when the call is allowed again.
	RetryAt time.Time
}

// maxSites bounds the sites that a breaker remembers in one minute: a caller with more of them is not in a loop.
const maxSites = 4096

// maxRunsPerSite bounds the different calls that it remembers of one site.
const maxRunsPerSite = 64

// A LoopBreaker finds callers that repeat the same call with the same result. It is cheap: it reads arguments only if
// calls that succeed are limited too, or a call of that site has recently ended in an error. Its methods may be called
// from several goroutines.
type LoopBreaker struct {
	limits        LoopLimits
	seed          maphash.Seed
	canonicalArgs func(args []byte) []byte

	mu sync.Mutex
	// start is the time of the first call to the breaker.
	start time.Time
	// recentKeys caches the keys of arguments by their bytes: a call is checked, and recorded soon after.
	recentKeys [maxRecentKeys]struct{ written, key uint64 }
	// current holds the runs of the minute that began at since, previous those of the minute before, by site and
	// arguments.
	current, previous map[CallSite]map[uint64]*callRun
	since             time.Time
	// longest is the length of the longest runs in the present minute, longestBefore in the minute before.
	longest, longestBefore runLengths
}

// runLengths holds the length of the longest run that ends in an error, and of the longest other run.
type runLengths struct{ failed, fine int }

// A callRun is a series of equal calls with an equal result.
type callRun struct {
	resultKey uint64
	failed    bool
	// times is when the calls of the last 60 seconds ended, measured from the breaker's start, the oldest first. It
	// holds no more than the limit.
	times []time.Duration
}

// maxRecentKeys is the size of the cache of argument keys.
const maxRecentKeys = 64

// NewLoopBreaker returns a breaker that has seen no call. same returns a canonical form of arguments; nil compares them
// as written.
func NewLoopBreaker(l LoopLimits, same func(args []byte) []byte) *LoopBreaker {
	if same == nil {
		same = func(args []byte) []byte { return args }
	}
	return &LoopBreaker{limits: l, seed: maphash.MakeSeed(), canonicalArgs: same,
		current: map[CallSite]map[uint64]*callRun{}}
}

// argumentsKey returns a key for arguments: equal arguments have equal keys. It takes mu, which the caller must not
// hold.
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

// CheckCall reports whether a call would exceed its limit. args returns its arguments, and is called only if needed.
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

// CanSkipRecording reports that no RecordEnd is needed for a call that ended like that, whatever the call was.
func (b *LoopBreaker) CanSkipRecording(failed bool, now time.Time) bool {
	if b.limitFor(failed) > 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rotateWindow(now)
	return len(b.current)+len(b.previous) == 0
}

// RecordEnd counts a call that has ended. failed reports that it ended in an error; end returns bytes that identify its
// result. Both functions are called only if needed.
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

// forgetRuns ends the runs of a call whose result is not counted.
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

// isNearLimit reports whether any run is long enough for its limit. If not, a call need not be examined.
func (b *LoopBreaker) isNearLimit(now time.Time) bool {
	b.mu.Lock()
	b.rotateWindow(now)
	failed, fine := max(b.longest.failed, b.longestBefore.failed), max(b.longest.fine, b.longestBefore.fine)
	b.mu.Unlock()
	return failed > 0 && failed >= b.limitFor(true) || fine > 0 && fine >= b.limitFor(false)
}

// hasRuns reports whether a call of a site was counted recently.
func (b *LoopBreaker) hasRuns(at CallSite, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rotateWindow(now)
	return b.current[at] != nil || b.previous[at] != nil
}

// limitFor returns how many calls with such an end are allowed; 0 means no limit.
func (b *LoopBreaker) limitFor(failed bool) int {
	most := b.limits.Calls
	if failed && b.limits.Errors > 0 && (most == 0 || b.limits.Errors < most) {
		most = b.limits.Errors
	}
	return most
}

// rotateWindow begins a new minute when the last one is over, and drops the runs of the minute before it.
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

// findRun returns the run of a call, or nil.
func (b *LoopBreaker) findRun(at CallSite, key uint64) *callRun {
	if r := b.current[at][key]; r != nil {
		return r
	}
	return b.previous[at][key]
}

// storeRun stores a run, unless its site has too many for a loop.
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
