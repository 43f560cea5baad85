// Package again is the one gate for repeating a call that was sent, and the pauses before it.
//
// It promises that a call is repeated only where its fault lets it be, see drawbridge.Fault.Again: never one of unknown outcome
// whose tool is not known to be read-only or idempotent; and that many callers of one server that was lost do not all come back
// in one moment.
package again

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// Most is how often one call is repeated. The pauses before it double from the first to the last.
const (
	Most       = 2
	firstPause = 250 * time.Millisecond
	lastPause  = 2 * time.Second
)

// May waits out the pause before the repetition that is to follow so many others, and says whether the call may be made once
// more. It says no at once where it may not, and when ctx ends. Harmless is as for drawbridge.Fault.Again.
func May(ctx context.Context, repeats int, f *drawbridge.Fault, harmless bool) bool {
	if repeats >= Most || !f.Again(harmless) {
		return false
	}
	timer := time.NewTimer(pause(repeats, rand.Float64()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pause is between three quarters and the whole of what it would be without chance, which is from 0 to 1.
func pause(repeats int, chance float64) time.Duration {
	whole := min(firstPause<<min(repeats, 10), lastPause)
	return whole*3/4 + time.Duration(chance*float64(whole/4))
}
