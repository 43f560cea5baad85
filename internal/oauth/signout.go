package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// SignOut signs out: the tokens are revoked where the authorization server can do that (RFC 7009), and all that is
// kept is removed. Why says why they may still be good elsewhere, nil where they are not. The error is ErrNotSignedIn
// where there is nothing, or the vault's.
func (c *Credential) SignOut(ctx context.Context) (why, err error) {
	unlock, err := c.lockCredential(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r, broken := c.currentRecord()
	switch {
	case broken != nil:
		why = broken
	case r.Access == "" && r.Refresh == "" && r.Client.ID == "" && len(r.Pending) == 0:
		return nil, ErrNotSignedIn
	case r.Access != "" || r.Refresh != "":
		why = c.revokeTokens(ctx, r)
	}
	if err := c.vault.Delete(c.name); err != nil {
		return why, fmt.Errorf("remove the credential: %w", err)
	}
	c.endExpiredFlows(credentialRecord{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loaded, c.scopeRequests, c.missingScopes, c.lastChallenge, c.recentRenewals, c.pause, c.lastPrepared = false, nil,
		nil, AuthChallenge{}, nil, renewalPause{}, preparedSignIn{}
	close(c.changed)
	c.changed = make(chan struct{})
	return why, nil
}

// revokeTokens ends the refresh token and the access token, whichever there are. The second is tried where the first
// went wrong.
func (c *Credential) revokeTokens(ctx context.Context, r credentialRecord) error {
	if r.AuthServer.Revocation == "" {
		return errors.New("the authorization server has no way to revoke tokens")
	}
	var errs []error
	for _, t := range []struct{ kind, token string }{{"refresh_token", r.Refresh}, {"access_token", r.Access}} {
		if t.token == "" {
			continue
		}
		if _, err := c.postAsClient(ctx, r.AuthServer.Revocation, r.AuthServer, r.Client, url.Values{"token": {t.token},
			"token_type_hint": {t.kind}}); err != nil {
			errs = append(errs, fmt.Errorf("revoke the %s: %w", strings.ReplaceAll(t.kind, "_", " "), err))
		}
	}
	return errors.Join(errs...)
}
