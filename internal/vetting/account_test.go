package vetting_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/trust"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
	"github.com/google/go-cmp/cmp"
)

// A shelf is a store in memory.
type shelf struct {
	mu     sync.Mutex
	bodies map[string][]byte
	writes int
	broken error
	// reading is called while accounts are on their way to who reads them; nil does nothing.
	reading func()
}

func newShelf() *shelf { return &shelf{bodies: map[string][]byte{}} }

// fail has everything fail from now on; nil ends that.
func (s *shelf) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
}

// written counts the writes.
func (s *shelf) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func (s *shelf) UpdateAccount(_ context.Context, _, name string, work func([]byte, time.Time) ([]byte, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	body, err := work(s.bodies[name], time.Now())
	if err == nil {
		s.bodies[name] = body
		s.writes++
	}
	return err
}

func (s *shelf) Accounts(context.Context, string) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	all := map[string][]byte{}
	for name, body := range s.bodies {
		all[name] = body
	}
	if s.reading != nil {
		s.mu.Unlock()
		defer s.mu.Lock()
		s.reading()
	}
	return all, nil
}

// A reader is a book with someone who watches it, and the moments that they were told.
type reader struct {
	*vetting.TrustAccounts
	told []time.Time
}

// open makes a book that has read its store, and runs it for as long as the test does.
func open(t *testing.T, s *shelf) *reader {
	t.Helper()
	r := &reader{TrustAccounts: vetting.NewTrustAccounts(s, vetting.TrustOptions{})}
	if err := r.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.OnQuarantineChange(func(context.Context, string) { r.told = append(r.told, time.Now()) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return r
}

var (
	fails    = trust.Event{Kind: trust.CallFailed}
	succeeds = trust.Event{Kind: trust.CallSucceeded}
)

// TestAClockThatWasPutBack has a store with events of a clock that was ten years ahead: no one is held for ten years,
// and a reset of then forgives nothing of now, in this book and in one of another process.
func TestAClockThatWasPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		ahead := time.Now().Add(10 * 365 * 24 * time.Hour)
		keep := func(name string, kinds ...trust.EventKind) {
			var a trust.EventHistory
			for i, kind := range kinds {
				a = a.WithEvents(trust.Event{At: ahead.Add(time.Duration(i) * time.Hour), Kind: kind, Count: 3})
			}
			text, err := a.Encode()
			if err != nil {
				t.Fatal(err)
			}
			s.bodies[name] = text
		}
		keep("held", trust.TextSanitised)
		keep("reset", trust.TextSanitised, trust.TrustReset)
		keep("forgiven", trust.TextSanitised)
		b := open(t, s)
		if st := b.Status("held"); !st.Quarantined || st.Until.After(time.Now().Add(time.Hour)) {
			t.Errorf("held: %+v", st)
		}
		b.AddEvents("reset", "s", trust.Event{Kind: trust.TextSanitised, Count: 3})
		if err := b.Reset(t.Context(), "forgiven", "s"); err != nil {
			t.Error(err)
		}
		<-time.After(time.Second)
		synctest.Wait()
		for _, b := range []*reader{b, open(t, s)} {
			if !b.Quarantined("reset") {
				t.Error("a reset of a later date forgave what is noted now")
			}
			if st := b.Status("forgiven"); st.Score != 1 {
				t.Errorf("what was reset now has the score %v", st.Score)
			}
		}
		<-time.After(time.Hour)
		if b.Quarantined("held") || b.Quarantined("reset") {
			t.Error("an hour later they are held still")
		}
	})
}

// TestQuarantineBeginsAndEnds follows a server whose calls fail. It is quarantined at once, in a process after that
// too, and free at the millisecond that was told, without anybody asking.
func TestQuarantineBeginsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		b := open(t, s)
		for i := range 31 {
			if b.Quarantined("x") {
				t.Fatalf("quarantined after %d failures", i)
			}
			b.AddEvents("x", "s", fails)
		}
		synctest.Wait()
		began := time.Now()
		if !b.Quarantined("x") || b.Quarantined("y") {
			t.Error("31 failures in a row are not a quarantine, or another's too")
		}
		until := b.Status("x").Until
		later := open(t, s)
		if diff := cmp.Diff(b.Status("x"), later.Status("x")); diff != "" {
			t.Errorf("another process has it otherwise (-first +second):\n%s", diff)
		}
		pass(time.Until(until) - time.Millisecond)
		if !b.Quarantined("x") || !later.Quarantined("x") {
			t.Error("it is over too early")
		}
		pass(time.Millisecond)
		synctest.Wait()
		if b.Quarantined("x") || later.Quarantined("x") {
			t.Error("it is not over")
		}
		for _, r := range []*reader{b, later} {
			if diff := cmp.Diff([]time.Time{began, until}, r.told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		}
		if got := b.Status("x").Score; got < 0.45 || got > 0.4501 {
			t.Errorf("it comes back with %v", got)
		}
	})
}

