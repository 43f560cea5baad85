package signin

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// The words of a token exchange (RFC 8693, 2.1).
const (
	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	accessToken   = "urn:ietf:params:oauth:token-type:access_token"
)

// Vouch gives the token by which the caller has proved who they are. It goes to the authorization server that is asked for a
// token in exchange, and nowhere else.
func (c *Credential) Vouch(proof drawbridge.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proof = proof
}

// byExchange gets a token for the caller in exchange for their own. What it allows is for their issuer to say: no more is asked
// for than the row or the server wants.
func (c *Credential) byExchange(ctx context.Context, r record) error {
	c.mu.Lock()
	proof := c.proof
	c.mu.Unlock()
	if proof.IsZero() {
		return c.noWay(r, errors.New("the caller has no token of an issuer that could be exchanged"))
	}
	demand, err := c.asking(ctx)
	if err != nil {
		return c.halt(r, err)
	}
	s, err := c.discover(ctx, demand)
	switch {
	case err != nil:
		return c.noWay(r, err)
	case !slices.Contains(s.Grants, exchangeGrant):
		return c.noWay(r, errors.New("its authorization server exchanges no tokens"))
	}
	who, err := c.identify(ctx, s, r, []string{"http://127.0.0.1/callback"})
	if err != nil {
		return c.noWay(r, err)
	}
	return c.obtain(ctx, r, s, who, c.scopesOnce(s, demand), url.Values{
		"grant_type": {exchangeGrant}, "subject_token": {proof.Reveal()}, "subject_token_type": {accessToken}, "requested_token_type": {accessToken},
	})
}

// forget drops the credential of a caller who is vouched for and gone.
func (d *Desk) forget(s Server) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.Vouched {
		delete(d.creds, s)
	}
}
