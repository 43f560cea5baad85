package oauth

import (
	"slices"
	"testing"
	"time"
)

// TestASignInThatHasEndedStaysEnded has the clock go back after a sign-in was too old, and begins another one then.
func TestASignInThatHasEndedStaysEnded(t *testing.T) {
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	highest := noon.Add(3 * time.Hour)
	r := credentialRecord{Pending: []pendingSignIn{
		{State: "before", Created: noon, Seen: noon},
		{State: "of an earlier release", Created: noon},
		{State: "since", Created: noon.Add(time.Minute), Seen: highest},
	}}
	left := func(now time.Time) (states []string) {
		r.dropExpiredPending(now, highest)
		for _, p := range r.Pending {
			states = append(states, p.State)
		}
		return states
	}
	if got := left(noon.Add(2 * time.Minute)); !slices.Equal(got, []string{"since"}) {
		t.Errorf("when the clock is back %v are open", got)
	}
	if got := left(noon.Add(2 * time.Hour)); len(got) > 0 {
		t.Errorf("an hour after it began %v are open", got)
	}
}
