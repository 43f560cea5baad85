package oauth

import "context"

// What follows says shortly what tests often do.

// Signed says whether there is a token.
func (c *Credential) Signed() bool {
	state, err := c.Status()
	return err == nil && state.SignedIn
}

// Begin begins a sign-in in a browser, BeginDevice one on another device.
func (c *Credential) Begin(ctx context.Context) (*Flow, error)       { return c.beginSignIn(ctx) }
func (c *Credential) BeginDevice(ctx context.Context) (*Flow, error) { return c.beginDevice(ctx) }

// Remove signs out, and says whether what there was is revoked.
func (c *Credential) Remove(ctx context.Context) (revoked bool, why, err error) {
	why, err = c.SignOut(ctx)
	return why == nil && err == nil, why, err
}
