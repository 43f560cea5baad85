package gateway

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
)

// yard is a fleet that starts nothing and writes down when it was told what.
type yard struct {
	fleet
	began time.Time
	// attempts is how long the first attempt of a server takes; one that is not there never ends.
	attempts map[drawbridge.ServerID]time.Duration

	mu    sync.Mutex
	heard []string
	held  []string
}

func (y *yard) hear(format string, args ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.heard = append(y.heard, fmt.Sprintf("%v ", time.Since(y.began))+fmt.Sprintf(format, args...))
}

func (y *yard) told() []string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.Clone(y.heard)
}

func (y *yard) Add(row config.Server) error {
	y.hear("add %s", row.ID)
	return nil
}

func (y *yard) Hold(row config.Server) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.held = append(y.held, string(row.ID))
	return nil
}

func (y *yard) Release(id drawbridge.ServerID) {
	if slices.Contains(y.held, string(id)) {
		y.hear("release %s", id)
	}
}

func (y *yard) AwaitFirstAttempt(ctx context.Context, id drawbridge.ServerID) error {
	var ended <-chan time.Time
	if d, ok := y.attempts[id]; ok {
		ended = time.After(d - time.Since(y.began))
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The servers of these tests, by what is remembered of them.
var (
	rows = []config.Server{
		{ID: "listed", Hash: "1"}, {ID: "new", Hash: "2"}, {ID: "failed", Hash: "3"}, {ID: "lost", Hash: "4"},
	}
	past   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	mounts = map[string]store.MountRecord{
		"1": {Attempted: past, Listed: past, Listing: &drawbridge.Listing{}},
		// its last attempt did not end in a listing
		"3": {Attempted: past},
		// nor did this one's, but an earlier
		"4": {Attempted: past.Add(time.Hour), Listed: past, Listing: &drawbridge.Listing{}},
	}
)

// setUp makes a starter over a yard, at the time 0 of a bubble.
func setUp(onDemand bool, grace time.Duration, attempts map[drawbridge.ServerID]time.Duration) (*lazyStarter, *yard) {
	s := newLazyStarter(rows, mounts, Config{OnDemand: onDemand}, grace)
	y := &yard{began: time.Now(), attempts: attempts}
	s.fleet = y
	return s, y
}

func TestTheFirstListWaitsForNewServersAlone(t *testing.T) {
	for _, tt := range []struct {
		name     string
		onDemand bool
		grace    time.Duration
		attempts map[drawbridge.ServerID]time.Duration
		want     time.Duration
	}{
		{"it is there in time", false, 0, map[drawbridge.ServerID]time.Duration{"new": 100 * time.Millisecond},
			100 * time.Millisecond},
		{"it is late", false, 0, map[drawbridge.ServerID]time.Duration{"new": time.Hour}, 250 * time.Millisecond},
		{"another grace", false, time.Second, nil, time.Second},
		{"no grace", false, -1, nil, 0},
		{"on demand", true, 0, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, y := setUp(tt.onDemand, tt.grace, tt.attempts)
				s.waitBeforeList(t.Context())
				if got := time.Since(y.began); got != tt.want {
					t.Errorf("the first list came after %v, want %v", got, tt.want)
				}
				s.waitBeforeList(t.Context())
				if got := time.Since(y.began); got != tt.want {
					t.Errorf("the second list waited too: %v", got)
				}
			})
		})
	}
}

func TestTheGraceCountsFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, y := setUp(false, 0, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = s.run(ctx, func(context.Context) {}) })
		<-time.After(200 * time.Millisecond)
		s.waitBeforeList(t.Context())
		if got := time.Since(y.began); got != 250*time.Millisecond {
			t.Errorf("a list at 200 ms came at %v, want 250 ms", got)
		}
		cancel()
		wg.Wait()
	})
}

func TestACallerWhoLeavesDoesNotSpendTheGraceOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, y := setUp(false, 0, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		s.waitBeforeList(ctx)
		s.waitBeforeList(t.Context())
		if got := time.Since(y.began); got != 260*time.Millisecond {
			t.Errorf("the second caller's list came at %v, want 260 ms", got)
		}
	})
}

