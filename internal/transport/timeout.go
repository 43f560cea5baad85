package transport

import (
	"context"
	"time"
)

// A TimeoutError is a server that did not answer in time.
type TimeoutError struct{ After time.Duration }

func (t *TimeoutError) Error() string { return "timeout: no answer within " + t.After.String() }

func (t *TimeoutError) Unwrap() error { return context.DeadlineExceeded }
