package ratelimit_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/ratelimit"
	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

func TestDebit(t *testing.T) {
	const day = 24 * time.Hour
	session := ratelimit.Quota{Name: "session", Max: 2, Idle: 30 * time.Minute}
	caller := ratelimit.Quota{Name: "caller", Max: 3, Every: day}
	ever := ratelimit.Quota{Name: "ever", Max: 1}
	for _, tt := range []struct {
		name   string
		before ratelimit.UsageByQuota
		quotas []ratelimit.Quota
		now    time.Time
		want   ratelimit.UsageByQuota
		spent  *ratelimit.QuotaExceededError
	}{
		{"the first call of both", nil, []ratelimit.Quota{session, caller}, noon,
			ratelimit.UsageByQuota{"session": {1, noon, noon}, "caller": {1, noon, noon}}, nil},
		{"the second", ratelimit.UsageByQuota{"session": {1, noon, noon}}, []ratelimit.Quota{session},
			after(time.Minute),
			ratelimit.UsageByQuota{"session": {2, noon, after(time.Minute)}}, nil},
		{"one too many", ratelimit.UsageByQuota{"session": {2, noon, after(time.Minute)}}, []ratelimit.Quota{session},
			after(2 * time.Minute),
			nil, &ratelimit.QuotaExceededError{Quota: session, RetryAt: after(31 * time.Minute)}},
		{"the session went on by calls", ratelimit.UsageByQuota{"session": {1, noon, after(29 * time.Minute)}},
			[]ratelimit.Quota{session}, after(58 * time.Minute),
			ratelimit.UsageByQuota{"session": {2, noon, after(58 * time.Minute)}}, nil},
		{"a new session", ratelimit.UsageByQuota{"session": {2, noon, noon}}, []ratelimit.Quota{session},
			after(30 * time.Minute),
			ratelimit.UsageByQuota{"session": {1, after(30 * time.Minute), after(30 * time.Minute)}}, nil},
		{"the day is not over", ratelimit.UsageByQuota{"caller": {3, noon, noon}},
			[]ratelimit.Quota{caller}, after(day - 1),
			nil, &ratelimit.QuotaExceededError{Quota: caller, RetryAt: after(day)}},
		{"the day is over", ratelimit.UsageByQuota{"caller": {3, noon, noon}}, []ratelimit.Quota{caller}, after(day),
			ratelimit.UsageByQuota{"caller": {1, after(day), after(day)}}, nil},
		{"one of two is spent", ratelimit.UsageByQuota{"session": {1, noon, noon}, "caller": {3, noon, noon}},
			[]ratelimit.Quota{session, caller}, noon,
			nil, &ratelimit.QuotaExceededError{Quota: caller, RetryAt: after(day)}},
		{"never again", ratelimit.UsageByQuota{"ever": {1, noon, noon}}, []ratelimit.Quota{ever}, after(1000 * day),
			nil, &ratelimit.QuotaExceededError{Quota: ever}},
		{"the clock was put back", ratelimit.UsageByQuota{"caller": {1, noon, noon}}, []ratelimit.Quota{caller},
			after(-time.Hour),
			ratelimit.UsageByQuota{"caller": {2, noon, noon}}, nil},
		{"the clock was put back by less than a day, and all is used",
			ratelimit.UsageByQuota{"caller": {3, noon, noon}}, []ratelimit.Quota{caller}, after(1 - day),
			nil, &ratelimit.QuotaExceededError{Quota: caller, RetryAt: after(day)}},
		{"the clock was ten years ahead, and all is used",
			ratelimit.UsageByQuota{"caller": {3, after(3650 * day), after(3650 * day)}}, []ratelimit.Quota{caller}, noon,
			nil, &ratelimit.QuotaExceededError{Quota: caller, RetryAt: after(day)}},
		{"the clock was ten years ahead", ratelimit.UsageByQuota{"caller": {1, after(3650 * day), after(3650 * day)}},
			[]ratelimit.Quota{caller}, noon,
			ratelimit.UsageByQuota{"caller": {2, noon, noon}}, nil},
		{"so was a session's", ratelimit.UsageByQuota{"session": {2, after(day), after(day)}},
			[]ratelimit.Quota{session}, noon,
			nil, &ratelimit.QuotaExceededError{Quota: session, RetryAt: after(30 * time.Minute)}},
		{"what never begins again does not for that", ratelimit.UsageByQuota{"ever": {1, after(3650 * day),
			after(3650 * day)}}, []ratelimit.Quota{ever}, noon,
			nil, &ratelimit.QuotaExceededError{Quota: ever}},
		{"none at all", nil, []ratelimit.Quota{{Name: "none"}}, noon, nil,
			&ratelimit.QuotaExceededError{Quota: ratelimit.Quota{Name: "none"}}},
		{"a quota that is not asked about any more", ratelimit.UsageByQuota{"old": {7, noon, noon}},
			[]ratelimit.Quota{ever}, noon,
			ratelimit.UsageByQuota{"ever": {1, noon, noon}}, nil},
	} {
		before, _ := tt.before.Rebase(tt.quotas, tt.now)
		got, err := before.Spend(tt.quotas, tt.now)
		var spent *ratelimit.QuotaExceededError
		if errors.As(err, &spent); !cmp.Equal(tt.spent, spent) || !cmp.Equal(tt.want, got) {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, err, tt.want, tt.spent)
		}
	}
}

