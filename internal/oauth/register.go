package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A clientIdentity identifies and authenticates Drawbridge to an authorization server.
type clientIdentity struct {
	ID     string `json:"id,omitempty"`
	Secret string `json:"secret,omitempty"`
	// Key is the private key that signs client assertions in place of a secret, in PEM. It is never stored.
	Key string `json:"-"`
	// Method is the method of client authentication in the registration. Empty means a method that the server's
	// metadata allow.
	Method string `json:"method,omitempty"`
	// Redirects are the redirect URIs of a registered client.
	Redirects []string `json:"redirects,omitempty"`
	// Expires is when the secret expires; zero means never.
	Expires time.Time `json:"expires,omitzero"`
	// Registered is true if Drawbridge registered the client, and may register a client again.
	Registered bool `json:"registered,omitempty"`
}

// clientFor returns the client to use at an authorization server. It tries, in the order of the specification: the
// configured client, Drawbridge's metadata document, a client registered earlier, a client ID that the server
// publishes, a new registration. redirects are the redirect URIs, the preferred one first; it is empty if the sign-in
// needs no redirect.
func (c *Credential) clientFor(ctx context.Context, s authServer, r credentialRecord,
	redirects []string) (clientIdentity, error) {
	begun := slices.IndexFunc(r.Pending, func(p pendingSignIn) bool {
		return p.AuthServer.Issuer == s.Issuer && c.isClientUsable(p.Client, redirects)
	})
	switch {
	case c.server.ClientID != "":
		return c.configuredClient(ctx)
	case c.server.ClientMetadataURL != "" && s.ClientDocuments:
		return clientIdentity{ID: c.server.ClientMetadataURL, Method: "none"}, nil
	case r.ClientIssuer == s.Issuer && c.isClientUsable(r.Client, redirects):
		return r.Client, nil
	case begun >= 0:
		return r.Pending[begun].Client, nil
	case s.ClientID != "":
		return clientIdentity{ID: s.ClientID, Method: "none"}, nil
	case s.Registration == "":
		return clientIdentity{},
			userError(`OAuth provider requires client_id: it does not register clients, so name one in the row's "auth"`)
	}
	if len(redirects) == 0 {
		redirects = []string{"http://127.0.0.1/callback"} // registration requires one
	}
	return c.registerClient(ctx, s, redirects)
}

// isClientUsable reports whether a client registered earlier can be used with the first of the given redirect URIs. If
// redirects is empty, it does not compare redirect URIs.
func (c *Credential) isClientUsable(known clientIdentity, redirects []string) bool {
	if known.ID == "" || !known.Registered || !known.Expires.IsZero() &&
		c.manager.o.Now().Add(time.Minute).After(known.Expires) {
		return false
	}
	return len(redirects) == 0 || slices.Contains(known.Redirects, redirects[0])
}

// registerClient registers Drawbridge as a client (RFC 7591). If the authorization server refuses 127.0.0.1 in the
// redirect URI, it retries with localhost.
func (c *Credential) registerClient(ctx context.Context, s authServer, redirects []string) (clientIdentity, error) {
	known, err := c.registerWith(ctx, s, redirects)
	refused, ok := errors.AsType[*oauthError](err)
	if named := withLocalhostName(redirects); ok && strings.Contains(refused.code, "redirect") && named != nil {
		known, err = c.registerWith(ctx, s, named)
	}
	if _, told := errors.AsType[userError](err); err != nil && !told {
		err = fmt.Errorf("register as a client: %w", err)
	}
	return known, err
}

