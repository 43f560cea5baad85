package limits_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/limits"
	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

func TestDebit(t *testing.T) {
	const day = 24 * time.Hour
	session := limits.Quota{Name: "session", Max: 2, Idle: 30 * time.Minute}
	caller := limits.Quota{Name: "caller", Max: 3, Every: day}
	ever := limits.Quota{Name: "ever", Max: 1}
	for _, tt := range []struct {
		name   string
		before limits.Purse
		quotas []limits.Quota
		now    time.Time
		want   limits.Purse
		spent  *limits.SpentError
	}{
		{"the first call of both", nil, []limits.Quota{session, caller}, noon,
			limits.Purse{"session": {1, noon, noon}, "caller": {1, noon, noon}}, nil},
		{"the second", limits.Purse{"session": {1, noon, noon}}, []limits.Quota{session}, after(time.Minute),
			limits.Purse{"session": {2, noon, after(time.Minute)}}, nil},
		{"one too many", limits.Purse{"session": {2, noon, after(time.Minute)}}, []limits.Quota{session}, after(2 * time.Minute),
			nil, &limits.SpentError{Quota: session, Again: after(31 * time.Minute)}},
		{"the session went on by calls", limits.Purse{"session": {1, noon, after(29 * time.Minute)}}, []limits.Quota{session}, after(58 * time.Minute),
			limits.Purse{"session": {2, noon, after(58 * time.Minute)}}, nil},
		{"a new session", limits.Purse{"session": {2, noon, noon}}, []limits.Quota{session}, after(30 * time.Minute),
			limits.Purse{"session": {1, after(30 * time.Minute), after(30 * time.Minute)}}, nil},
		{"the day is not over", limits.Purse{"caller": {3, noon, noon}}, []limits.Quota{caller}, after(day - 1),
			nil, &limits.SpentError{Quota: caller, Again: after(day)}},
		{"the day is over", limits.Purse{"caller": {3, noon, noon}}, []limits.Quota{caller}, after(day),
			limits.Purse{"caller": {1, after(day), after(day)}}, nil},
		{"one of two is spent", limits.Purse{"session": {1, noon, noon}, "caller": {3, noon, noon}}, []limits.Quota{session, caller}, noon,
			nil, &limits.SpentError{Quota: caller, Again: after(day)}},
		{"never again", limits.Purse{"ever": {1, noon, noon}}, []limits.Quota{ever}, after(1000 * day),
			nil, &limits.SpentError{Quota: ever}},
		{"the clock was put back", limits.Purse{"caller": {1, noon, noon}}, []limits.Quota{caller}, after(-time.Hour),
			limits.Purse{"caller": {2, noon, noon}}, nil},
		{"the clock was put back by less than a day, and all is used", limits.Purse{"caller": {3, noon, noon}}, []limits.Quota{caller}, after(1 - day),
			nil, &limits.SpentError{Quota: caller, Again: after(day)}},
		{"the clock was ten years ahead", limits.Purse{"caller": {3, after(3650 * day), after(3650 * day)}}, []limits.Quota{caller}, noon,
			limits.Purse{"caller": {1, noon, noon}}, nil},
		{"so was a session's", limits.Purse{"session": {2, after(day), after(day)}}, []limits.Quota{session}, noon,
			limits.Purse{"session": {1, noon, noon}}, nil},
		{"what never begins anew does not for that", limits.Purse{"ever": {1, after(3650 * day), after(3650 * day)}}, []limits.Quota{ever}, noon,
			nil, &limits.SpentError{Quota: ever}},
		{"none at all", nil, []limits.Quota{{Name: "none"}}, noon, nil, &limits.SpentError{Quota: limits.Quota{Name: "none"}}},
		{"a quota that is not asked about any more", limits.Purse{"old": {7, noon, noon}}, []limits.Quota{ever}, noon,
			limits.Purse{"ever": {1, noon, noon}}, nil},
	} {
		got, err := tt.before.Debit(tt.quotas, tt.now)
		var spent *limits.SpentError
		if errors.As(err, &spent); !cmp.Equal(tt.spent, spent) || !cmp.Equal(tt.want, got) {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, err, tt.want, tt.spent)
		}
	}
}

