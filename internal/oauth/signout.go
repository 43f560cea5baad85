package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// SignOut revokes the tokens if the authorization server supports that (RFC 7009), and removes the stored credential.
// why is the reason why the authorization server may still accept the tokens; nil means that no valid token remains.
// err is ErrNotSignedIn if no sign-in is stored, or an error of the vault.
func (c *Credential) SignOut(ctx context.Context) (why, err error) {
	if c.server.Borrowed {
		return nil, borrowedError(c.server)
	}
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
		if len(r.AcceptedEndpoints) > 0 {
			err = c.removeRecord()
		}
		return nil, cmp.Or(err, ErrNotSignedIn)
	case r.Access != "" || r.Refresh != "":
		why = c.revokeTokens(ctx, r)
	}
	return why, c.removeRecord()
}

// removeRecord removes the stored credential, and clears the fields of c that the sign-in has set, such as the last
// challenge. The caller holds the lock of lockCredential.
func (c *Credential) removeRecord() error {
	if err := c.vault.Delete(c.name); err != nil {
		return fmt.Errorf("remove the credential: %w", err)
	}
	c.endExpiredFlows(credentialRecord{})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loaded, c.scopeRequests, c.missingScopes, c.lastChallenge, c.recentRenewals, c.pause, c.lastPrepared = false, nil,
		nil, AuthChallenge{}, nil, renewalPause{}, preparedSignIn{}
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

// revokeTokens revokes the refresh token and the access token, if they are set. If the request for the refresh token
// fails, it still sends the request for the access token.
func (c *Credential) revokeTokens(ctx context.Context, r credentialRecord) error {
	if r.AuthServer.Revocation == "" {
		return errors.New("the authorization server cannot revoke tokens")
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
