package trust_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/trust"
	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

func event(at time.Duration, k trust.EventKind, count int) trust.Event {
	return trust.Event{At: after(at), Kind: k, Count: count}
}

func times(n int, e trust.Event) []trust.Event { return slices.Repeat([]trust.Event{e}, n) }

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestScore(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []trust.Event
		at     time.Duration
		score  float64
		held   bool
	}{
		{"nothing happened", nil, 0, 1, false},
		{"a changed definition", []trust.Event{event(0, trust.DefinitionChanged, 1)}, 0, 0.8, false},
		{"three in one look", []trust.Event{event(0, trust.DefinitionChanged, 3)}, 0, 0.6, false},
		{"two words taken out", []trust.Event{event(0, trust.TextSanitised, 2)}, 0, 0.5, false},
		{"many words taken out", []trust.Event{event(0, trust.TextSanitised, 1<<62)}, 0, 0.25, true},
		{"unexpected tools", []trust.Event{event(0, trust.UnexpectedTool, 5)}, 0, 0.7, false},
		{"a failed call", []trust.Event{event(0, trust.CallFailed, 0)}, 0, 0.98, false},
		{"a success where nothing is missing", []trust.Event{event(0, trust.CallSucceeded, 9)}, 0, 1, false},
		{"ten successes", []trust.Event{event(0, trust.DefinitionChanged, 1), event(0, trust.CallSucceeded, 10)},
			0, 0.85, false},
		{"no less than nothing", times(9, event(0, trust.TextSanitised, 3)), 0, 0, true},
		{"half is back", []trust.Event{event(0, trust.TextSanitised, 2)}, time.Hour, 0.75, false},
		{"three quarters are back", []trust.Event{event(0, trust.TextSanitised, 2)}, 2 * time.Hour, 0.875, false},
		{"all is back", []trust.Event{event(0, trust.TextSanitised, 2)}, 10 * time.Hour, 1, false},
		{"recovery between two", []trust.Event{event(0, trust.TextSanitised, 2), event(time.Hour, trust.TextSanitised,
			1)}, 2 * time.Hour, 0.75, false},
		{"at the threshold", []trust.Event{event(0, trust.DefinitionChanged, 2), event(0, trust.DefinitionChanged, 1)},
			0, 0.4, false},
		{"reset", []trust.Event{event(0, trust.TextSanitised, 3), event(time.Second, trust.TrustReset, 1)},
			time.Second, 1, false},
		{"after a reset", []trust.Event{event(0, trust.TextSanitised, 3), event(time.Second, trust.TrustReset, 1),
			event(2*time.Second, trust.DefinitionChanged, 1)}, 2 * time.Second, 0.8, false},
		{"a kind of later days", []trust.Event{{At: noon, Kind: "praised", Count: 3}}, 0, 1, false},
		{"a clock that was put back", []trust.Event{event(0, trust.DefinitionChanged, 1)}, -time.Hour, 0.8, false},
	} {
		var r trust.ScoreRules
		s := r.Fold(tt.events)
		if got := r.Score(s, after(tt.at)); !near(got, tt.score) {
			t.Errorf("%s: the score is %v, want %v", tt.name, got, tt.score)
		}
		if got := r.IsQuarantined(s, after(tt.at)); got != tt.held {
			t.Errorf("%s: quarantined %v", tt.name, got)
		}
		if until := r.QuarantineEnd(s, after(tt.at)); tt.held == until.IsZero() {
			t.Errorf("%s: until %v", tt.name, until)
		}
	}
}

// TestQuarantine follows one: it begins under the threshold, and ends at threshold and 0.05, in the millisecond that
// was told.
func TestQuarantine(t *testing.T) {
	for _, r := range []trust.ScoreRules{{}, {Threshold: 0.7, HalfLife: time.Minute},
		{Threshold: 1, HalfLife: time.Second}, {HalfLife: 1 << 62}} {
		s := r.Fold(times(2, event(0, trust.TextSanitised, 2)))
		until := r.QuarantineEnd(s, noon)
		if !r.IsQuarantined(s, noon) || !r.IsQuarantined(s, until.Add(-time.Millisecond)) || r.IsQuarantined(s, until) {
			t.Errorf("%+v: quarantined at first %v, at %v no more %v", r, r.IsQuarantined(s, noon), until,
				!r.IsQuarantined(s, until))
		}
		want := min(1, cmpOr(r.Threshold, trust.DefaultThreshold)+0.05)
		if got := r.Score(s, until); math.Abs(got-want) > 1e-3 {
			t.Errorf("%+v: it ends at %v, want %v", r, got, want)
		}
		// Between the two scores what was quarantined is, and what was not is not.
		fresh := r.Fold([]trust.Event{event(0, trust.DefinitionChanged, 1)})
		if r.Threshold == 0 && r.IsQuarantined(fresh, noon) {
			t.Error("0.8 is quarantined")
		}
		if again := r.Apply(s, trust.Event{At: until.Add(time.Millisecond), Kind: trust.TextSanitised,
			Count: 3}); !r.IsQuarantined(again, until.Add(time.Millisecond)) {
			t.Errorf("%+v: it does not begin anew", r)
		}
	}
	never := trust.ScoreRules{Threshold: -1}
	if s := never.Fold(times(9, event(0, trust.TextSanitised, 3))); never.IsQuarantined(s, noon) {
		t.Error("it is quarantined where nothing is to be")
	}
}

