package upstream

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// maxCallRetries is how often one call is repeated. Pauses double from minRetryPause to maxRetryPause.
const (
	maxCallRetries = 2
	minRetryPause  = 250 * time.Millisecond
	maxRetryPause  = 2 * time.Second
)

// waitBeforeRetry waits before the next retry of a call and reports whether it may be made. It returns false at once if
// the fault does not allow it, and when ctx ends. Jitter keeps callers of a lost server from returning all at once.
// harmless is as for drawbridge.Fault.MayRetry.
func waitBeforeRetry(ctx context.Context, repeats int, f *drawbridge.Fault, harmless bool) bool {
	if repeats >= maxCallRetries || !f.MayRetry(harmless) {
		return false
	}
	timer := time.NewTimer(retryPause(repeats, rand.Float64()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// retryPause returns between three quarters and the whole of the pause; chance, from 0 to 1, chooses.
func retryPause(repeats int, chance float64) time.Duration {
	whole := min(minRetryPause<<min(repeats, 10), maxRetryPause)
	return whole*3/4 + time.Duration(chance*float64(whole/4))
}
