package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// signInUnattended gets a token without a person: for the client itself, or on the word of another.
func (c *Credential) signInUnattended(ctx context.Context, r credentialRecord) error {
	demand, err := c.currentChallenge(ctx)
	if err != nil {
		return c.pauseRenewal(r, err)
	}
	s, err := c.discoverAuthServer(ctx, demand)
	if err != nil {
		return c.discoveryError(r, err)
	}
	who, err := c.configuredClient(ctx)
	if err != nil {
		return c.pauseRenewal(r, err)
	}
	scopes, values := c.scopesWithoutRefresh(s, demand), url.Values{"grant_type": {string(ClientCredentialsGrant)}}
	if c.server.Grant != ClientCredentialsGrant {
		if values, err = c.assertionParams(ctx, s, scopes); err != nil {
			return c.grantError(r, err)
		}
	}
	return c.obtainToken(ctx, r, s, who, scopes, values)
}

// scopesWithoutRefresh are the rights to ask for where no refresh token is wanted.
func (c *Credential) scopesWithoutRefresh(s authServer, demand AuthChallenge) []string {
	return slices.DeleteFunc(c.chooseScopes(s, demand, nil), func(s string) bool { return s == "offline_access" })
}

// obtainToken asks for a token without a person. A refresh token is not kept: the way here is always open, and one
// would outlive what was proved on it.
func (c *Credential) obtainToken(ctx context.Context, r credentialRecord, s authServer, who clientIdentity,
	scopes []string, values url.Values) error {
	if len(scopes) > 0 {
		values.Set("scope", strings.Join(scopes, " "))
	}
	t, err := c.requestToken(ctx, s, who, values)
	if err == nil {
		r.Refresh, t.refresh = "", ""
		err = c.storeToken(r, s, who, t, scopes)
	}
	return c.grantError(r, err)
}

// discoveryError is for a token that nobody could be asked for: for now, where who is to be asked is away.
func (c *Credential) discoveryError(r credentialRecord, err error) error {
	if _, later := errors.AsType[unavailableError](err); later {
		return c.pauseRenewal(r, err)
	}
	return &SignInRequiredError{Server: c.server.ID, Err: err, usedToken: hashToken(r.Access)}
}

// grantError is what came of asking for a token without a person: nil for nil, and where it would be refused again,
// for good.
func (c *Credential) grantError(r credentialRecord, err error) error {
	refused, said := errors.AsType[*oauthError](err)
	_, unfit := errors.AsType[tokenTypeError](err)
	switch {
	case err == nil:
		return nil
	case unfit, said && refused.isPermanent():
		return &SignInRequiredError{Server: c.server.ID, Err: err, usedToken: hashToken(r.Access)}
	}
	return c.pauseRenewal(r, err)
}

// errUnattended is what a person hears who wants to sign in all the same.
const errUnattended = userError("No person signs in here: by the \"auth\" of its row the server lets the client in.")

// jwtBearerGrant is the grant for somebody whom a signed text speaks for (RFC 7523, 2.1).
const jwtBearerGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// assertionParams gives what to ask the authorization server of a site with on the word of another. For a workload
// that is the row's token of identity itself (workload identity federation, SEP-1933). For an enterprise its identity
// provider says, to that server alone, who the person is that it gave the token (enterprise-managed authorization,
// SEP-990).
func (c *Credential) assertionParams(ctx context.Context, s authServer, scopes []string) (url.Values, error) {
	if c.resolveAuth == nil {
		return nil, errors.New("the row has no token of identity")
	}
	auth, err := c.resolveAuth(ctx)
	if err != nil {
		return nil, err
	}
	if c.server.Grant == WorkloadGrant {
		return url.Values{"grant_type": {jwtBearerGrant}, "assertion": {auth.IDToken}}, nil
	}
	endpoint, err := c.findTokenEndpoint(ctx, c.server.IDP)
	if err != nil {
		return nil, fmt.Errorf("the identity provider %w", err)
	}
	ours := &oauthex.ClientCredentials{ClientID: auth.IDPClientID}
	if auth.IDPClientSecret != "" {
		ours.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: auth.IDPClientSecret}
	}
	word, err := oauthex.ExchangeToken(ctx, endpoint, &oauthex.TokenExchangeRequest{
		RequestedTokenType: oauthex.TokenTypeIDJAG, SubjectTokenType: oauthex.TokenTypeIDToken,
		SubjectToken: auth.IDToken,
		Audience:     s.Issuer, Resource: s.Resource, Scope: scopes,
	}, ours, c.client)
	if err != nil {
		hide := c.secretRedactor(url.Values{"assertion": {auth.IDToken}}, clientIdentity{Secret: auth.IDPClientSecret})
		return nil, fmt.Errorf("the identity provider: %w", convertSDKError(err, hide))
	}
	return url.Values{"grant_type": {jwtBearerGrant}, "assertion": {word.AccessToken}}, nil
}

// convertSDKError makes what the SDK says of a refusal into ours, without the body, which may hold a token, and
// without what hide hides.
func convertSDKError(err error, hide func(string) string) error {
	said, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return withoutURL(err)
	}
	r := &oauthError{code: hide(said.ErrorCode), description: hide(said.ErrorDescription)}
	if said.Response != nil {
		r.status = said.Response.StatusCode
	}
	return r
}

// findTokenEndpoint finds that of an issuer that no browser is sent to: it need not know PKCE.
func (c *Credential) findTokenEndpoint(ctx context.Context, issuer string) (string, error) {
	if err := safehttp.CheckURL(issuer); err != nil {
		return "", fmt.Errorf("has an address that %w", err)
	}
	for _, place := range metadataURLs(issuer) {
		var meta oauthex.AuthServerMeta
		found, err := c.fetchJSON(ctx, place, &meta)
		switch {
		case err != nil:
			return "", fmt.Errorf("has metadata that cannot be had: %w", err)
		case !found:
			continue
		case strings.TrimSuffix(meta.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
			return "", fmt.Errorf("has metadata of another issuer, %s", printable(hostOf(meta.Issuer)))
		case safehttp.CheckURL(meta.TokenEndpoint) != nil:
			return "", errors.New("names no proper token endpoint")
		}
		return meta.TokenEndpoint, nil
	}
	return "", errors.New("has no metadata")
}