func cmpOr(x, otherwise float64) float64 {
	if x == 0 {
		return otherwise
	}
	return x
}

// random makes a life of a server: events at whole seconds, several of which may be of one moment.
func random(rng *rand.Rand, n int) (events []trust.Event) {
	kinds := []trust.EventKind{trust.DefinitionChanged, trust.TextSanitised, trust.UnexpectedTool, trust.CallFailed,
		trust.CallFailed, trust.CallSucceeded, trust.CallSucceeded, trust.CallSucceeded, trust.TrustReset}
	at := time.Duration(0)
	for range n {
		at += time.Duration(rng.IntN(3)) * time.Duration(rng.IntN(600)) * time.Second
		events = append(events, event(at, kinds[rng.IntN(len(kinds))], rng.IntN(4)))
	}
	return events
}

// TestFold holds for random lives: the order of events does not count, nor whether they are folded at once or one by
// one, nor a summary in between, nor a life in a file in between.
func TestFold(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 7))
		r := trust.ScoreRules{Threshold: rng.Float64(), HalfLife: time.Duration(1+rng.IntN(7200)) * time.Second}
		events := random(rng, 400)
		want := r.Fold(events)
		shuffled := slices.Clone(events)
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := r.Fold(shuffled); got != want {
			t.Fatalf("seed %d: in another order %+v, want %+v", seed, got, want)
		}
		var live trust.ScoreState
		var a trust.EventHistory
		for _, e := range events {
			live = r.Apply(live, e)
			a = a.WithEvents(e).Compacted(r)
			if rng.IntN(10) == 0 {
				text, err := a.Encode()
				if err != nil {
					t.Fatal(err)
				}
				if a, err = trust.ParseHistory(text); err != nil {
					t.Fatal(err)
				}
			}
		}
		if live != want {
			t.Fatalf("seed %d: one by one %+v, want %+v", seed, live, want)
		}
		if len(a.Events) > trust.MaxEvents {
			t.Fatalf("seed %d: %d events are kept", seed, len(a.Events))
		}
		kept, now := r.Fold(a.Events), events[len(events)-1].At
		for range 20 {
			if r.Score(kept, now) != r.Score(want, now) || !r.QuarantineEnd(kept,
				now).Equal(r.QuarantineEnd(want, now)) {
				t.Fatalf("seed %d: what is kept gives %v, %v; want %v, %v", seed, r.Score(kept, now),
					r.QuarantineEnd(kept, now), r.Score(want, now), r.QuarantineEnd(want, now))
			}
			now = now.Add(time.Duration(rng.IntN(1000)) * time.Second)
		}
	}
}

// TestMoreAgainstItIsNeverBetter adds one event against a server to random lives: at no time is its score higher for
// it, and nobody who was quarantined without it is free with it. And with nothing new the score never falls.
func TestMoreAgainstItIsNeverBetter(t *testing.T) {
	against := []trust.EventKind{trust.DefinitionChanged, trust.TextSanitised, trust.UnexpectedTool, trust.CallFailed}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var r trust.ScoreRules
		events := random(rng, 40)
		if seed%2 == 1 { // one that nobody forgives, and that falls again and again
			events = slices.DeleteFunc(random(rng, 80), func(e trust.Event) bool {
				return e.Kind == trust.TrustReset ||
					e.Kind == trust.CallSucceeded
			})
		}
		extra := events[rng.IntN(len(events))]
		extra.Kind, extra.Count = against[rng.IntN(len(against))], 1+rng.IntN(3)
		before, after := r.Fold(events), r.Fold(append(slices.Clone(events), extra))
		last := 0.0
		for i := range 50 {
			at := events[len(events)-1].At.Add(time.Duration(i) * 37 * time.Minute)
			without, with := r.Score(before, at), r.Score(after, at)
			if with > without+1e-9 {
				t.Fatalf("seed %d: %v more makes %v of %v", seed, extra, with, without)
			}
			if r.IsQuarantined(before, at) && !r.IsQuarantined(after, at) {
				t.Fatalf("seed %d: %v more ends a quarantine", seed, extra)
			}
			if without < last || without < 0 || without > 1 {
				t.Fatalf("seed %d: the score goes from %v to %v by itself", seed, last, without)
			}
			last = without
		}
	}
}

