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

// signInUnattended obtains and stores a token without a person: with client credentials, or with an assertion (see
// assertionParams).
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

// scopesWithoutRefresh returns the scopes to request without offline_access, the scope for a refresh token.
func (c *Credential) scopesWithoutRefresh(s authServer, demand AuthChallenge) []string {
	return slices.DeleteFunc(c.chooseScopes(s, demand, nil), func(s string) bool { return s == "offline_access" })
}

// obtainToken requests and stores a token without asking a person. It drops a refresh token in the response, because a
// new token can be requested at any time. A refresh token might also stay valid after the credential used in the
// request has expired.
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

// discoveryError returns the error for a failed discovery: a temporaryError if the authorization server is unavailable,
// else a *SignInRequiredError.
func (c *Credential) discoveryError(r credentialRecord, err error) error {
	if _, later := errors.AsType[unavailableError](err); later {
		return c.pauseRenewal(r, err)
	}
	return &SignInRequiredError{Server: c.server.ID, Err: err, usedToken: hashToken(r.Access)}
}

// grantError returns the error for a failed token request: a *SignInRequiredError if the same request would be refused
// again, else a temporaryError. If err is nil, it returns nil.
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

// errUnattended is the error of BeginSignIn for a server whose tokens are obtained without a person.
const errUnattended = userError(
	"This server needs no sign-in by a person: the \"auth\" of its row obtains tokens without one.")

// jwtBearerGrant is the grant for a signed assertion (RFC 7523, 2.1).
const jwtBearerGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// assertionParams returns the parameters of a token request with an assertion. For WorkloadGrant, the assertion is the
// configured identity token itself (workload identity federation, SEP-1933). For EnterpriseGrant, the identity provider
// issues the assertion in exchange for the configured identity token. The issued assertion is valid only for this
// authorization server (enterprise-managed authorization, SEP-990).
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

// convertSDKError converts an error response in the SDK's error to an *oauthError. It omits the response body, which
// may contain a token, and applies hide to the texts. It returns other errors without their URL.
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

// findTokenEndpoint returns the token endpoint of an issuer. It does not require PKCE, since the requests to this
// endpoint use no browser.
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