func TestRememberedServersStartWhenItIsTheirTime(t *testing.T) {
	for _, tt := range []struct {
		name string
		act  func(s *lazyStarter)
		want []string
	}{
		{"no list is requested", func(*lazyStarter) {}, []string{"1s release listed", "1s release failed", "1s release lost"}},
		{"after the first list", func(s *lazyStarter) {
			<-time.After(400 * time.Millisecond)
			s.waitBeforeList(context.Background())
		}, []string{"450ms release listed", "450ms release failed", "450ms release lost"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, y := setUp(false, 0, map[drawbridge.ServerID]time.Duration{"new": 0})
				if err := s.addRows(); err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				wg.Go(func() { _ = s.run(t.Context(), func(context.Context) {}) })
				tt.act(s)
				wg.Wait()
				want := append([]string{"0s add new"}, tt.want...)
				if diff := cmp.Diff(want, y.told()); diff != "" {
					t.Errorf("the fleet heard (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestAnUnknownNameWaitsForTheServersThatCouldBringIt(t *testing.T) {
	all := drawbridge.Caller{Kind: drawbridge.External, Scopes: []drawbridge.Scope{"*"}}
	other := drawbridge.Caller{Kind: drawbridge.External, Scopes: []drawbridge.Scope{"mcp:failed"}}
	soon := map[drawbridge.ServerID]time.Duration{"new": 2 * time.Second, "failed": 3 * time.Second,
		"new.": 7 * time.Second}
	for _, tt := range []struct {
		why      string
		caller   drawbridge.Caller
		naming   deck.NamingStyle
		name     string
		attempts map[drawbridge.ServerID]time.Duration
		want     time.Duration
	}{
		{"it begins with a server", all, "", "new__x", soon, 2 * time.Second},
		{"one that failed before", all, deck.BareNames, "failed__x", soon, 3 * time.Second},
		{"one that hangs", all, "", "new__x", nil, 30 * time.Second},
		{"the longest", all, "", "new___x_0a1b2c", soon, 7 * time.Second},
		{"in the other style", all, "", "mcp_failed_x", soon, 3 * time.Second},
		{"one that the caller may not know of", other, "", "new__x", soon, 250 * time.Millisecond},
		{"a listed one, whose listing may be old", all, "", "listed__x",
			map[drawbridge.ServerID]time.Duration{"listed": 4 * time.Second}, 4 * time.Second},
		{"a bare name, where names are qualified", all, "", "x", soon, 250 * time.Millisecond},
		{"a bare name", all, deck.BareNames, "x", map[drawbridge.ServerID]time.Duration{"new": 1, "failed": time.Second,
			"new.": 2}, time.Second},
		{"a bare name, and one hangs", all, deck.BareNames, "x", nil, 5 * time.Second},
		{"a bare name of the one known server", other, deck.BareNames, "x", soon, 3 * time.Second},
		{"a URI", all, "", "", map[drawbridge.ServerID]time.Duration{"new": 1, "failed": time.Second,
			"new.": 2}, time.Second},
		{"a URI, and one hangs", all, "", "", nil, 5 * time.Second},
		{"a URI of the one known server", other, "", "", soon, 3 * time.Second},
	} {
		t.Run(tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, y := setUp(false, 0, tt.attempts)
				s.naming = tt.naming
				s.noteAddedServer("new.")
				s.waitForUnknownName(t.Context(), tt.caller, tt.name)
				if got := time.Since(y.began); got != tt.want {
					t.Errorf("unknown after %v, want %v", got, tt.want)
				}
			})
		})
	}
	t.Run("on demand", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, y := setUp(true, 0, nil)
			s.waitForUnknownName(t.Context(), all, "new__x")
			if got := time.Since(y.began); got != 0 {
				t.Errorf("unknown after %v", got)
			}
		})
	})
	t.Run("no longer than the caller", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, y := setUp(false, 0, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			s.waitForUnknownName(ctx, all, "new__x")
			if got := time.Since(y.began); got != time.Second {
				t.Errorf("unknown after %v", got)
			}
		})
	})
}

func TestOnDemandTheFleetHasAllAndStartsNone(t *testing.T) {
	s, y := setUp(true, 0, nil)
	if err := s.addRows(); err != nil || len(y.told()) != len(rows) || len(y.held) > 0 {
		t.Errorf("the fleet has %v and holds %v, %v", y.told(), y.held, err)
	}
	if err := s.run(t.Context(), func(context.Context) {}); err != nil ||
		len(y.told()) != len(rows) {
		t.Errorf("the fleet heard %v, %v", y.told(), err)
	}
	if got := fmt.Sprint(s.neverListed()); got != "[new failed]" {
		t.Errorf("without a listing are %s", got)
	}
}