// TestAServerThatFallsAgain does what has a server quarantined whenever it is free: it stays away for longer each
// time, up to a day. After two days of peace, or when a person forgives it, all is as at first; and what is summed up
// says the same.
func TestAServerThatFallsAgain(t *testing.T) {
	var r trust.ScoreRules
	var a trust.EventHistory
	now := noon
	fall := func() (away time.Duration) {
		for !r.IsQuarantined(r.Fold(a.Events), now) {
			a = a.WithEvents(trust.Event{At: now, Kind: trust.DefinitionChanged, Count: 2})
		}
		s := r.Fold(a.Events)
		until := r.QuarantineEnd(s, now)
		if r.IsQuarantined(s, until) || !r.IsQuarantined(s, until.Add(-time.Millisecond)) {
			t.Fatalf("%v away, and it is not until then", until.Sub(now))
		}
		away = until.Sub(now)
		now = until.Add(time.Second)
		return away
	}
	first := fall()
	var stays []time.Duration
	for range 12 {
		stays = append(stays, fall().Truncate(time.Minute))
	}
	m := time.Minute
	want := []time.Duration{15 * m, 30 * m, 60 * m, 120 * m, 240 * m, 480 * m, 960 * m, 1440 * m, 1440 * m, 1440 * m,
		1440 * m, 1440 * m}
	for i := range want { // what the score takes may be more
		if stays[i] < want[i] || stays[i] > max(want[i], time.Hour) {
			t.Errorf("time %d it is away for %v, want %v", i+2, stays[i], want[i])
		}
	}
	now = now.Add(47 * time.Hour)
	if away := fall(); away < 24*time.Hour {
		t.Errorf("after 47 hours of peace it is away for %v", away)
	}
	now = now.Add(49 * time.Hour)
	if away := fall(); away > first {
		t.Errorf("after 49 hours of peace it is away for %v", away)
	}
	for range 3 {
		fall()
	}
	a = a.WithEvents(trust.Event{At: now, Kind: trust.TrustReset})
	now = now.Add(time.Second)
	if away := fall(); away > first {
		t.Errorf("it was forgiven, and is away for %v", away)
	}
}

