package upstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestOnlyWhatMayBeRepeatedIs is the gate: by code, by whether the outcome is known, by whether twice is as good as
// once.
func TestOnlyWhatMayBeRepeatedIs(t *testing.T) {
	retried := map[drawbridge.FaultCode]bool{drawbridge.Transient: true, drawbridge.RateLimited: true,
		drawbridge.ServerError: true}
	for _, code := range []drawbridge.FaultCode{
		drawbridge.Transient, drawbridge.RateLimited, drawbridge.ServerError, drawbridge.InvalidInput,
		drawbridge.AuthFailure,
		drawbridge.NotFound, drawbridge.PolicyBlocked, "", "of later days",
	} {
		for _, ambiguous := range []bool{false, true} {
			for _, harmless := range []bool{false, true} {
				for repeats := range maxCallRetries + 2 {
					synctest.Test(t, func(t *testing.T) {
						began := time.Now()
						got := waitBeforeRetry(t.Context(), repeats, &drawbridge.Fault{Code: code,
							Ambiguous: ambiguous}, harmless)
						want := retried[code] && (harmless || !ambiguous) && repeats < maxCallRetries
						waited := time.Since(began)
						whole := min(250*time.Millisecond<<repeats, 2*time.Second)
						if got != want || want && (waited < whole*3/4 || waited > whole) || !want && waited != 0 {
							t.Errorf("%q, ambiguous %v, harmless %v, %d times before: %v after %v", code, ambiguous,
								harmless, repeats, got, waited)
						}
					})
				}
			}
		}
	}
}

func TestPauses(t *testing.T) {
	for _, tt := range []struct {
		repeats    int
		most, less time.Duration
	}{
		{0, 250 * time.Millisecond, 187500 * time.Microsecond},
		{1, 500 * time.Millisecond, 375 * time.Millisecond},
		{2, time.Second, 750 * time.Millisecond},
		{3, 2 * time.Second, 1500 * time.Millisecond},
		{1000, 2 * time.Second, 1500 * time.Millisecond},
	} {
		if most, less := retryPause(tt.repeats, 1), retryPause(tt.repeats, 0); most != tt.most || less != tt.less {
			t.Errorf("%d: from %v to %v, want from %v to %v", tt.repeats, less, most, tt.less, tt.most)
		}
	}
}

func TestACallerWhoIsGoneIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if waitBeforeRetry(ctx, 0, &drawbridge.Fault{Code: drawbridge.Transient}, true) || time.Since(began) != 0 {
			t.Error("it is repeated")
		}
	})
}
