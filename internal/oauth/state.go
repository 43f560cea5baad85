package oauth

import (
	"context"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// Status returns the state of the credential, without sending a request.
func (c *Credential) Status() (drawbridge.CredentialStatus, error) {
	s := drawbridge.CredentialStatus{Server: c.server.ID, Name: c.name}
	r, err := c.currentRecord()
	if err != nil {
		return s, err
	}
	r.dropExpiredPending(c.manager.times())
	s.SignedIn, s.Expires, s.AutoRenews = r.Access != "", r.Expires, r.Refresh != "" || c.isUnattended()
	s.Scopes, s.Problem = r.Scopes, r.SignedOutReason
	if c.server.Borrowed && !s.SignedIn && s.Problem == "" {
		s.Problem = fmt.Sprintf("no sign-in is stored as %q", c.server.CredentialName)
	}
	if r.AuthServer.Issuer != "" {
		s.Issuer = hostOf(r.AuthServer.Issuer)
	}
	for _, p := range r.Pending {
		if c.checkEndpoints(r, p.AuthServer, p.URL) == nil {
			s.URL = p.URL
		}
	}
	return s, nil
}

// HasNewerToken reports whether the credential contains an access token that differs from the token whose refusal
// caused the error needed.
func (c *Credential) HasNewerToken(needed *SignInRequiredError) bool {
	r, err := c.currentRecord()
	return err == nil && r.hasTokenNewerThan(needed)
}

func (r *credentialRecord) hasTokenNewerThan(needed *SignInRequiredError) bool {
	return r.Access != "" && hashToken(r.Access) != needed.usedToken
}

// vaultPollInterval is how often the vault is polled for changes of other processes.
const vaultPollInterval = time.Second

// WaitForNewToken waits until the credential contains an access token that differs from the token whose refusal caused
// the error needed. Any process may have obtained the new token. WaitForNewToken returns an error only if ctx ends.
func (c *Credential) WaitForNewToken(ctx context.Context, needed *SignInRequiredError) error {
	tick := time.NewTicker(vaultPollInterval)
	defer tick.Stop()
	for {
		c.mu.Lock()
		changed := c.changed
		r, err := c.loadRecord()
		c.mu.Unlock()
		if err == nil && r.hasTokenNewerThan(needed) {
			return nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