// TestAQuotaIsNeverOverdrawn makes calls at random times: no window of the quota's length has more than there are.
func TestAQuotaIsNeverOverdrawn(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		q := ratelimit.Quota{Name: "q", Max: 1 + rng.IntN(5), Every: time.Duration(1+rng.IntN(60)) * time.Second}
		p, now := ratelimit.UsageByQuota{}, noon
		var began time.Time
		used := 0
		for range 500 {
			now = now.Add(time.Duration(rng.IntN(5000)) * time.Millisecond)
			if used > 0 && !now.Before(began.Add(q.Every)) {
				used = 0
			}
			next, err := p.Spend([]ratelimit.Quota{q}, now)
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
			text, err := next.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if p, err = ratelimit.ParseUsage(text); err != nil { // it is kept between any two calls
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
		p, err := ratelimit.ParseUsage(text)
		if err != nil {
			return
		}
		again, err := p.Encode()
		if err != nil {
			t.Skip("a time that JSON has no words for:", err)
		}
		if q, err := ratelimit.ParseUsage(again); err != nil || len(q) != len(p) {
			t.Errorf("%q came back as %v, %v", again, q, err)
		}
	})
}

func TestPace(t *testing.T) {
	var p ratelimit.WindowLimiter
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
		again, ok := p.Take(c.name, 2, after(c.at))
		if ok != (c.again == 0) || !ok && !again.Equal(after(c.again)) {
			t.Errorf("call %d: again %v, %v", i, again, ok)
		}
	}
	if again, ok := p.Take("c", 0, noon); ok || !again.Equal(after(time.Minute)) {
		t.Error("a pace of nothing let a call through:", again)
	}
	if again, ok := p.Take("a", 1, after(71*time.Second)); ok || !again.Equal(after(130*time.Second)) {
		t.Error("a pace that was lowered let a call through:", again)
	}
}

// caller makes calls and takes note of whether they are held.
type caller struct {
	b   *ratelimit.LoopBreaker
	now time.Time
}

func (c *caller) call(site ratelimit.CallSite, args, end string, failed bool) (ratelimit.LoopState, bool) {
	c.now = c.now.Add(time.Second)
	text := func(s string) func() []byte { return func() []byte { return []byte(s) } }
	loop, held := c.b.CheckCall(site, text(args), c.now)
	if !held && !c.b.CanSkipRecording(failed, c.now) {
		c.b.RecordEnd(site, text(args), failed, text(end), c.now)
	}
	return loop, held
}

