package transport

import (
	"context"
	"fmt"
	"time"
)

// A TimeoutError reports that a server did not respond within the duration After.
type TimeoutError struct {
	After time.Duration
	// Setting is the name of the setting that limits the time, such as "[mcp] connect_timeout".
	Setting string
}

func (t *TimeoutError) Error() string {
	return fmt.Sprintf("timeout: no answer within %s (%s)", t.After, t.Setting)
}

func (t *TimeoutError) Unwrap() error { return context.DeadlineExceeded }
