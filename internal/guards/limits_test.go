package guards

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

func TestDebit(t *testing.T) {
	const day = 24 * time.Hour
	session := Quota{Name: "session", Max: 2, Idle: 30 * time.Minute}
	caller := Quota{Name: "caller", Max: 3, Every: day}
	ever := Quota{Name: "ever", Max: 1}
	for _, tt := range []struct {
		name   string
		before usageByQuota
		quotas []Quota
		now    time.Time
		want   usageByQuota
		spent  *quotaExceededError
	}{
		{"the first call of both", nil, []Quota{session, caller}, noon,
			usageByQuota{"session": {1, noon, noon}, "caller": {1, noon, noon}}, nil},
		{"the second", usageByQuota{"session": {1, noon, noon}}, []Quota{session},
			after(time.Minute),
			usageByQuota{"session": {2, noon, after(time.Minute)}}, nil},
		{"one too many", usageByQuota{"session": {2, noon, after(time.Minute)}}, []Quota{session},
			after(2 * time.Minute),
			nil, &quotaExceededError{Quota: session, RetryAt: after(31 * time.Minute)}},
		{"the session went on by calls", usageByQuota{"session": {1, noon, after(29 * time.Minute)}},
			[]Quota{session}, after(58 * time.Minute),
			usageByQuota{"session": {2, noon, after(58 * time.Minute)}}, nil},
		{"a new session", usageByQuota{"session": {2, noon, noon}}, []Quota{session},
			after(30 * time.Minute),
			usageByQuota{"session": {1, after(30 * time.Minute), after(30 * time.Minute)}}, nil},
		{"the day is not over", usageByQuota{"caller": {3, noon, noon}},
			[]Quota{caller}, after(day - 1),
			nil, &quotaExceededError{Quota: caller, RetryAt: after(day)}},
		{"the day is over", usageByQuota{"caller": {3, noon, noon}}, []Quota{caller}, after(day),
			usageByQuota{"caller": {1, after(day), after(day)}}, nil},
		{"one of two is spent", usageByQuota{"session": {1, noon, noon}, "caller": {3, noon, noon}},
			[]Quota{session, caller}, noon,
			nil, &quotaExceededError{Quota: caller, RetryAt: after(day)}},
		{"never again", usageByQuota{"ever": {1, noon, noon}}, []Quota{ever}, after(1000 * day),
			nil, &quotaExceededError{Quota: ever}},
		{"the clock was put back", usageByQuota{"caller": {1, noon, noon}}, []Quota{caller},
			after(-time.Hour),
			usageByQuota{"caller": {2, noon, noon}}, nil},
		{"the clock was put back by less than a day, and all is used",
			usageByQuota{"caller": {3, noon, noon}}, []Quota{caller}, after(1 - day),
			nil, &quotaExceededError{Quota: caller, RetryAt: after(day)}},
		{"the clock was ten years ahead, and all is used",
			usageByQuota{"caller": {3, after(3650 * day), after(3650 * day)}}, []Quota{caller}, noon,
			nil, &quotaExceededError{Quota: caller, RetryAt: after(day)}},
		{"the clock was ten years ahead", usageByQuota{"caller": {1, after(3650 * day), after(3650 * day)}},
			[]Quota{caller}, noon,
			usageByQuota{"caller": {2, noon, noon}}, nil},
		{"so was a session's", usageByQuota{"session": {2, after(day), after(day)}},
			[]Quota{session}, noon,
			nil, &quotaExceededError{Quota: session, RetryAt: after(30 * time.Minute)}},
		{"what never begins again does not for that", usageByQuota{"ever": {1, after(3650 * day),
			after(3650 * day)}}, []Quota{ever}, noon,
			nil, &quotaExceededError{Quota: ever}},
		{"none at all", nil, []Quota{{Name: "none"}}, noon, nil,
			&quotaExceededError{Quota: Quota{Name: "none"}}},
		{"a quota that is not asked about any more", usageByQuota{"old": {7, noon, noon}},
			[]Quota{ever}, noon,
			usageByQuota{"ever": {1, noon, noon}}, nil},
	} {
		before, _ := tt.before.rebase(tt.quotas, tt.now)
		got, err := before.spend(tt.quotas, tt.now)
		var spent *quotaExceededError
		if errors.As(err, &spent); !cmp.Equal(tt.spent, spent) || !cmp.Equal(tt.want, got) {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, err, tt.want, tt.spent)
		}
	}
}