// TestSuccessesAreWrittenTogether sees that what costs nothing to lose does not cost a write each, and nothing where
// it says nothing.
func TestSuccessesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		b := open(t, s)
		for range 100 {
			b.AddEvents("x", "s", succeeds)
		}
		pass(time.Minute)
		if s.written() != 0 {
			t.Errorf("%d writes of nothing", s.written())
		}
		b.AddEvents("x", "s", fails)
		synctest.Wait()
		if s.written() != 1 {
			t.Errorf("a failure is written %d times", s.written())
		}
		b.AddEvents("x", "s", succeeds)
		b.AddEvents("x", "s", succeeds)
		synctest.Wait()
		if s.written() != 1 {
			t.Error("a success is written at once")
		}
		pass(time.Second)
		synctest.Wait()
		if s.written() != 2 {
			t.Errorf("two successes are written %d times", s.written()-1)
		}
		if got, want := b.Status("x").Score, 0.99; got < want || got > want+0.001 {
			t.Errorf("the score is %v, want %v", got, want)
		}
	})
}

// TestAResetReachesOtherProcesses resets in one process what another has quarantined, which hears of it when it reads.
func TestAResetReachesOtherProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		b, other := open(t, s), open(t, s)
		b.AddEvents("x", "s", trust.Event{Kind: trust.TextSanitised, Count: 3, Marks: []string{"a", "b", "c"}})
		synctest.Wait()
		pass(time.Second)
		if err := other.Reset(t.Context(), "x", "s"); err != nil {
			t.Fatal(err)
		}
		if !b.Quarantined("x") {
			t.Error("it is free before the book is read")
		}
		if err := b.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := b.Status("x"); got.Score != 1 || got.Quarantined || len(b.told) != 2 {
			t.Errorf("after the reset: %+v, told at %v", got, b.told)
		}
		b.AddEvents("x", "s", trust.Event{Kind: trust.TextSanitised, Count: 3, Marks: []string{"a", "b", "c"}})
		if b.Quarantined("x") {
			t.Error("what was forgiven counts again")
		}
	})
}

// TestWhatIsWrittenWhileTheBookIsRead counts, though who reads has the store as it was before.
func TestWhatIsWrittenWhileTheBookIsRead(t *testing.T) {
	s := newShelf()
	b := vetting.NewTrustAccounts(s, vetting.TrustOptions{})
	b.AddEvents("x", "s", fails)
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.AddEvents("x", "s", trust.Event{Kind: trust.TextSanitised, Count: 3, Marks: []string{"a", "b", "c"}})
	if !b.Quarantined("x") {
		t.Fatal("it is not quarantined")
	}
	var writing sync.WaitGroup
	s.reading = func() {
		writing.Go(func() {
			if err := b.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		})
		for range 1000 { // time enough for it, unless it waits
			runtime.Gosched()
		}
	}
	if err := b.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	writing.Wait()
	if !b.Quarantined("x") {
		t.Error("it is free, and the store says otherwise")
	}
}

// TestAStoreThatIsAway sees that what is noted counts all the same, and is written when the store is back.
func TestAStoreThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		b := open(t, s)
		s.fail(errors.New("the disk is full"))
		b.AddEvents("x", "s", trust.Event{Kind: trust.TextSanitised, Count: 3})
		synctest.Wait()
		if !b.Quarantined("x") || len(b.told) != 1 {
			t.Error("it does not count")
		}
		s.fail(nil)
		pass(5 * time.Second)
		synctest.Wait()
		if !open(t, s).Quarantined("x") {
			t.Error("it was not written")
		}
		s.fail(errors.New("the disk is full"))
		b.AddEvents("x", "s", fails)
		if err := b.Flush(t.Context()); err == nil {
			t.Error("it was written nowhere")
		}
	})
}

// TestADamagedAccountIsNotTrusted takes away what the score stands on.
func TestADamagedAccountIsNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.bodies["x"] = []byte(`{"events":[`)
		b := open(t, s)
		if got := b.Status("x"); got.Score != 0 || !got.Quarantined {
			t.Errorf("a damaged account: %+v", got)
		}
	})
}

// TestReloadsChangeNothing has two processes note at random, with reads and restarts in between: in the end both have
// what the store has, and that is the fold of all that was noted.
func TestReloadsChangeNothing(t *testing.T) {
	kinds := []trust.EventKind{trust.DefinitionChanged, trust.TextSanitised, trust.UnexpectedTool, trust.CallFailed,
		trust.CallFailed, trust.TrustReset}
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			s := newShelf()
			books := []*reader{open(t, s), open(t, s)}
			var all trust.EventHistory
			for range 200 {
				i := rng.IntN(2)
				switch rng.IntN(6) {
				case 0:
					if err := books[i].Load(t.Context()); err != nil {
						t.Fatal(err)
					}
				case 1:
					if err := books[i].Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
					books[i] = open(t, s)
				default:
					e := trust.Event{At: time.Now().UTC().Truncate(time.Millisecond), Kind: kinds[rng.IntN(len(kinds))],
						Count: rng.IntN(3)}
					all = all.WithEvents(e)
					books[i].AddEvents("x", "s", e)
				}
				pass(time.Duration(rng.IntN(600)) * time.Second)
			}
			var rules trust.ScoreRules
			want := rules.Fold(all.Events)
			for _, b := range books {
				if err := b.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := b.Load(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got, want := b.Status("x").Score, rules.Score(want, time.Now()); got != want {
					t.Errorf("seed %d: the score is %v, want %v", seed, got, want)
				}
			}
		})
	}
}

// pass lets time pass, in a bubble of synctest where it costs none.
func pass(d time.Duration) { <-time.After(d) }
