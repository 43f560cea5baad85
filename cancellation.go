package drawbridge

import "context"

// A Cancellation is why the context of a call ended where its caller ended it: [context.Cause] gives it. It wraps
// context.Canceled.
type Cancellation struct {
	// Reason is the caller's own word for it, of at most 200 characters; empty where there was none. It is a claim, for
	// people to read.
	Reason string
}

var _ error = (*Cancellation)(nil)

// NewCancellation makes a Cancellation, its reason cut to length.
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

// Error gives the reason, or "cancelled by the caller".
func (c *Cancellation) Error() string {
	if c.Reason == "" {
		return "cancelled by the caller"
	}
	return c.Reason
}

// Unwrap gives context.Canceled.
func (c *Cancellation) Unwrap() error { return context.Canceled }
