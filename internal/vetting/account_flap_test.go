package vetting_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/trust"
)

// TestAServerThatIsQuarantinedAgainAndAgain has a server misbehave whenever it is free. Each time its cards leave the
// deck and come back, which is on record for ever: so it stays away for longer and longer, until a person forgives it
// or it is quiet.
func TestAServerThatIsQuarantinedAgainAndAgain(t *testing.T) {
	for _, e := range []trust.Event{{Kind: trust.CallFailed}, {Kind: trust.DefinitionChanged, Count: 2}} {
		t.Run(string(e.Kind), func(t *testing.T) { comesAndGoes(t, e) })
	}
}

func comesAndGoes(t *testing.T, misdeed trust.Event) {
	const first = time.Hour // and no longer is a first quarantine
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		b := open(t, shelf)
		misbehave := func() {
			for !b.Quarantined("x") {
				b.AddEvents("x", "s", misdeed)
			}
		}
		live := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); pass(time.Minute) {
				misbehave()
			}
			synctest.Wait()
		}
		live(7 * 24 * time.Hour)
		if n := len(b.told); n > 40 {
			t.Errorf("it came and went %d times in a week", n)
		}
		if st := b.Status("x"); !st.Quarantined || st.Until.Before(time.Now()) ||
			st.Until.After(time.Now().Add(24*time.Hour)) {
			t.Errorf("it is away: %+v", st)
		}
		other := open(t, shelf) // of another process
		if err := other.Reset(t.Context(), "x", "s"); err != nil {
			t.Fatal(err)
		}
		other.AddEvents("x", "s", trust.Event{Kind: trust.CallFailed})
		if err := errors.Join(other.Flush(t.Context()), b.Load(t.Context())); err != nil {
			t.Fatal(err)
		}
		if st := b.Status("x"); st.Quarantined || !st.Until.IsZero() {
			t.Errorf("a person forgave it: %+v", st)
		}
		misbehave()
		if st := b.Status("x"); st.Until.After(time.Now().Add(first)) {
			t.Errorf("all was forgiven, and it is away until %s", st.Until)
		}
		live(24 * time.Hour)
		pass(3 * 24 * time.Hour)
		misbehave()
		if st := b.Status("x"); st.Until.After(time.Now().Add(first)) {
			t.Errorf("it was quiet, and is away until %s", st.Until)
		}
	})
}
