package oauth

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// Parameter values of a token exchange (RFC 8693, 2.1).
const (
	tokenExchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	accessTokenType    = "urn:ietf:params:oauth:token-type:access_token"
)

// SetCallerToken sets the access token of the caller. The token is sent only to the authorization server, in exchange
// for a token for the MCP server.
func (c *Credential) SetCallerToken(proof drawbridge.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callerToken = proof
}

// exchangeCallerToken obtains and stores a token in exchange for the caller's access token. It requests only scopes
// that the configuration or the server names; the issuer decides which scopes it grants.
func (c *Credential) exchangeCallerToken(ctx context.Context, r credentialRecord) error {
	c.mu.Lock()
	proof := c.callerToken
	c.mu.Unlock()
	if proof.IsZero() {
		return c.discoveryError(r, errors.New("the caller has no access token that could be exchanged"))
	}
	demand, err := c.currentChallenge(ctx)
	if err != nil {
		return c.pauseRenewal(r, err)
	}
	s, err := c.discoverAuthServer(ctx, demand)
	switch {
	case err != nil:
		return c.discoveryError(r, err)
	case !slices.Contains(s.Grants, tokenExchangeGrant):
		return c.discoveryError(r, errors.New("its authorization server does not support token exchange"))
	}
	if err := c.checkEndpoints(r, s, cmp.Or(s.Authorization, s.Issuer)); err != nil {
		return c.discoveryError(r, err)
	}
	who, err := c.clientFor(ctx, s, r, []string{"http://127.0.0.1/callback"})
	if err != nil {
		return c.discoveryError(r, err)
	}
	return c.obtainToken(ctx, r, s, who, c.scopesWithoutRefresh(s, demand), url.Values{
		"grant_type": {tokenExchangeGrant}, "subject_token": {proof.Reveal()}, "subject_token_type": {accessTokenType},
		"requested_token_type": {accessTokenType},
	})
}

// dropCredential deletes the credential of a remote caller, whose tokens were obtained by exchange. It does nothing for
// other credentials.
func (d *Manager) dropCredential(s Server) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.ExchangesCallerToken {
		delete(d.credentials, s)
	}
}
