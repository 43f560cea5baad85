package drawbridge_test

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestAgain is the whole rule of retries: by code, by whether the outcome is known, and by whether twice is as good as
// once.
func TestAgain(t *testing.T) {
	for _, tt := range []struct {
		code drawbridge.FaultCode
		// known is for a call that surely had no effect, harmless and harmful for one of unknown outcome.
		known, harmless, harmful bool
	}{
		{drawbridge.Transient, true, true, false},
		{drawbridge.RateLimited, true, true, false},
		{drawbridge.ServerError, true, true, false},
		{drawbridge.InvalidInput, false, false, false},
		{drawbridge.AuthFailure, false, false, false},
		{drawbridge.NotFound, false, false, false},
		{drawbridge.PolicyBlocked, false, false, false},
		{"", false, false, false},
		{"of later days", false, false, false},
	} {
		known := drawbridge.Fault{Code: tt.code}
		unknown := drawbridge.Fault{Code: tt.code, Ambiguous: true}
		got := [4]bool{known.MayRetry(false), known.MayRetry(true), unknown.MayRetry(true), unknown.MayRetry(false)}
		if want := [4]bool{tt.known, tt.known, tt.harmless, tt.harmful}; got != want {
			t.Errorf("%q may be made again: %v, want %v", tt.code, got, want)
		}
		if tt.code.Retryable() != tt.known {
			t.Errorf("%q is retryable: %v", tt.code, !tt.known)
		}
	}
}
