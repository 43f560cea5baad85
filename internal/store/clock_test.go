package store_test

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// openAhead opens the store as a process does whose store's clock is so far ahead.
func openAhead(t *testing.T, location string, ahead time.Duration) *store.DB {
	t.Helper()
	db := open(t, location)
	db.SetClockAhead(ahead)
	return db
}

var tokenOfTest = sha256.Sum256([]byte("token"))

// addEndingThings adds a client whose token ends in two hours, a grant for ten minutes and an ask for five.
func addEndingThings(t *testing.T, db *store.DB) {
	t.Helper()
	if err := db.AddClient(t.Context(), store.Client{Name: "ci", Expires: time.Now().Add(2 * time.Hour)},
		tokenOfTest); err != nil {
		t.Fatal(err)
	}
	addGrant(t, db, "granted", 10*time.Minute)
	ask := store.PendingApproval{ID: "waiting", Principal: "ada", Call: "c2", Card: "card", Shown: []byte("{}")}
	if err := db.AddPendingApproval(t.Context(), ask, 5*time.Minute, time.Hour, 9); err != nil {
		t.Fatal(err)
	}
}

// addGrant grants ada the call c1.
func addGrant(t *testing.T, db *store.DB, id string, lasts time.Duration) {
	t.Helper()
	ask := store.PendingApproval{ID: id, Principal: "ada", Call: "c1", Card: "card", Shown: []byte("{}")}
	if err := db.AddPendingApproval(t.Context(), ask, time.Hour, time.Hour, 9); err != nil {
		t.Fatal(err)
	}
	grant := store.Grant{Subject: "c1", Shown: []byte("{}")}
	if err := db.AnswerPendingApproval(t.Context(), id, store.AnswerAllowed, "bob", []store.Grant{grant}, lasts); err != nil {
		t.Fatal(err)
	}
}

// A validity is what counts at one time of what addEndingThings adds.
type validity struct{ client, grant, ask bool }

func validityOf(t *testing.T, db *store.DB) (v validity) {
	t.Helper()
	c, found, err := db.ClientByToken(t.Context(), tokenOfTest)
	if err != nil || !found {
		t.Fatalf("client found: %v, %v", found, err)
	}
	_, v.grant, err = db.UseGrant(t.Context(), store.PendingApproval{Principal: "ada", Call: "c1", Card: "card"})
	if err != nil {
		t.Fatal(err)
	}
	asks, err := db.PendingApprovals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v.client, v.ask = !c.Ended, len(asks) > 0
	return v
}

func TestWhatHasEndedStaysEnded(t *testing.T) {
	all, none := validity{true, true, true}, validity{}
	for _, tt := range []struct {
		name string
		// look is what a process does whose clock is ahead; the times are those of the looks.
		look  func(t *testing.T, db *store.DB)
		ahead []time.Duration
		want  validity
	}{
		{"the clock is ahead for less than anything lasts", wantValidity(all), []time.Duration{time.Minute, 0}, all},
		{"each is asked about when it has ended", wantValidity(none), []time.Duration{3 * time.Hour}, none},
		{"another call is counted when they have ended", countCall, []time.Duration{3 * time.Hour}, none},
		{"two days, which is a jump", countCall, []time.Duration{2 * day}, none},
		{"the grant and the ask have ended", countCall, []time.Duration{30 * time.Minute}, validity{client: true}},
		{"nothing is asked about", func(*testing.T, *store.DB) {}, []time.Duration{3 * time.Hour}, all},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, location string) {
				addEndingThings(t, open(t, location))
				for _, ahead := range tt.ahead {
					tt.look(t, openAhead(t, location, ahead))
				}
				if got := validityOf(t, open(t, location)); got != tt.want {
					t.Errorf("when the clock is back %+v counts, want %+v", got, tt.want)
				}
			})
		})
	}
}

func wantValidity(want validity) func(t *testing.T, db *store.DB) {
	return func(t *testing.T, db *store.DB) {
		t.Helper()
		if got := validityOf(t, db); got != want {
			t.Errorf("%+v counts, want %+v", got, want)
		}
	}
}

func countCall(t *testing.T, db *store.DB) {
	t.Helper()
	if _, err := accountTime(t, db); err != nil {
		t.Fatal(err)
	}
}

// accountTime returns the time by which an account is changed.
func accountTime(t *testing.T, db *store.DB) (at time.Time, err error) {
	t.Helper()
	err = db.UpdateAccount(t.Context(), "calls", "ada", func(_ []byte, now time.Time) ([]byte, error) {
		at = now
		return []byte("{}"), nil
	})
	return at, err
}

// TestGrantsAfterAClockWasAhead sees that what is granted later lasts as long as it was given for.
func TestGrantsAfterAClockWasAhead(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		countCall(t, openAhead(t, location, 10*year))
		addGrant(t, open(t, location), "later", 10*time.Minute)
		for ahead, want := range map[time.Duration]bool{9 * time.Minute: true, 0: true} {
			_, used, err := openAhead(t, location, ahead).UseGrant(t.Context(),
				store.PendingApproval{Principal: "ada", Call: "c1"})
			if err != nil || used != want {
				t.Errorf("%v later: used is %v, %v", ahead, used, err)
			}
		}
		if _, used, err := openAhead(t, location, 11*time.Minute).UseGrant(t.Context(),
			store.PendingApproval{Principal: "ada", Call: "c1"}); used || err != nil {
			t.Errorf("it counts after its time: %v, %v", used, err)
		}
	})
}