func TestBreaker(t *testing.T) {
	site := ratelimit.CallSite{Caller: "ada", Server: "s", Tool: "t"}
	for _, tt := range []struct {
		name  string
		loops ratelimit.LoopLimits
		do    func(c *caller, i int) (ratelimit.LoopState, bool)
		// first is the call that is held first, counted from 0; -1 means none of 100.
		first int
		loop  ratelimit.LoopState
	}{
		{"the same error", ratelimit.LoopLimits{Errors: 25}, func(c *caller, _ int) (ratelimit.LoopState,
			bool) {
			return c.call(site, "x", "e", true)
		},
			25, ratelimit.LoopState{Times: 25, Errors: true, RetryAt: after(61 * time.Second)}},
		{"the same answer", ratelimit.LoopLimits{Calls: 10}, func(c *caller, _ int) (ratelimit.LoopState,
			bool) {
			return c.call(site, "x", "r", false)
		},
			10, ratelimit.LoopState{Times: 10, RetryAt: after(61 * time.Second)}},
		{"an error counts as a call", ratelimit.LoopLimits{Calls: 10, Errors: 50},
			func(c *caller, _ int) (ratelimit.LoopState, bool) { return c.call(site, "x", "e", true) },
			10, ratelimit.LoopState{Times: 10, Errors: true, RetryAt: after(61 * time.Second)}},
		{"answers where errors count", ratelimit.LoopLimits{Errors: 2}, func(c *caller, _ int) (ratelimit.LoopState,
			bool) {
			return c.call(site, "x", "r", false)
		}, -1, ratelimit.LoopState{}},
		{"nothing counts", ratelimit.LoopLimits{}, func(c *caller, _ int) (ratelimit.LoopState,
			bool) {
			return c.call(site, "x", "e", true)
		}, -1, ratelimit.LoopState{}},
		{"other arguments each time", ratelimit.LoopLimits{Errors: 2}, func(c *caller, i int) (ratelimit.LoopState,
			bool) {
			return c.call(site, fmt.Sprint(i), "e", true)
		}, -1, ratelimit.LoopState{}},
		{"another end each time", ratelimit.LoopLimits{Errors: 2, Calls: 2},
			func(c *caller, i int) (ratelimit.LoopState, bool) { return c.call(site, "x", fmt.Sprint(i), i%2 == 0) },
			-1, ratelimit.LoopState{}},
		{"an answer between errors", ratelimit.LoopLimits{Errors: 3}, func(c *caller, i int) (ratelimit.LoopState,
			bool) {
			return c.call(site, "x", "e", i%3 != 2)
		}, -1, ratelimit.LoopState{}},
		{"other callers", ratelimit.LoopLimits{Errors: 3}, func(c *caller, i int) (ratelimit.LoopState, bool) {
			return c.call(ratelimit.CallSite{Caller: fmt.Sprint(i), Server: "s", Tool: "t"}, "x", "e", true)
		}, -1, ratelimit.LoopState{}},
		{"slower than the window", ratelimit.LoopLimits{Errors: 7}, func(c *caller, i int) (ratelimit.LoopState, bool) {
			c.now = c.now.Add(9 * time.Second)
			return c.call(site, "x", "e", true)
		}, -1, ratelimit.LoopState{}},
		{"just quick enough", ratelimit.LoopLimits{Errors: 6}, func(c *caller, i int) (ratelimit.LoopState, bool) {
			c.now = c.now.Add(8 * time.Second)
			return c.call(site, "x", "e", true)
		}, 6, ratelimit.LoopState{Times: 6, Errors: true, RetryAt: after(69 * time.Second)}},
	} {
		c := &caller{ratelimit.NewLoopBreaker(tt.loops, nil), noon}
		first, loop := -1, ratelimit.LoopState{}
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
	site := ratelimit.CallSite{Server: "s"}
	c := &caller{ratelimit.NewLoopBreaker(ratelimit.LoopLimits{Calls: 3}, bytes.ToLower), noon}
	for _, args := range []string{"x", "X", "x"} {
		if _, held := c.call(site, args, "r", false); held {
			t.Fatalf("%s is held too early", args)
		}
		for i := range 300 {
			c.now = c.now.Add(-time.Second)
			c.call(ratelimit.CallSite{Server: "other"}, fmt.Sprint(args, i), "r", false)
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
	site := ratelimit.CallSite{Server: "s"}
	c := &caller{ratelimit.NewLoopBreaker(ratelimit.LoopLimits{Errors: 3}, nil), noon}
	for range 3 {
		c.call(site, "x", "e", true)
	}
	loop, held := c.call(site, "x", "e", true)
	if !held {
		t.Fatal("the loop is not held")
	}
	c.now = loop.RetryAt.Add(-2 * time.Second)
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
	b := ratelimit.NewLoopBreaker(ratelimit.LoopLimits{Calls: 2}, nil)
	x := func() []byte { return []byte("x") }
	for i := range 20_000 {
		b.RecordEnd(ratelimit.CallSite{Tool: fmt.Sprint(i)}, x, false, x, noon)
		b.RecordEnd(ratelimit.CallSite{}, func() []byte { return fmt.Append(nil, i) }, false, x, noon)
	}
	if n := b.Size(); n > 4096+64 {
		t.Errorf("it remembers %d runs", n)
	}
	b.RecordEnd(ratelimit.CallSite{Tool: "later"}, x, false, x, after(2*time.Minute))
	if n := b.Size(); n != 1 {
		t.Errorf("it remembers %d runs of two minutes ago", n-1)
	}
	most := ratelimit.NewLoopBreaker(ratelimit.LoopLimits{Calls: 1_000_000}, nil)
	for i := range 10_000 { // of a client that polls
		most.RecordEnd(ratelimit.CallSite{}, x, false, x, after(time.Duration(i)*time.Second))
	}
	if n := most.Longest(); n != 60 {
		t.Errorf("of a call each second it remembers %d, where those of a minute count", n)
	}
}

func TestOnce(t *testing.T) {
	o := ratelimit.SeenSet{TTL: time.Minute}
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
		if known := o.IsNew(s.text, after(s.at)); known != s.want {
			t.Errorf("look %d at %q: new is %v", i, s.text, known)
		}
		if first := o.AddIfNew(s.text, after(s.at)); first != s.want {
			t.Errorf("%d: %q is first: %v", i, s.text, first)
		}
	}
}

// TestOnceIsBounded fills a Life: what there is no room for is not taken for new.
func TestOnceIsBounded(t *testing.T) {
	o := ratelimit.SeenSet{TTL: time.Minute}
	n := 0
	for o.AddIfNew(fmt.Sprint(n), noon) {
		n++
	}
	if n != ratelimit.Texts || o.IsNew("another", noon) || !o.AddIfNew("another", after(time.Minute)) {
		t.Errorf("%d texts were taken for new", n)
	}
}

// TestPaceGivesBack returns calls that were not made.
func TestPaceGivesBack(t *testing.T) {
	var p ratelimit.WindowLimiter
	p.GiveBack("a", noon)
	for i, want := range []bool{true, true, false} {
		if _, ok := p.CheckRoom("a", 2, noon); ok != want {
			t.Errorf("%d: room is %v", i, ok)
		}
		if _, ok := p.Take("a", 2, noon); ok != want {
			t.Errorf("%d: taken is %v", i, ok)
		}
	}
	p.GiveBack("a", after(time.Second)) // no one took that
	p.GiveBack("b", noon)
	if _, ok := p.Take("a", 2, noon); ok {
		t.Error("what no one took was given back")
	}
	p.GiveBack("a", noon)
	if _, ok := p.Take("a", 2, noon); !ok {
		t.Error("what was given back is gone")
	}
}

// TestALookAtTheLongestRunIsEnough makes calls at random, and asks of each what is said where no run is passed over.
func TestALookAtTheLongestRunIsEnough(t *testing.T) {
	all := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := ratelimit.NewLoopBreaker(ratelimit.LoopLimits{Errors: r.IntN(4), Calls: r.IntN(7)}, nil)
		now, held := noon, 0
		for range 600 {
			now = now.Add(time.Duration(r.ExpFloat64() * float64(3*time.Second)))
			if r.IntN(100) == 0 {
				now = now.Add(time.Duration(r.IntN(150)) * time.Second)
			}
			site := ratelimit.CallSite{Caller: "ada", Server: "s", Tool: string(rune('a' + r.IntN(2)))}
			said := []byte{byte(r.IntN(2))}
			same := func() []byte { return said }
			got, is := b.CheckCall(site, same, now)
			want, must := b.HeldAnyway(site, same, now)
			if got != want || is != must {
				t.Fatalf("seed %d: %+v %v, want %+v %v", seed, got, is, want, must)
			}
			if is {
				held++
				continue
			}
			end := []byte{byte(r.IntN(10) / 9)}
			b.RecordEnd(site, same, r.IntN(5) > 0, func() []byte { return end }, now)
		}
		all += held
	}
	if all < 100 {
		t.Errorf("%d calls were held", all)
	}
}
