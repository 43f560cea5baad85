package drawbridge

import "context"

// A Cancellation is the error that [context.Cause] returns for the context of a call that the caller cancelled. It
// wraps context.Canceled.
type Cancellation struct {
	// Reason is the caller's own text, at most 200 characters; empty if there was none. It is not verified and is only
	// shown to people.
	Reason string
}

var _ error = (*Cancellation)(nil)

// NewCancellation returns a Cancellation with the reason truncated to 200 characters.
func NewCancellation(reason string) *Cancellation {
	const most = 200
	n := 0
	for i := range reason {
		if n == most {
			return &Cancellation{Reason: reason[:i]}
		}
		n++
	}
	return &Cancellation{Reason: reason}
}

// Error returns the reason, or "cancelled by the caller".
func (c *Cancellation) Error() string {
	if c.Reason == "" {
		return "cancelled by the caller"
	}
	return c.Reason
}

// Unwrap returns context.Canceled.
func (c *Cancellation) Unwrap() error { return context.Canceled }