// TestAQuotaIsNeverOverdrawn makes calls at random times: no window of the quota's length has more than there are.
func TestAQuotaIsNeverOverdrawn(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		q := limits.Quota{Name: "q", Max: 1 + rng.IntN(5), Every: time.Duration(1+rng.IntN(60)) * time.Second}
		p, now := limits.Purse{}, noon
		var began time.Time
		used := 0
		for range 500 {
			now = now.Add(time.Duration(rng.IntN(5000)) * time.Millisecond)
			if used > 0 && !now.Before(began.Add(q.Every)) {
				used = 0
			}
			next, err := p.Debit([]limits.Quota{q}, now)
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
			text, err := next.Text()
			if err != nil {
				t.Fatal(err)
			}
			if p, err = limits.ReadPurse(text); err != nil { // it is kept between any two calls
				t.Fatal(err)
			}
		}
	}
}

func FuzzReadPurse(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"session":{"used":2,"first":"2026-11-22T12:00:00Z","last":"2026-11-22T12:00:01Z"}}`, `{"a":{"used":-1}}`, `[`, `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := limits.ReadPurse(text)
		if err != nil {
			return
		}
		again, err := p.Text()
		if err != nil {
			t.Skip("a time that JSON has no words for:", err)
		}
		if q, err := limits.ReadPurse(again); err != nil || len(q) != len(p) {
			t.Errorf("%q came back as %v, %v", again, q, err)
		}
	})
}

