package limits

import (
	"hash/maphash"
	"sync"
	"time"
)

// A Site is where calls are counted together: who calls which tool of which server.
type Site struct{ Caller, Server, Tool string }

// Loops says how often the same call may end the same way within 60 seconds before it is held. Zero is any number of times.
type Loops struct {
	// Errors is for calls that end in the same error, Calls for any.
	Errors, Calls int
}

// A Loop is the same call, made again and again.
type Loop struct {
	// Times is how often it ended the same way, Errors that this way was an error.
	Times  int
	Errors bool
	// Again is when one more is let through.
	Again time.Time
}

// sites is how many sites a breaker remembers in one minute: who calls more of them is not in a loop.
const sites = 4096

// perSite is how many different calls it remembers of one site.
const perSite = 64

// A Breaker finds callers who make the same call again and again, and learn nothing. A call costs it next to nothing unless
// calls are counted that succeed, or one of that site has ended in an error lately: arguments are looked at then only. Its
// methods may be called from several goroutines.
type Breaker struct {
	loops Loops
	seed  maphash.Seed
	same  func(args []byte) []byte

	mu sync.Mutex
	// start is when the breaker was first asked.
	start time.Time
	// told has the keys of arguments by how they were written: a call is asked about, and soon after it ends.
	told [told]struct{ written, key uint64 }
	// now and before are the runs of the minute that began at since, and of the one before it, by site and arguments.
	now, before map[Site]map[uint64]*run
	since       time.Time
	// longest is how long runs were at most after a call of the minute of now, longestBefore after one of the minute before.
	longest, longestBefore lengths
}

// lengths are those of the longest run that ends in an error, and of the longest other one.
type lengths struct{ failed, fine int }

// A run is the same call with the same end.
type run struct {
	end    uint64
	failed bool
	// at is when those of the last 60 seconds ended, counted from the breaker's start, the oldest first: no more of them than the most that
	// are let through.
	at []time.Duration
}

// told is how many keys of arguments are remembered.
const told = 64

// NewBreaker makes a breaker that has seen no call. Same gives arguments so that those which mean the same are the same bytes; nil
// leaves them as they are written.
func NewBreaker(l Loops, same func(args []byte) []byte) *Breaker {
	if same == nil {
		same = func(args []byte) []byte { return args }
	}
	return &Breaker{loops: l, seed: maphash.MakeSeed(), same: same, now: map[Site]map[uint64]*run{}}
}

// key tells arguments from others that mean something else. The lock is not held.
func (b *Breaker) key(args []byte) uint64 {
	written := maphash.Bytes(b.seed, args)
	known := &b.told[written%told]
	b.mu.Lock()
	key, ok := known.key, known.written == written && written != 0
	b.mu.Unlock()
	if ok {
		return key
	}
	key = maphash.Bytes(b.seed, b.same(args))
	b.mu.Lock()
	defer b.mu.Unlock()
	known.written, known.key = written, key
	return key
}

// Held says whether a call is one too many of a loop. args gives its arguments; it may be left uncalled.
func (b *Breaker) Held(at Site, args func() []byte, now time.Time) (Loop, bool) {
	if !b.near(now) {
		return Loop{}, false
	}
	key := b.key(args())
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.find(at, key)
	if r == nil {
		return Loop{}, false
	}
	most := b.most(r.failed)
	if most == 0 || len(r.at) < most {
		return Loop{}, false
	}
	again := b.start.Add(r.at[len(r.at)-most] + Minute)
	return Loop{most, r.failed, again}, now.Before(again)
}

// Idle says that it makes no difference that a call ended like that, whichever it was: Ended need not be told.
func (b *Breaker) Idle(failed bool, now time.Time) bool {
	if b.most(failed) > 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn(now)
	return len(b.now)+len(b.before) == 0
}

// Ended counts a call that has ended: failed says that it was in an error, end gives what tells its end from others. Both
// functions may be left uncalled.
func (b *Breaker) Ended(at Site, args func() []byte, failed bool, end func() []byte, now time.Time) {
	most := b.most(failed)
	if most == 0 {
		b.forget(at, args, now)
		return
	}
	key, sum := b.key(args()), maphash.Bytes(b.seed, end())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn(now)
	r := b.now[at][key]
	kept := r != nil
	if !kept {
		r = b.before[at][key]
	}
	if r == nil || r.failed != failed || r.end != sum {
		r, kept = &run{end: sum, failed: failed}, false
	}
	ended := now.Sub(b.start)
	old := 0
	for old < len(r.at) && (ended-r.at[old] >= Minute || len(r.at)-old >= most) {
		old++
	}
	r.at = append(r.at[old:], ended)
	if failed {
		b.longest.failed = max(b.longest.failed, len(r.at))
	} else {
		b.longest.fine = max(b.longest.fine, len(r.at))
	}
	if !kept {
		b.keep(at, key, r)
	}
}

// forget ends the runs of a call that has ended in a way that does not count.
func (b *Breaker) forget(at Site, args func() []byte, now time.Time) {
	if !b.knows(at, now) {
		return
	}
	key := b.key(args())
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.now[at], key)
	delete(b.before[at], key)
}

// near says whether any run may be so long that its call is held: where none is, nothing need be known of the call.
func (b *Breaker) near(now time.Time) bool {
	b.mu.Lock()
	b.turn(now)
	failed, fine := max(b.longest.failed, b.longestBefore.failed), max(b.longest.fine, b.longestBefore.fine)
	b.mu.Unlock()
	return failed > 0 && failed >= b.most(true) || fine > 0 && fine >= b.most(false)
}

// knows says whether a call of a site was counted lately.
func (b *Breaker) knows(at Site, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn(now)
	return b.now[at] != nil || b.before[at] != nil
}

// most is how many calls are let through that end like that; 0 is any number.
func (b *Breaker) most(failed bool) int {
	most := b.loops.Calls
	if failed && b.loops.Errors > 0 && (most == 0 || b.loops.Errors < most) {
		most = b.loops.Errors
	}
	return most
}

// turn begins a new minute where the last one is over. What nobody has called since is forgotten with the one before it.
func (b *Breaker) turn(now time.Time) {
	if b.start.IsZero() {
		b.start = now
	}
	switch gone := now.Sub(b.since); {
	case gone >= 2*Minute:
		b.before, b.now, b.since = nil, map[Site]map[uint64]*run{}, now
		b.longest, b.longestBefore = lengths{}, lengths{}
	case gone >= Minute:
		b.before, b.now, b.since = b.now, map[Site]map[uint64]*run{}, now
		b.longest, b.longestBefore = lengths{}, b.longest
	}
}

// find gives the run of a call; nil where there is none.
func (b *Breaker) find(at Site, key uint64) *run {
	if r := b.now[at][key]; r != nil {
		return r
	}
	return b.before[at][key]
}

// keep remembers a run, unless there are more of them than a loop has.
func (b *Breaker) keep(at Site, key uint64, r *run) {
	runs := b.now[at]
	if runs == nil {
		if len(b.now) >= sites {
			return
		}
		runs = map[uint64]*run{}
		b.now[at] = runs
	}
	if runs[key] != nil || len(runs) < perSite {
		runs[key] = r
	}
}
