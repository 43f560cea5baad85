package upstream

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// maxCallRetries is how many times a call is repeated. The pause before a retry doubles from minRetryPause to
// maxRetryPause.
const (
	maxCallRetries = 2
	minRetryPause  = 250 * time.Millisecond
	maxRetryPause  = 2 * time.Second
)

// waitBeforeRetry waits before the next retry of a call and reports whether the retry is permitted. repeats is the
// number of retries so far. harmless reports whether a second execution of the call is harmless, see
// drawbridge.Fault.MayRetry. waitBeforeRetry returns false at once if maxCallRetries is reached or the fault does not
// permit a retry. It returns false when ctx ends. The pause has jitter, so that the callers of a lost server do not
// retry all at once.
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

// retryPause returns the pause before the next retry, after the number of retries in repeats. chance, from 0 to 1,
// selects a duration between three quarters and the whole of the pause.
func retryPause(repeats int, chance float64) time.Duration {
	whole := min(minRetryPause<<min(repeats, 10), maxRetryPause)
	return whole*3/4 + time.Duration(chance*float64(whole/4))
}