// TestCountsNeverGoBack sees that the time of accounts does not go back with the clock, until a person confirms it.
func TestCountsNeverGoBack(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		var last time.Time
		for _, ahead := range []time.Duration{0, -time.Minute, -day, 0, -2 * time.Hour, 0, day, 0, -10 * year, 0} {
			at, err := accountTime(t, openAhead(t, location, ahead))
			if err != nil || at.Before(last.Add(-6*time.Second)) {
				t.Errorf("at %v the time of an account is %v, after %v: %v", ahead, at, last, err)
			}
			last = at
		}
		db := open(t, location)
		state, err := db.ConfirmClock(t.Context(), time.Now())
		if err != nil || (state.Behind()-day).Abs() > time.Minute {
			t.Errorf("before it was confirmed: %+v, %v", state, err)
		}
		at, err := accountTime(t, open(t, location))
		if err != nil || time.Until(at).Abs() > time.Minute {
			t.Errorf("after it was confirmed the time of an account is %v, %v", at, err)
		}
	})
}

// TestAClockThatIsContradictedIsNotConfirmed has a person confirm the clock of a store that is ahead of the machine's.
func TestAClockThatIsContradictedIsNotConfirmed(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := openAhead(t, location, 10*year)
		if state, err := db.ClockState(t.Context()); err != nil || state.Difference(time.Now()) > -year ||
			state.Difference(time.Now().Add(10*year)) != 0 {
			t.Errorf("%+v, %v", state, err)
		}
		_, err := db.ConfirmClock(t.Context(), time.Now())
		if f := drawbridge.AsFault(err); f == nil || f.Code != drawbridge.InvalidInput || f.Next == "" {
			t.Errorf("got %v", err)
		}
	})
}

// TestConfirmedClockPrunes has a person confirm a clock that jumped.
func TestConfirmedClockPrunes(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		both(0).run(t, location)
		both(year).run(t, location)
		wantKept(t, location, "after the jump", 4, 1)
		db := openAhead(t, location, year)
		if state, err := db.ClockState(t.Context()); err != nil || !strings.Contains(state.Jump(), "went from") {
			t.Errorf("jump %q, %v", state.Jump(), err)
		}
		if _, err := db.ConfirmClock(t.Context(), time.Now().Add(year)); err != nil {
			t.Fatal(err)
		}
		if state, err := db.ClockState(t.Context()); err != nil || state.Jump() != "" {
			t.Errorf("jump %q, %v", state.Jump(), err)
		}
		both(year+time.Minute).run(t, location)
		wantKept(t, location, "after it was confirmed", 4, 1) // those of a year ago went, two came
		report, err := openAhead(t, location, year).VerifyAudit(t.Context())
		if err != nil || report.RemovedBy != "age" || time.Until(report.RemovedAt) < year-day {
			t.Errorf("removed by %q at %v, %v", report.RemovedBy, report.RemovedAt, err)
		}
	})
}

func TestExpiryTimeDoesNotGoBack(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		countCall(t, openAhead(t, location, 3*time.Hour))
		db := open(t, location)
		if err := db.CheckClock(t.Context()); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		if got := db.ExpiryTime(now).Sub(now); (got - 3*time.Hour).Abs() > time.Minute {
			t.Errorf("three hours after the highest time: %v later", got)
		}
		if later := now.Add(4 * time.Hour); !db.ExpiryTime(later).Equal(later) {
			t.Error("the time is another one where the clock has gone on")
		}
	})
}

// TestAClockThatIsAheadRemovesNoHeldResults holds results while the clock has jumped.
func TestAClockThatIsAheadRemovesNoHeldResults(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		hold := func(db *store.DB) {
			t.Helper()
			if err := db.HoldResult(t.Context(), store.HeldResult{ID: rand.Text(), Result: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		both(0).run(t, location)
		hold(open(t, location))
		hold(openAhead(t, location, 10*year))
		hold(openAhead(t, location, 10*year+time.Minute))
		if all, err := open(t, location).HeldResults(t.Context()); err != nil || len(all) != 3 {
			t.Errorf("%d results are held, %v; want 3", len(all), err)
		}
	})
}

// TestAStoreThatTakesNoTimeIsNoError has a role that may not write see the clock go on and back: what it saw counts for
// its process.
func TestAStoreThatTakesNoTimeIsNoError(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		open(t, location)
		refuseWrites(t, location, "store_clock")
		db := openAhead(t, location, 3*time.Hour)
		if err := db.CheckClock(t.Context()); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		if got := db.ExpiryTime(now).Sub(now); (got - 3*time.Hour).Abs() > time.Minute {
			t.Errorf("three hours after the highest time: %v later", got)
		}
	})
}