// registerWith sends one registration request with the given redirect URIs. It parses only the members that it needs,
// since some servers return other members with wrong types.
func (c *Credential) registerWith(ctx context.Context, s authServer, redirects []string) (clientIdentity, error) {
	method, err := s.registrationAuthMethod()
	if err != nil {
		return clientIdentity{}, err
	}
	body, err := json.Marshal(oauthex.ClientRegistrationMetadata{
		RedirectURIs: redirects, TokenEndpointAuthMethod: method, GrantTypes: c.grantTypes(s),
		ResponseTypes: []string{"code"},
		ClientName:    "Drawbridge", SoftwareID: "drawbridge", SoftwareVersion: c.manager.o.Version,
		ApplicationType: "native",
		Scope:           c.server.Scopes,
	})
	if err != nil {
		return clientIdentity{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Registration, bytes.NewReader(body))
	if err != nil {
		return clientIdentity{}, withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return clientIdentity{}, asUnavailable(withoutURL(err))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata))
	if err != nil {
		return clientIdentity{}, asUnavailable(withoutURL(err))
	}
	fields := parseResponse("", data)
	switch {
	case isUnavailableStatus(resp.StatusCode):
		return clientIdentity{}, unavailableError{fmt.Errorf("status %d", resp.StatusCode)}
	case resp.StatusCode == http.StatusBadRequest:
		return clientIdentity{}, &oauthError{status: resp.StatusCode, code: fields.text("error"),
			description: fields.text("error_description")}
	case resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK:
		return clientIdentity{},
			userError(fmt.Sprintf(
				`OAuth provider requires client_id: it does not register us (status %d), so name a client in the row's "auth"`, resp.StatusCode))
	case fields.text("client_id") == "":
		return clientIdentity{}, errors.New("the authorization server's response has no client_id")
	}
	known := clientIdentity{ID: fields.text("client_id"), Secret: fields.text("client_secret"),
		Method: fields.text("token_endpoint_auth_method"), Redirects: redirects, Registered: true}
	if known.Method == "" && known.Secret == "" {
		known.Method = method
	}
	if ends := fields.seconds("client_secret_expires_at"); ends > 0 {
		known.Expires = time.Unix(int64(ends/time.Second), 0)
	}
	return known, nil
}

// registrationAuthMethod returns the method of client authentication to register with. It prefers "none", that is, a
// client without a secret: a program on a person's machine cannot hide a secret from that person.
func (s authServer) registrationAuthMethod() (string, error) {
	for _, method := range []string{authMethodNone, authMethodBasic, authMethodPost} {
		if len(s.AuthMethods) == 0 || slices.Contains(s.AuthMethods, method) {
			return method, nil
		}
	}
	return "", userError(
		`OAuth provider requires client_id: it does not support a method of client authentication that Drawbridge can register with, so name a client in the row's "auth"`)
}

func (c *Credential) grantTypes(s authServer) []string {
	grants := []string{"authorization_code", "refresh_token"}
	if s.Device != "" {
		grants = append(grants, deviceGrant)
	}
	return grants
}

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// withLocalhostName returns a copy of the redirect URIs that contain 127.0.0.1, in which localhost replaces it. It
// returns nil if there are none.
func withLocalhostName(redirects []string) []string {
	var named []string
	for _, r := range redirects {
		if n := strings.Replace(r, "://127.0.0.1:", "://localhost:", 1); n != r {
			named = append(named, n)
		}
	}
	return named
}

// Methods of client authentication at the token endpoint (RFC 7591, 2).
const (
	authMethodNone  = "none"
	authMethodBasic = "client_secret_basic"
	authMethodPost  = "client_secret_post"
)

// authMethod returns the method of client authentication at the token endpoint. It is "none" if the client has no
// secret or was registered with "none". Otherwise it is the registered method, or else a method that the server
// supports.
func (known clientIdentity) authMethod(s authServer) string {
	switch {
	case known.Secret == "" || known.Method == authMethodNone:
		return authMethodNone
	case known.Method == authMethodPost, known.Method == "" && !slices.Contains(s.AuthMethods, authMethodBasic) &&
		slices.Contains(s.AuthMethods, authMethodPost):
		return authMethodPost
	}
	return authMethodBasic // the default of RFC 7591, 2
}