func TestPace(t *testing.T) {
	var p limits.Pace
	type call struct {
		name  string
		at    time.Duration
		again time.Duration // 0 means that it is let through
	}
	for i, c := range []call{
		{"a", 0, 0}, {"a", 10 * time.Second, 0}, {"a", 20 * time.Second, time.Minute}, {"b", 20 * time.Second, 0},
		{"a", time.Minute - 1, time.Minute}, {"a", time.Minute, 0}, {"a", time.Minute + 1, 70 * time.Second}, {"a", 70 * time.Second, 0},
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
	b   *limits.Breaker
	now time.Time
}

func (c *caller) call(site limits.Site, args, end string, failed bool) (limits.Loop, bool) {
	c.now = c.now.Add(time.Second)
	text := func(s string) func() []byte { return func() []byte { return []byte(s) } }
	loop, held := c.b.Held(site, text(args), c.now)
	if !held && !c.b.Idle(failed, c.now) {
		c.b.Ended(site, text(args), failed, text(end), c.now)
	}
	return loop, held
}

func TestBreaker(t *testing.T) {
	site := limits.Site{Caller: "ada", Server: "s", Tool: "t"}
	for _, tt := range []struct {
		name  string
		loops limits.Loops
		do    func(c *caller, i int) (limits.Loop, bool)
		// first is the call that is held first, counted from 0; -1 means none of 100.
		first int
		loop  limits.Loop
	}{
		{"the same error", limits.Loops{Errors: 25}, func(c *caller, _ int) (limits.Loop, bool) { return c.call(site, "x", "e", true) },
			25, limits.Loop{Times: 25, Errors: true, Again: after(61 * time.Second)}},
		{"the same answer", limits.Loops{Calls: 10}, func(c *caller, _ int) (limits.Loop, bool) { return c.call(site, "x", "r", false) },
			10, limits.Loop{Times: 10, Again: after(61 * time.Second)}},
		{"an error counts as a call", limits.Loops{Calls: 10, Errors: 50}, func(c *caller, _ int) (limits.Loop, bool) { return c.call(site, "x", "e", true) },
			10, limits.Loop{Times: 10, Errors: true, Again: after(61 * time.Second)}},
		{"answers where errors count", limits.Loops{Errors: 2}, func(c *caller, _ int) (limits.Loop, bool) { return c.call(site, "x", "r", false) }, -1, limits.Loop{}},
		{"nothing counts", limits.Loops{}, func(c *caller, _ int) (limits.Loop, bool) { return c.call(site, "x", "e", true) }, -1, limits.Loop{}},
		{"other arguments each time", limits.Loops{Errors: 2}, func(c *caller, i int) (limits.Loop, bool) { return c.call(site, fmt.Sprint(i), "e", true) }, -1, limits.Loop{}},
		{"another end each time", limits.Loops{Errors: 2, Calls: 2}, func(c *caller, i int) (limits.Loop, bool) { return c.call(site, "x", fmt.Sprint(i), i%2 == 0) }, -1, limits.Loop{}},
		{"an answer between errors", limits.Loops{Errors: 3}, func(c *caller, i int) (limits.Loop, bool) { return c.call(site, "x", "e", i%3 != 2) }, -1, limits.Loop{}},
		{"other callers", limits.Loops{Errors: 3}, func(c *caller, i int) (limits.Loop, bool) {
			return c.call(limits.Site{Caller: fmt.Sprint(i), Server: "s", Tool: "t"}, "x", "e", true)
		}, -1, limits.Loop{}},
		{"slower than the window", limits.Loops{Errors: 7}, func(c *caller, i int) (limits.Loop, bool) {
			c.now = c.now.Add(9 * time.Second)
			return c.call(site, "x", "e", true)
		}, -1, limits.Loop{}},
		{"just quick enough", limits.Loops{Errors: 6}, func(c *caller, i int) (limits.Loop, bool) {
			c.now = c.now.Add(8 * time.Second)
			return c.call(site, "x", "e", true)
		}, 6, limits.Loop{Times: 6, Errors: true, Again: after(69 * time.Second)}},
	} {
		c := &caller{limits.NewBreaker(tt.loops, nil), noon}
		first, loop := -1, limits.Loop{}
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

// TestTheSameInOtherWords makes a call as often as it may be made, in words that differ and mean the same, among more others than are
// remembered.
func TestTheSameInOtherWords(t *testing.T) {
	site := limits.Site{Server: "s"}
	c := &caller{limits.NewBreaker(limits.Loops{Calls: 3}, bytes.ToLower), noon}
	for _, args := range []string{"x", "X", "x"} {
		if _, held := c.call(site, args, "r", false); held {
			t.Fatalf("%s is held too early", args)
		}
		for i := range 300 {
			c.now = c.now.Add(-time.Second)
			c.call(limits.Site{Server: "other"}, fmt.Sprint(args, i), "r", false)
		}
	}
	for _, args := range []string{"X", "x", "X"} {
		if _, held := c.call(site, args, "r", false); !held {
			t.Errorf("%s is let through", args)
		}
	}
}

// TestALoopThatIsHeldComesBack sees that one more call is let through when the oldest is a minute old, and that another end of it
// ends the loop.
func TestALoopThatIsHeldComesBack(t *testing.T) {
	site := limits.Site{Server: "s"}
	c := &caller{limits.NewBreaker(limits.Loops{Errors: 3}, nil), noon}
	for range 3 {
		c.call(site, "x", "e", true)
	}
	loop, held := c.call(site, "x", "e", true)
	if !held {
		t.Fatal("the loop is not held")
	}
	c.now = loop.Again.Add(-2 * time.Second)
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
	b := limits.NewBreaker(limits.Loops{Calls: 2}, nil)
	x := func() []byte { return []byte("x") }
	for i := range 20_000 {
		b.Ended(limits.Site{Tool: fmt.Sprint(i)}, x, false, x, noon)
		b.Ended(limits.Site{}, func() []byte { return fmt.Append(nil, i) }, false, x, noon)
	}
	if n := b.Size(); n > 4096+64 {
		t.Errorf("it remembers %d runs", n)
	}
	b.Ended(limits.Site{Tool: "later"}, x, false, x, after(2*time.Minute))
	if n := b.Size(); n != 1 {
		t.Errorf("it remembers %d runs of two minutes ago", n-1)
	}
	most := limits.NewBreaker(limits.Loops{Calls: 1_000_000}, nil)
	for i := range 10_000 { // of a client that polls
		most.Ended(limits.Site{}, x, false, x, after(time.Duration(i)*time.Second))
	}
	if n := most.Longest(); n != 60 {
		t.Errorf("of a call each second it remembers %d, where those of a minute count", n)
	}
}

func TestOnce(t *testing.T) {
	o := limits.Once{Life: time.Minute}
	for i, s := range []struct {
		text string
		at   time.Duration
		want bool
	}{
		{"a", 0, true}, {"a", 0, false}, {"b", 59 * time.Second, true}, {"a", 60 * time.Second, false}, // a began the Life before
		{"b", 2*time.Minute - 1, false}, {"a", 2 * time.Minute, true}, {"c", 2 * time.Minute, true}, {"c", time.Second, false}, // the clock was put back
		{"c", time.Hour, true},
	} {
		if known := o.New(s.text, after(s.at)); known != s.want {
			t.Errorf("look %d at %q: new is %v", i, s.text, known)
		}
		if first := o.First(s.text, after(s.at)); first != s.want {
			t.Errorf("%d: %q is first: %v", i, s.text, first)
		}
	}
}

// TestOnceIsBounded fills a Life: what there is no room for is not taken for new.
func TestOnceIsBounded(t *testing.T) {
	o := limits.Once{Life: time.Minute}
	n := 0
	for o.First(fmt.Sprint(n), noon) {
		n++
	}
	if n != limits.Texts || o.New("another", noon) || !o.First("another", after(time.Minute)) {
		t.Errorf("%d texts were taken for new", n)
	}
}

// TestPaceGivesBack returns calls that were not made.
func TestPaceGivesBack(t *testing.T) {
	var p limits.Pace
	p.Return("a", noon)
	for i, want := range []bool{true, true, false} {
		if _, ok := p.Room("a", 2, noon); ok != want {
			t.Errorf("%d: room is %v", i, ok)
		}
		if _, ok := p.Take("a", 2, noon); ok != want {
			t.Errorf("%d: taken is %v", i, ok)
		}
	}
	p.Return("a", after(time.Second)) // nobody took that
	p.Return("b", noon)
	if _, ok := p.Take("a", 2, noon); ok {
		t.Error("what nobody took was given back")
	}
	p.Return("a", noon)
	if _, ok := p.Take("a", 2, noon); !ok {
		t.Error("what was given back is gone")
	}
}

// TestALookAtTheLongestRunIsEnough makes calls at random, and asks of each what is said where no run is passed over.
func TestALookAtTheLongestRunIsEnough(t *testing.T) {
	all := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := limits.NewBreaker(limits.Loops{Errors: r.IntN(4), Calls: r.IntN(7)}, nil)
		now, held := noon, 0
		for range 600 {
			now = now.Add(time.Duration(r.ExpFloat64() * float64(3*time.Second)))
			if r.IntN(100) == 0 {
				now = now.Add(time.Duration(r.IntN(150)) * time.Second)
			}
			site := limits.Site{Caller: "ada", Server: "s", Tool: string(rune('a' + r.IntN(2)))}
			said := []byte{byte(r.IntN(2))}
			same := func() []byte { return said }
			got, is := b.Held(site, same, now)
			want, must := b.HeldAnyway(site, same, now)
			if got != want || is != must {
				t.Fatalf("seed %d: %+v %v, want %+v %v", seed, got, is, want, must)
			}
			if is {
				held++
				continue
			}
			end := []byte{byte(r.IntN(10) / 9)}
			b.Ended(site, same, r.IntN(5) > 0, func() []byte { return end }, now)
		}
		all += held
	}
	if all < 100 {
		t.Errorf("%d calls were held", all)
	}
}