func TestWhatWasSeenCountsOnce(t *testing.T) {
	var a trust.EventHistory
	a = a.WithEvents(trust.Event{At: noon, Kind: trust.TextSanitised, Count: 2, Marks: []string{"a", "b"}})
	a = a.WithEvents(
		trust.Event{At: after(time.Hour), Kind: trust.TextSanitised, Count: 2, Marks: []string{"a", "b"}},
		trust.Event{At: after(2 * time.Hour), Kind: trust.TextSanitised, Count: 3, Marks: []string{"b", "c", "d"}},
		trust.Event{At: after(3 * time.Hour), Kind: trust.CallFailed}, trust.Event{At: after(3 * time.Hour),
			Kind: trust.CallFailed},
		trust.Event{At: after(4*time.Hour + time.Microsecond), Kind: trust.DefinitionChanged,
			Marks: []string{"e", "e"}},
	)
	want := []trust.Event{
		{At: noon, Kind: trust.TextSanitised, Count: 2, Marks: []string{"a", "b"}},
		{At: after(2 * time.Hour), Kind: trust.TextSanitised, Count: 2, Marks: []string{"c", "d"}},
		{At: after(3 * time.Hour), Kind: trust.CallFailed}, {At: after(3 * time.Hour), Kind: trust.CallFailed},
		{At: after(4 * time.Hour), Kind: trust.DefinitionChanged, Marks: []string{"e"}},
	}
	if diff := cmp.Diff(want, a.Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	// A summary knows them still.
	for i := range 2 * trust.MaxEvents {
		a = a.WithEvents(trust.Event{At: after(5*time.Hour + time.Duration(i)*time.Second),
			Kind: trust.CallFailed}).Compacted(trust.ScoreRules{})
	}
	if n := len(a.Events); len(a.WithEvents(trust.Event{Kind: trust.DefinitionChanged,
		Marks: []string{"a", "e"}}).Events) != n {
		t.Error("what a summary stands for counts again")
	}
}

func TestReasons(t *testing.T) {
	a := trust.EventHistory{}.WithEvents(
		trust.Event{At: noon, Kind: trust.DefinitionChanged, Count: 2, Why: "tool read_file"},
		trust.Event{At: after(time.Second), Kind: trust.CallFailed, Why: "call echo on s: timeout"},
		trust.Event{At: after(2 * time.Second), Kind: trust.CallSucceeded},
		trust.Event{At: after(3 * time.Second), Kind: trust.TrustReset},
		trust.Event{At: after(4 * time.Second), Kind: trust.TextSanitised, Count: 9},
	)
	var got []string
	for _, e := range a.RecentReasons(3) {
		got = append(got, e.String())
	}
	want := []string{"-0.750  something in what it says was blanked or flagged", "reset by a person",
		"-0.020  a call failed: call echo on s: timeout"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

// TestAClockThatWasPutBack has events that are dated years from now: they count as what happened just now, in their
// order.
func TestAClockThatWasPutBack(t *testing.T) {
	const years = 10 * 365 * 24 * time.Hour
	var r trust.ScoreRules
	poisoned := event(years, trust.TextSanitised, 3)
	for _, tt := range []struct {
		name        string
		events, new []trust.Event
		score       float64
		until       time.Duration // after noon
	}{
		{"it is held as it would be", []trust.Event{poisoned}, nil, 0.25, 26*time.Minute + 51*time.Second},
		{"a reset of now forgives it", []trust.Event{poisoned}, []trust.Event{event(0, trust.TrustReset, 1)}, 1, 0},
		{"a reset of then forgives what was before it", []trust.Event{poisoned, event(years+time.Hour, trust.TrustReset,
			1)}, nil, 1, 0},
		{
			"and nothing that comes now", []trust.Event{event(years+time.Hour, trust.TrustReset, 1)},
			[]trust.Event{event(0, trust.TextSanitised, 3)},
			0.25, 26*time.Minute + 51*time.Second,
		},
		{"what time brought back then is not back", []trust.Event{event(-time.Second, trust.TextSanitised, 3),
			event(years, trust.CallFailed, 1)}, nil, 0.23, 0},
	} {
		a := trust.EventHistory{}.WithEvents(tt.events...).AsOf(noon).WithEvents(tt.new...)
		s := r.Fold(a.Events)
		if got := r.Score(s, noon); math.Abs(got-tt.score) > 0.001 {
			t.Errorf("%s: the score is %v, want %v", tt.name, got, tt.score)
		}
		until := r.QuarantineEnd(s, noon)
		if tt.until > 0 && until.Sub(after(tt.until)).Abs() > 10*time.Second || tt.score == 1 && !until.IsZero() ||
			until.After(after(time.Hour)) {
			t.Errorf("%s: held until %v", tt.name, until)
		}
		for _, e := range a.Events {
			if e.At.After(noon) {
				t.Errorf("%s: %v is later than now", tt.name, e)
			}
		}
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 11))
		events := random(rng, 30)
		now := events[rng.IntN(len(events))].At
		a := trust.EventHistory{}.WithEvents(events...)
		settled := a.AsOf(now)
		if !slices.IsSortedFunc(settled.Events, func(a, b trust.Event) int { return a.At.Compare(b.At) }) {
			t.Errorf("seed %d: out of order", seed)
		}
		for i, e := range settled.Events {
			if was := a.Events[i]; e.Kind != was.Kind || e.At.After(now) || !was.At.After(now) && !e.At.Equal(was.At) {
				t.Errorf("seed %d: %v became %v", seed, was, e)
			}
		}
	}
}

func TestLevelOf(t *testing.T) {
	for _, tt := range []struct {
		score   float64
		ceiling trust.Level
		want    trust.Level
	}{
		{1, trust.Trusted, trust.Trusted}, {0.8, trust.Trusted, trust.Trusted}, {0.79, trust.Trusted, trust.Untrusted},
		{0.39, trust.Trusted, trust.Sandboxed},
		{1, trust.Untrusted, trust.Untrusted}, {1, "", trust.Untrusted}, {0.4, "", trust.Untrusted},
		{0.39, "", trust.Sandboxed},
		{1, trust.Sandboxed, trust.Sandboxed}, {1, "king", trust.Untrusted},
	} {
		if got := trust.LevelForScore(tt.score, tt.ceiling); got != tt.want {
			t.Errorf("%v under %q is %s, want %s", tt.score, tt.ceiling, got, tt.want)
		}
	}
}

func FuzzReadAccount(f *testing.F) {
	for _, s := range []string{``, `{}`,
		`{"server":"s","events":[{"at":"2026-11-22T12:00:00Z","kind":"sanitised","count":9,"marks":["a"]},{"at":"2026-11-22T12:00:00Z","kind":"summary","lost":-7,"held":true}]}`, `[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := trust.ParseHistory(text)
		if err != nil {
			return
		}
		var r trust.ScoreRules
		s := r.Fold(a.Events)
		if score := r.Score(s, noon); !(score >= 0 && score <= 1) {
			t.Errorf("the score is %v", score)
		}
		_ = fmt.Sprint(a.WithEvents(event(0, trust.CallFailed, 1)).Compacted(r).RecentReasons(5),
			r.QuarantineEnd(s, noon))
	})
}
