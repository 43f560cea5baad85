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

// signInUnattended obtains a token without a person: for the client itself, or with an assertion of an identity
// provider.
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

// scopesWithoutRefresh returns the scopes to request if no refresh token is wanted.
func (c *Credential) scopesWithoutRefresh(s authServer, demand AuthChallenge) []string {
	return slices.DeleteFunc(c.chooseScopes(s, demand, nil), func(s string) bool { return s == "offline_access" })
}

// obtainToken requests a token without asking a person. It drops a refresh token in the response: a new token can always
// be requested, and a refresh token could be valid longer than the credential with which it was requested.
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

// discoveryError returns the error for a failed discovery: temporary if the authorization server is unavailable.
func (c *Credential) discoveryError(r credentialRecord, err error) error {
	if _, later := errors.AsType[unavailableError](err); later {
		return c.pauseRenewal(r, err)
	}
	return &SignInRequiredError{Server: c.server.ID, Err: err, usedToken: hashToken(r.Access)}
}

// grantError returns the error for a failed grant: permanent if the same request would be refused again, else
// temporary. It returns nil for nil.
func (c *Credential) grantError(r credentialRecord, err error) error {
	refusal, refused := errors.AsType[*oauthError](err)
	_, unfit := errors.AsType[tokenTypeError](err)
	switch {
	case err == nil:
		return nil
	case unfit, refused && refusal.isPermanent():
		return &SignInRequiredError{Server: c.server.ID, Err: err, usedToken: hashToken(r.Access)}
	}
	return c.pauseRenewal(r, err)
}

// errUnattended is the error for a person who tries to sign in at a server whose row has another grant.
const errUnattended = userError(
	"This server needs no sign-in by a person: the \"auth\" of its row obtains tokens without one.")

// jwtBearerGrant is the grant for a signed assertion (RFC 7523, 2.1).
const jwtBearerGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// assertionParams returns the token request with an assertion. For a workload, the assertion is the row's identity
// token itself (workload identity federation, SEP-1933). For an enterprise, its identity provider issues one in
// exchange for the identity token, for this authorization server only (enterprise-managed authorization, SEP-990).
func (c *Credential) assertionParams(ctx context.Context, s authServer, scopes []string) (url.Values, error) {
	if c.resolveAuth == nil {
		return nil, errors.New("the row has no identity token")
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
	assertion, err := oauthex.ExchangeToken(ctx, endpoint, &oauthex.TokenExchangeRequest{
		RequestedTokenType: oauthex.TokenTypeIDJAG, SubjectTokenType: oauthex.TokenTypeIDToken,
		SubjectToken: auth.IDToken,
		Audience:     s.Issuer, Resource: s.Resource, Scope: scopes,
	}, ours, c.client)
	if err != nil {
		hide := c.secretRedactor(url.Values{"assertion": {auth.IDToken}}, clientIdentity{Secret: auth.IDPClientSecret})
		return nil, fmt.Errorf("the identity provider: %w", convertSDKError(err, hide))
	}
	return url.Values{"grant_type": {jwtBearerGrant}, "assertion": {assertion.AccessToken}}, nil
}

// convertSDKError returns an error of the SDK as one of ours, without the response body, which may hold a token, and
// with hide applied.
func convertSDKError(err error, hide func(string) string) error {
	refusal, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return withoutURL(err)
	}
	r := &oauthError{code: hide(refusal.ErrorCode), description: hide(refusal.ErrorDescription)}
	if refusal.Response != nil {
		r.status = refusal.Response.StatusCode
	}
	return r
}

// findTokenEndpoint finds the token endpoint of an issuer for requests without a browser, so PKCE is not required.
func (c *Credential) findTokenEndpoint(ctx context.Context, issuer string) (string, error) {
	if err := safehttp.CheckURL(issuer); err != nil {
		return "", fmt.Errorf("has an address that %w", err)
	}
	for _, location := range metadataURLs(issuer) {
		var meta oauthex.AuthServerMeta
		found, err := c.fetchJSON(ctx, location, &meta)
		switch {
		case err != nil:
			return "", fmt.Errorf("has metadata that cannot be read: %w", err)
		case !found:
			continue
		case strings.TrimSuffix(meta.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
			return "", fmt.Errorf("has metadata of another issuer, %s", printable(hostOf(meta.Issuer)))
		case safehttp.CheckURL(meta.TokenEndpoint) != nil:
			return "", errors.New("does not name a valid token endpoint")
		}
		return meta.TokenEndpoint, nil
	}
	return "", errors.New("has no metadata")
}