// TestAQuotaIsNeverOverdrawn makes calls at random times: no window of the quota's length has more than there are.
func TestAQuotaIsNeverOverdrawn(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		q := Quota{Name: "q", Max: 1 + rng.IntN(5), Every: time.Duration(1+rng.IntN(60)) * time.Second}
		p, now := usageByQuota{}, noon
		var began time.Time
		used := 0
		for range 500 {
			now = now.Add(time.Duration(rng.IntN(5000)) * time.Millisecond)
			if used > 0 && !now.Before(began.Add(q.Every)) {
				used = 0
			}
			next, err := p.spend([]Quota{q}, now)
			if (err == nil) != (used < q.Max) {
				t.Fatalf("seed %d: after %d of %d: %v", seed, used, q.Max, err)
			}
			if err != nil {
				continue
			}
			if used == 0 {
				began = now
			}
			used++
			text, err := next.encode()
			if err != nil {
				t.Fatal(err)
			}
			if p, err = parseUsage(text); err != nil { // it is kept between any two calls
				t.Fatal(err)
			}
		}
	}
}

func FuzzReadPurse(f *testing.F) {
	for _, s := range []string{``, `{}`,
		`{"session":{"used":2,"first":"2026-11-22T12:00:00Z","last":"2026-11-22T12:00:01Z"}}`,
		`{"a":{"used":-1}}`, `[`, `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parseUsage(text)
		if err != nil {
			return
		}
		again, err := p.encode()
		if err != nil {
			t.Skip("a time that JSON has no words for:", err)
		}
		if q, err := parseUsage(again); err != nil || len(q) != len(p) {
			t.Errorf("%q came back as %v, %v", again, q, err)
		}
	})
}

func TestPace(t *testing.T) {
	var p windowLimiter
	type call struct {
		name  string
		at    time.Duration
		again time.Duration // 0 means that it is let through
	}
	for i, c := range []call{
		{"a", 0, 0}, {"a", 10 * time.Second, 0}, {"a", 20 * time.Second, time.Minute}, {"b", 20 * time.Second, 0},
		{"a", time.Minute - 1, time.Minute}, {"a", time.Minute, 0}, {"a", time.Minute + 1, 70 * time.Second},
		{"a", 70 * time.Second, 0},
	} {
		again, ok := p.take(c.name, 2, after(c.at))
		if ok != (c.again == 0) || !ok && !again.Equal(after(c.again)) {
			t.Errorf("call %d: again %v, %v", i, again, ok)
		}
	}
	if again, ok := p.take("c", 0, noon); ok || !again.Equal(after(time.Minute)) {
		t.Error("a pace of nothing let a call through:", again)
	}
	if again, ok := p.take("a", 1, after(71*time.Second)); ok || !again.Equal(after(130*time.Second)) {
		t.Error("a pace that was lowered let a call through:", again)
	}
}

// caller makes calls and takes note of whether they are held.
type caller struct {
	b   *loopBreaker
	now time.Time
}

func (c *caller) call(site callSite, args, end string, failed bool) (loopState, bool) {
	c.now = c.now.Add(time.Second)
	text := func(s string) func() []byte { return func() []byte { return []byte(s) } }
	loop, held := c.b.checkCall(site, text(args), c.now)
	if !held && !c.b.canSkipRecording(failed, c.now) {
		c.b.recordEnd(site, text(args), failed, text(end), c.now)
	}
	return loop, held
}

func TestBreaker(t *testing.T) {
	site := callSite{caller: "ada", server: "s", tool: "t"}
	for _, tt := range []struct {
		name  string
		loops loopLimits
		do    func(c *caller, i int) (loopState, bool)
		// first is the call that is held first, counted from 0; -1 means none of 100.
		first int
		loop  loopState
	}{
		{"the same error", loopLimits{errors: 25}, func(c *caller, _ int) (loopState,
			bool) {
			return c.call(site, "x", "e", true)
		},
			25, loopState{times: 25, errors: true, retryAt: after(61 * time.Second)}},
		{"the same answer", loopLimits{calls: 10}, func(c *caller, _ int) (loopState,
			bool) {
			return c.call(site, "x", "r", false)
		},
			10, loopState{times: 10, retryAt: after(61 * time.Second)}},
		{"an error counts as a call", loopLimits{calls: 10, errors: 50},
			func(c *caller, _ int) (loopState, bool) { return c.call(site, "x", "e", true) },
			10, loopState{times: 10, errors: true, retryAt: after(61 * time.Second)}},
		{"answers where errors count", loopLimits{errors: 2}, func(c *caller, _ int) (loopState,
			bool) {
			return c.call(site, "x", "r", false)
		}, -1, loopState{}},
		{"nothing counts", loopLimits{}, func(c *caller, _ int) (loopState,
			bool) {
			return c.call(site, "x", "e", true)
		}, -1, loopState{}},
		{"other arguments each time", loopLimits{errors: 2}, func(c *caller, i int) (loopState,
			bool) {
			return c.call(site, fmt.Sprint(i), "e", true)
		}, -1, loopState{}},
		{"another end each time", loopLimits{errors: 2, calls: 2},
			func(c *caller, i int) (loopState, bool) { return c.call(site, "x", fmt.Sprint(i), i%2 == 0) },
			-1, loopState{}},
		{"an answer between errors", loopLimits{errors: 3}, func(c *caller, i int) (loopState,
			bool) {
			return c.call(site, "x", "e", i%3 != 2)
		}, -1, loopState{}},
		{"other callers", loopLimits{errors: 3}, func(c *caller, i int) (loopState, bool) {
			return c.call(callSite{caller: fmt.Sprint(i), server: "s", tool: "t"}, "x", "e", true)
		}, -1, loopState{}},
		{"slower than the window", loopLimits{errors: 7}, func(c *caller, i int) (loopState, bool) {
			c.now = c.now.Add(9 * time.Second)
			return c.call(site, "x", "e", true)
		}, -1, loopState{}},
		{"just quick enough", loopLimits{errors: 6}, func(c *caller, i int) (loopState, bool) {
			c.now = c.now.Add(8 * time.Second)
			return c.call(site, "x", "e", true)
		}, 6, loopState{times: 6, errors: true, retryAt: after(69 * time.Second)}},
	} {
		c := &caller{newLoopBreaker(tt.loops, nil), noon}
		first, loop := -1, loopState{}
		for i := range 100 {
			if l, held := tt.do(c, i); held {
				first, loop = i, l
				break
			}
		}
		if first != tt.first || loop != tt.loop {
			t.Errorf("%s: call %d is held: %+v; want %d: %+v", tt.name, first, loop, tt.first, tt.loop)
		}
	}
}

// TestTheSameInOtherWords makes a call as often as it may be made, in words that differ and mean the same, among more
// others than are remembered.
func TestTheSameInOtherWords(t *testing.T) {
	site := callSite{server: "s"}
	c := &caller{newLoopBreaker(loopLimits{calls: 3}, bytes.ToLower), noon}
	for _, args := range []string{"x", "X", "x"} {
		if _, held := c.call(site, args, "r", false); held {
			t.Fatalf("%s is held too early", args)
		}
		for i := range 300 {
			c.now = c.now.Add(-time.Second)
			c.call(callSite{server: "other"}, fmt.Sprint(args, i), "r", false)
		}
	}
	for _, args := range []string{"X", "x", "X"} {
		if _, held := c.call(site, args, "r", false); !held {
			t.Errorf("%s is let through", args)
		}
	}
}

// TestALoopThatIsHeldComesBack sees that one more call is let through when the oldest is a minute old, and that
// another end of it ends the loop.
func TestALoopThatIsHeldComesBack(t *testing.T) {
	site := callSite{server: "s"}
	c := &caller{newLoopBreaker(loopLimits{errors: 3}, nil), noon}
	for range 3 {
		c.call(site, "x", "e", true)
	}
	loop, held := c.call(site, "x", "e", true)
	if !held {
		t.Fatal("the loop is not held")
	}
	c.now = loop.retryAt.Add(-2 * time.Second)
	if _, held = c.call(site, "x", "e", true); !held {
		t.Error("the loop is let through too early")
	}
	if _, held = c.call(site, "x", "mended", false); held {
		t.Error("the loop is held after its time")
	}
	for i := range 3 {
		if _, held = c.call(site, "x", "e", true); held {
			t.Errorf("call %d of a new loop is held", i)
		}
	}
}

// TestABreakerIsBounded floods it: it forgets, and does not grow.
func TestABreakerIsBounded(t *testing.T) {
	b := newLoopBreaker(loopLimits{calls: 2}, nil)
	x := func() []byte { return []byte("x") }
	for i := range 20_000 {
		b.recordEnd(callSite{tool: fmt.Sprint(i)}, x, false, x, noon)
		b.recordEnd(callSite{}, func() []byte { return fmt.Append(nil, i) }, false, x, noon)
	}
	if n := b.countRuns(); n > 4096+64 {
		t.Errorf("it remembers %d runs", n)
	}
	b.recordEnd(callSite{tool: "later"}, x, false, x, after(2*time.Minute))
	if n := b.countRuns(); n != 1 {
		t.Errorf("it remembers %d runs of two minutes ago", n-1)
	}
	most := newLoopBreaker(loopLimits{calls: 1_000_000}, nil)
	for i := range 10_000 { // of a client that polls
		most.recordEnd(callSite{}, x, false, x, after(time.Duration(i)*time.Second))
	}
	if n := most.longestRun(); n != 60 {
		t.Errorf("of a call each second it remembers %d, where those of a minute count", n)
	}
}

// countRuns returns the number of runs that a breaker stores.
func (b *loopBreaker) countRuns() (n int) {
	for _, minute := range []map[callSite]map[uint64]*callRun{b.current, b.previous} {
		for _, runs := range minute {
			n += len(runs)
		}
	}
	return n
}

// longestRun returns the number of calls in the longest run of the current minute.
func (b *loopBreaker) longestRun() (n int) {
	for _, runs := range b.current {
		for _, r := range runs {
			n = max(n, len(r.times))
		}
	}
	return n
}

// checkEveryCall is checkCall without the shortcut for breakers whose runs are all short.
func (b *loopBreaker) checkEveryCall(at callSite, args func() []byte, now time.Time) (loopState, bool) {
	b.isNearLimit(now)
	kept := b.longest
	defer func() { b.longest = kept }()
	b.longest = runLengths{math.MaxInt, math.MaxInt}
	return b.checkCall(at, args, now)
}

func TestOnce(t *testing.T) {
	o := seenSet{ttl: time.Minute}
	for i, s := range []struct {
		text string
		at   time.Duration
		want bool
	}{
		// a began the Life before
		{"a", 0, true}, {"a", 0, false}, {"b", 59 * time.Second, true}, {"a", 60 * time.Second, false},
		// the clock was put back
		{"b", 2*time.Minute - 1, false}, {"a", 2 * time.Minute, true}, {"c", 2 * time.Minute, true},
		{"c", time.Second, false},
		{"c", time.Hour, true},
	} {
		if known := o.isNew(s.text, after(s.at)); known != s.want {
			t.Errorf("look %d at %q: new is %v", i, s.text, known)
		}
		if first := o.addIfNew(s.text, after(s.at)); first != s.want {
			t.Errorf("%d: %q is first: %v", i, s.text, first)
		}
	}
}

// TestOnceIsBounded fills a Life: what there is no room for is not taken for new.
func TestOnceIsBounded(t *testing.T) {
	o := seenSet{ttl: time.Minute}
	n := 0
	for o.addIfNew(fmt.Sprint(n), noon) {
		n++
	}
	if n != maxSeenTexts || o.isNew("another", noon) || !o.addIfNew("another", after(time.Minute)) {
		t.Errorf("%d texts were taken for new", n)
	}
}

// TestPaceGivesBack returns calls that were not made.
func TestPaceGivesBack(t *testing.T) {
	var p windowLimiter
	p.giveBack("a", noon)
	for i, want := range []bool{true, true, false} {
		if _, ok := p.checkRoom("a", 2, noon); ok != want {
			t.Errorf("%d: room is %v", i, ok)
		}
		if _, ok := p.take("a", 2, noon); ok != want {
			t.Errorf("%d: taken is %v", i, ok)
		}
	}
	p.giveBack("a", after(time.Second)) // no one took that
	p.giveBack("b", noon)
	if _, ok := p.take("a", 2, noon); ok {
		t.Error("what no one took was given back")
	}
	p.giveBack("a", noon)
	if _, ok := p.take("a", 2, noon); !ok {
		t.Error("what was given back is gone")
	}
}

// TestALookAtTheLongestRunIsEnough makes calls at random, and asks of each what is said where no run is passed over.
func TestALookAtTheLongestRunIsEnough(t *testing.T) {
	all := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := newLoopBreaker(loopLimits{errors: r.IntN(4), calls: r.IntN(7)}, nil)
		now, held := noon, 0
		for range 600 {
			now = now.Add(time.Duration(r.ExpFloat64() * float64(3*time.Second)))
			if r.IntN(100) == 0 {
				now = now.Add(time.Duration(r.IntN(150)) * time.Second)
			}
			site := callSite{caller: "ada", server: "s", tool: string(rune('a' + r.IntN(2)))}
			said := []byte{byte(r.IntN(2))}
			same := func() []byte { return said }
			got, is := b.checkCall(site, same, now)
			want, must := b.checkEveryCall(site, same, now)
			if got != want || is != must {
				t.Fatalf("seed %d: %+v %v, want %+v %v", seed, got, is, want, must)
			}
			if is {
				held++
				continue
			}
			end := []byte{byte(r.IntN(10) / 9)}
			b.recordEnd(site, same, r.IntN(5) > 0, func() []byte { return end }, now)
		}
		all += held
	}
	if all < 100 {
		t.Errorf("%d calls were held", all)
	}
}
