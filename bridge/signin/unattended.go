package signin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/drawbridge-mcp/drawbridge/bridge/egress"
)

// unattended gets a token without a person: for the client itself, or on the word of another.
func (c *Credential) unattended(ctx context.Context, r record) error {
	demand, err := c.asking(ctx)
	if err != nil {
		return c.halt(r, err)
	}
	s, err := c.discover(ctx, demand)
	if err != nil {
		return c.noWay(r, err)
	}
	who, err := c.who(ctx)
	if err != nil {
		return c.halt(r, err)
	}
	scopes, values := c.scopesOnce(s, demand), url.Values{"grant_type": {string(Credentials)}}
	if c.site.Grant != Credentials {
		if values, err = c.introduced(ctx, s, scopes); err != nil {
			return c.settled(r, err)
		}
	}
	return c.obtain(ctx, r, s, who, scopes, values)
}

// scopesOnce are the rights to ask for where no refresh token is wanted.
func (c *Credential) scopesOnce(s site, demand Demand) []string {
	return slices.DeleteFunc(c.scopesFor(s, demand, nil), func(s string) bool { return s == "offline_access" })
}

// obtain asks for a token without a person. A refresh token is not kept: the way here is always open, and one would outlive
// what was proved on it.
func (c *Credential) obtain(ctx context.Context, r record, s site, who client, scopes []string, values url.Values) error {
	if len(scopes) > 0 {
		values.Set("scope", strings.Join(scopes, " "))
	}
	t, err := c.grant(ctx, s, who, values)
	if err == nil {
		r.Refresh, t.refresh = "", ""
		err = c.takeIn(r, s, who, t, scopes)
	}
	return c.settled(r, err)
}

// noWay is for a token that nobody could be asked for: for now, where who is to be asked is away.
func (c *Credential) noWay(r record, err error) error {
	if _, later := errors.AsType[awayError](err); later {
		return c.halt(r, err)
	}
	return &NeededError{Server: c.site.ID, Err: err, used: markOf(r.Access)}
}

// settled is what came of asking for a token without a person: nil for nil, and where it would be refused again, for good.
func (c *Credential) settled(r record, err error) error {
	refused, said := errors.AsType[*refusal](err)
	_, unfit := errors.AsType[kindError](err)
	switch {
	case err == nil:
		return nil
	case unfit, said && refused.final():
		return &NeededError{Server: c.site.ID, Err: err, used: markOf(r.Access)}
	}
	return c.halt(r, err)
}

// errUnattended is what a person hears who wants to sign in all the same.
const errUnattended = sentence("No person signs in here: by the \"auth\" of its row the server lets the client in.")

// bearerGrant is the grant for somebody whom a signed text speaks for (RFC 7523, 2.1).
const bearerGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// introduced gives what to ask the authorization server of a site with on the word of another. For a workload that is the
// row's token of identity itself (workload identity federation, SEP-1933). For an enterprise its identity provider says, to
// that server alone, who the person is that it gave the token (enterprise-managed authorization, SEP-990).
func (c *Credential) introduced(ctx context.Context, s site, scopes []string) (url.Values, error) {
	if c.find == nil {
		return nil, errors.New("the row has no token of identity")
	}
	auth, err := c.find(ctx)
	if err != nil {
		return nil, err
	}
	if c.site.Grant == Workload {
		return url.Values{"grant_type": {bearerGrant}, "assertion": {auth.IDToken}}, nil
	}
	endpoint, err := c.tokenEndpoint(ctx, c.site.IDP)
	if err != nil {
		return nil, fmt.Errorf("the identity provider %w", err)
	}
	ours := &oauthex.ClientCredentials{ClientID: auth.IDPClientID}
	if auth.IDPClientSecret != "" {
		ours.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: auth.IDPClientSecret}
	}
	word, err := oauthex.ExchangeToken(ctx, endpoint, &oauthex.TokenExchangeRequest{
		RequestedTokenType: oauthex.TokenTypeIDJAG, SubjectTokenType: oauthex.TokenTypeIDToken, SubjectToken: auth.IDToken,
		Audience: s.Issuer, Resource: s.Resource, Scope: scopes,
	}, ours, c.client)
	if err != nil {
		hide := c.hider(url.Values{"assertion": {auth.IDToken}}, client{Secret: auth.IDPClientSecret})
		return nil, fmt.Errorf("the identity provider: %w", answered(err, hide))
	}
	return url.Values{"grant_type": {bearerGrant}, "assertion": {word.AccessToken}}, nil
}

// answered makes what the SDK says of a refusal into ours, without the body, which may hold a token, and without what hide hides.
func answered(err error, hide func(string) string) error {
	said, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return plain(err)
	}
	r := &refusal{code: hide(said.ErrorCode), description: hide(said.ErrorDescription)}
	if said.Response != nil {
		r.status = said.Response.StatusCode
	}
	return r
}

// tokenEndpoint finds that of an issuer that no browser is sent to: it need not know PKCE.
func (c *Credential) tokenEndpoint(ctx context.Context, issuer string) (string, error) {
	if err := egress.Check(issuer); err != nil {
		return "", fmt.Errorf("has an address that %w", err)
	}
	for _, place := range metadataURLs(issuer) {
		var meta oauthex.AuthServerMeta
		found, err := c.document(ctx, place, &meta)
		switch {
		case err != nil:
			return "", fmt.Errorf("has metadata that cannot be had: %w", err)
		case !found:
			continue
		case strings.TrimSuffix(meta.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
			return "", fmt.Errorf("has metadata of another issuer, %s", printable(hostOf(meta.Issuer)))
		case egress.Check(meta.TokenEndpoint) != nil:
			return "", errors.New("names no proper token endpoint")
		}
		return meta.TokenEndpoint, nil
	}
	return "", errors.New("has no metadata")
}
