package guards

import (
	"hash/maphash"
	"sync"
	"time"
)

// A callSite identifies the calls that are counted together: the calls of one caller to one tool of a server.
type callSite struct{ caller, server, tool string }

// loopLimits bounds how often a caller may repeat the same call with the same result within 60 seconds. Zero means no
// limit.
type loopLimits struct {
	// errors is the limit for calls that end with the same error. calls is the limit for calls that end with the same
	// result, which may also be an error.
	errors, calls int
}

// A loopState describes a call that was repeated too often with the same result.
type loopState struct {
	// times is how often the call ended with that result. errors is set if the result was an error.
	times  int
	errors bool
	// retryAt is when the call is allowed again.
	retryAt time.Time
}

// maxCallSites bounds the call sites that a loopBreaker stores per minute. Calls at further call sites are not limited: a
// caller that uses so many tools is not in a loop.
const maxCallSites = 4096

// maxRunsPerSite bounds the calls with different arguments that a loopBreaker stores for one call site. Further calls
// are not limited.
const maxRunsPerSite = 64

// A loopBreaker detects callers that repeat the same call with the same result. It reads the arguments of a call only
// if they can affect a limit, since reading them takes time. Its methods may be called from several goroutines.
type loopBreaker struct {
	limits        loopLimits
	seed          maphash.Seed
	canonicalArgs func(args []byte) []byte

	mu sync.Mutex
	// start is the time of the first call to the breaker.
	start time.Time
	// recentKeys caches the results of argumentsKey, by the hash of the arguments' bytes. checkCall and soon after
	// recordEnd need the key of the same arguments.
	recentKeys [maxRecentKeys]struct{ written, key uint64 }
	// current contains the runs of the minute that began at the time since. previous contains the runs of the minute
	// before that. The keys of the maps are the call site and the key of the arguments.
	current, previous map[callSite]map[uint64]*callRun
	since             time.Time
	// longest contains the lengths of the longest runs in the current minute. longestBefore contains those of the
	// minute before.
	longest, longestBefore runLengths
}

// runLengths contains the length of the longest run of failed calls, and of the longest run of successful calls.
type runLengths struct{ failed, fine int }

// A callRun is a series of equal calls with equal results.
type callRun struct {
	resultKey uint64
	failed    bool
	// times contains the times when the calls of the last 60 seconds ended, as durations since the breaker's start, the
	// oldest first. Its length is at most the limit.
	times []time.Duration
}

// maxRecentKeys is the number of entries in recentKeys.
const maxRecentKeys = 64

// newLoopBreaker returns a loopBreaker that has counted no calls. same returns a canonical form of arguments, so that
// equal arguments are recognised. If same is nil, arguments are compared byte by byte.
func newLoopBreaker(l loopLimits, same func(args []byte) []byte) *loopBreaker {
	if same == nil {
		same = func(args []byte) []byte { return args }
	}
	return &loopBreaker{limits: l, seed: maphash.MakeSeed(), canonicalArgs: same,
		current: map[callSite]map[uint64]*callRun{}}
}

// argumentsKey returns a key for arguments: equal arguments have equal keys. mu must not be held.
func (b *loopBreaker) argumentsKey(args []byte) uint64 {
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

// checkCall reports whether a call would exceed its limit. It then also returns how often the call was repeated, and
// when it is allowed again. args returns the arguments of the call; it is called only if necessary.
func (b *loopBreaker) checkCall(at callSite, args func() []byte, now time.Time) (loopState, bool) {
	if !b.isNearLimit(now) {
		return loopState{}, false
	}
	key := b.argumentsKey(args())
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.findRun(at, key)
	if r == nil {
		return loopState{}, false
	}
	most := b.limitFor(r.failed)
	if most == 0 || len(r.times) < most {
		return loopState{}, false
	}
	again := b.start.Add(r.times[len(r.times)-most] + rateWindow)
	return loopState{most, r.failed, again}, now.Before(again)
}

// canSkipRecording reports whether recordEnd need not be called for a call that ended at the time now, because it would
// change nothing. failed is set if that call ended in an error.
func (b *loopBreaker) canSkipRecording(failed bool, now time.Time) bool {
	if b.limitFor(failed) > 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rotateWindow(now)
	return len(b.current)+len(b.previous) == 0
}

// recordEnd counts a call that has ended. failed is set if the call ended in an error. args returns the arguments of
// the call, and end returns bytes that identify its result. Both functions are called only if necessary.
func (b *loopBreaker) recordEnd(at callSite, args func() []byte, failed bool, end func() []byte, now time.Time) {
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
	for old < len(r.times) && (ended-r.times[old] >= rateWindow || len(r.times)-old >= most) {
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

// forgetRuns deletes the stored runs of a call, because the call has now ended with a result that no limit counts.
func (b *loopBreaker) forgetRuns(at callSite, args func() []byte, now time.Time) {
	if !b.hasRuns(at, now) {
		return
	}
	key := b.argumentsKey(args())
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.current[at], key)
	delete(b.previous[at], key)
}

// isNearLimit reports whether any run has reached its limit. Otherwise a call need not be checked.
func (b *loopBreaker) isNearLimit(now time.Time) bool {
	b.mu.Lock()
	b.rotateWindow(now)
	failed, fine := max(b.longest.failed, b.longestBefore.failed), max(b.longest.fine, b.longestBefore.fine)
	b.mu.Unlock()
	return failed > 0 && failed >= b.limitFor(true) || fine > 0 && fine >= b.limitFor(false)
}

// hasRuns reports whether a call of that site was counted in the current or the last minute.
func (b *loopBreaker) hasRuns(at callSite, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rotateWindow(now)
	return b.current[at] != nil || b.previous[at] != nil
}

// limitFor returns how many equal calls with equal results are permitted. failed is set for results that are errors. 0
// means no limit.
func (b *loopBreaker) limitFor(failed bool) int {
	most := b.limits.calls
	if failed && b.limits.errors > 0 && (most == 0 || b.limits.errors < most) {
		most = b.limits.errors
	}
	return most
}

// rotateWindow starts a new minute if the current minute is over, and deletes the runs of the minute before it.
func (b *loopBreaker) rotateWindow(now time.Time) {
	if b.start.IsZero() {
		b.start = now
	}
	switch gone := now.Sub(b.since); {
	case gone >= 2*rateWindow:
		b.previous, b.current, b.since = nil, map[callSite]map[uint64]*callRun{}, now
		b.longest, b.longestBefore = runLengths{}, runLengths{}
	case gone >= rateWindow:
		b.previous, b.current, b.since = b.current, map[callSite]map[uint64]*callRun{}, now
		b.longest, b.longestBefore = runLengths{}, b.longest
	}
}

// findRun returns the run of a call, or nil.
func (b *loopBreaker) findRun(at callSite, key uint64) *callRun {
	if r := b.current[at][key]; r != nil {
		return r
	}
	return b.previous[at][key]
}

// storeRun stores a run, unless maxCallSites or maxRunsPerSite is reached.
func (b *loopBreaker) storeRun(at callSite, key uint64, r *callRun) {
	runs := b.current[at]
	if runs == nil {
		if len(b.current) >= maxCallSites {
			return
		}
		runs = map[uint64]*callRun{}
		b.current[at] = runs
	}
	if runs[key] != nil || len(runs) < maxRunsPerSite {
		runs[key] = r
	}
}
