package upstream

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// Most is how often one call is repeated. The pauses before it double from the first to the last.
const (
	maxCallRetries = 2
	minRetryPause  = 250 * time.Millisecond
	maxRetryPause  = 2 * time.Second
)

// waitBeforeRetry waits out the pause before the repetition that is to follow so many others, and says whether the
// call may be made once more. It says no at once where it may not, and when ctx ends. Harmless is as for
// drawbridge.Fault.Again.
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

// retryPause is between three quarters and the whole of what it would be without chance, which is from 0 to 1.
func retryPause(repeats int, chance float64) time.Duration {
	whole := min(minRetryPause<<min(repeats, 10), maxRetryPause)
	return whole*3/4 + time.Duration(chance*float64(whole/4))
}
