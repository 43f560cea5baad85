package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// A authServer is an authorization server as a server's sign-ins need it.
type authServer struct {
	Issuer        string `json:"issuer,omitempty"`
	Authorization string `json:"authorization,omitempty"`
	Token         string `json:"token,omitempty"`
	Device        string `json:"device,omitempty"`
	Registration  string `json:"registration,omitempty"`
	Revocation    string `json:"revocation,omitempty"`
	// Resource is what tokens are asked for; empty where the server names none, as older ones do.
	Resource string `json:"resource,omitempty"`
	// Scopes are what the resource supports; Offline says that refresh tokens are to be asked for by a scope.
	Scopes       []string `json:"scopes,omitempty"`
	OfflineScope bool     `json:"offline,omitempty"`
	// AuthMethods are how a client may prove itself at the token endpoint.
	AuthMethods []string `json:"methods,omitempty"`
	Grants      []string `json:"grants,omitempty"`
	// ClientDocuments says that clients may be described by a document; NamesIssuer that the answer names the issuer.
	ClientDocuments bool `json:"documents,omitempty"`
	NamesIssuer     bool `json:"names_issuer,omitempty"`
	// IssuerGuessed says that nobody named the issuer: it is where the token endpoint is.
	IssuerGuessed bool `json:"vague,omitempty"`
	// ClientID is the one that an older server names itself.
	ClientID string `json:"client_id,omitempty"`
}

// maxMetadata is the most that is read of a document.
const maxMetadata = 1 << 20

// discoverAuthServer finds out where to sign in, from what the server said when it refused.
func (c *Credential) discoverAuthServer(ctx context.Context, demand AuthChallenge) (authServer, error) {
	if c.server.AuthorizationURL != "" && c.server.TokenURL != "" || c.server.URL == "" && c.server.Issuer == "" &&
		c.server.TokenURL != "" {
		s := c.configuredAuthServer()
		return s, s.validate()
	}
	var s authServer
	var err error
	if c.server.Issuer != "" {
		s, err = c.discoverFromIssuer(ctx, c.server.Issuer)
		s.Resource = c.resourceIndicator()
	} else {
		s, err = c.discoverFromResource(ctx, demand)
	}
	if err != nil {
		return authServer{}, err
	}
	return c.withRowOverrides(s), s.validate()
}

// discoverFromResource finds the authorization server by what the server says of itself.
func (c *Credential) discoverFromResource(ctx context.Context, demand AuthChallenge) (authServer, error) {
	meta, err := c.fetchResourceMetadata(ctx, demand)
	if err != nil {
		return authServer{}, err
	}
	if meta != nil {
		s, err := c.discoverFromIssuer(ctx, meta.AuthorizationServers[0])
		s.Resource, s.Scopes = meta.Resource, meta.ScopesSupported
		return s, err
	}
	s, err := c.discoverNonstandard(ctx, demand, safehttp.Origin(c.server.URL))
	switch {
	case err != nil:
		return authServer{}, err
	case s == nil:
		return authServer{},
			userError("Authentication required, and OAuth endpoints could not be discovered; name them in the row's \"auth\"")
	}
	s.Resource = c.resourceIndicator()
	return *s, nil
}

// discoverFromIssuer reads the metadata of an issuer that somebody named; one without any is taken to have the
// endpoints that 2025-03-26 gave them.
func (c *Credential) discoverFromIssuer(ctx context.Context, issuer string) (authServer, error) {
	if err := safehttp.CheckURL(issuer); err != nil {
		return authServer{}, fmt.Errorf("the authorization server's address %w", err)
	}
	s, err := c.fetchIssuerMetadata(ctx, issuer)
	if err != nil {
		return authServer{}, err
	}
	if s == nil {
		return conventionalEndpoints(issuer), nil
	}
	return *s, nil
}

// conventionalEndpoints has the endpoints of 2025-03-26 for a server without metadata.
func conventionalEndpoints(issuer string) authServer {
	base := strings.TrimSuffix(issuer, "/")
	return authServer{Issuer: issuer, Authorization: base + "/authorize", Token: base + "/token",
		Registration: base + "/register"}
}

// fetchIssuerMetadata reads an issuer's metadata in the places and the order of the specification. Nil means that it
// has none.
func (c *Credential) fetchIssuerMetadata(ctx context.Context, issuer string) (*authServer, error) {
	for _, place := range metadataURLs(issuer) {
		var meta authServerMetadata
		found, err := c.fetchJSON(ctx, place, &meta)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the authorization server's metadata: %w", err)
		case !found:
			continue
		case strings.TrimSuffix(meta.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
			return nil, fmt.Errorf(
				"the authorization server's metadata are those of another issuer, %s: if that is right, name it as \"issuer\" in the row's \"auth\"", printable(hostOf(meta.Issuer)))
		case !slices.Contains(meta.CodeChallengeMethodsSupported, "S256"):
			return nil, errors.New(
				"the authorization server does not support PKCE with S256, without which nobody should sign in")
		}
		s := meta.authServer()
		return &s, nil
	}
	return nil, nil
}

// authServerMetadata are those of an authorization server: what the SDK has members for, and the endpoint of RFC 8628,
// 4.
type authServerMetadata struct {
	oauthex.AuthServerMeta
	Device string `json:"device_authorization_endpoint"`
}

func (meta authServerMetadata) authServer() authServer {
	return authServer{
		Issuer: meta.Issuer, Authorization: meta.AuthorizationEndpoint, Token: meta.TokenEndpoint, Device: meta.Device,
		Registration: meta.RegistrationEndpoint, Revocation: meta.RevocationEndpoint,
		OfflineScope: slices.Contains(meta.ScopesSupported, "offline_access"),
		AuthMethods:  meta.TokenEndpointAuthMethodsSupported,
		Grants:       meta.GrantTypesSupported, ClientDocuments: meta.ClientIDMetadataDocumentSupported,
		NamesIssuer: meta.AuthorizationResponseIssParameterSupported,
	}
}

// metadataURLs gives the places of an issuer's metadata, in order (2025-11-25, authorization server metadata
// discovery).
func metadataURLs(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	at := func(path string) string {
		place := *u
		place.Path, place.RawPath, place.RawQuery, place.Fragment = path, "", "", ""
		return place.String()
	}
	const oauth, oidc = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	path := strings.Trim(u.Path, "/")
	if path == "" {
		return []string{at(oauth), at(oidc)}
	}
	return []string{at(oauth + "/" + path), at(oidc + "/" + path), at("/" + path + oidc)}
}

// fetchResourceMetadata reads what the server says of itself (RFC 9728): where its challenge says, else at its path,
// else at the root. Nil means that it says nothing.
func (c *Credential) fetchResourceMetadata(ctx context.Context, demand AuthChallenge) (
	*oauthex.ProtectedResourceMetadata, error) {
	for _, place := range c.resourceMetadataURLs(demand) {
		if err := safehttp.CheckURL(place); err != nil {
			return nil, fmt.Errorf("the address of the resource's metadata %w", err)
		}
		var meta oauthex.ProtectedResourceMetadata
		found, err := c.fetchJSON(ctx, place, &meta)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the resource's metadata: %w", err)
		case !found:
			continue
		case !coversAddress(meta.Resource, c.server.URL):
			return nil, fmt.Errorf("the resource's metadata is that of another resource, %s",
				printable(hostOf(meta.Resource)))
		case len(meta.AuthorizationServers) == 0:
			return nil, errors.New("the resource's metadata names no authorization server")
		}
		return &meta, nil
	}
	return nil, nil
}

func (c *Credential) resourceMetadataURLs(demand AuthChallenge) []string {
	if named := bearerParams(demand.Challenges)["resource_metadata"]; named != "" {
		return []string{named}
	}
	u, err := url.Parse(c.server.URL)
	if err != nil {
		return nil
	}
	place := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/.well-known/oauth-protected-resource"}
	root := place.String()
	if path := strings.Trim(u.Path, "/"); path != "" {
		return []string{root + "/" + path, root}
	}
	return []string{root}
}

// coversAddress says whether metadata of a resource are those of an address: the same origin, and a path at or above
// it. RFC 9728 wants the very same text; servers differ in slashes and name their root.
func coversAddress(resource, address string) bool {
	r, err := url.Parse(resource)
	a, err2 := url.Parse(address)
	if err != nil || err2 != nil || r.Host == "" || safehttp.Origin(resource) != safehttp.Origin(address) {
		return false
	}
	above, path := strings.TrimSuffix(r.Path, "/")+"/", strings.TrimSuffix(a.Path, "/")+"/"
	return strings.HasPrefix(path, above)
}

// fetchJSON reads a JSON document. It says false for one that is not there.
func (c *Credential) fetchJSON(ctx context.Context, place string, into any) (found bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return false, withoutURL(err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return false, asUnavailable(withoutURL(err))
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case isUnavailableStatus(resp.StatusCode):
		return false, unavailableError{fmt.Errorf("status %d", resp.StatusCode)}
	case resp.StatusCode != http.StatusOK, media != "application/json" && !strings.HasSuffix(media, "+json"):
		return false, nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata+1))
	switch {
	case err != nil:
		return false, asUnavailable(withoutURL(err))
	case len(data) > maxMetadata:
		return false, fmt.Errorf("more than %d bytes", maxMetadata)
	case json.Unmarshal(data, into) != nil:
		return false, errors.New("it is no JSON of the right form")
	}
	return true, nil
}

// configuredAuthServer is a site of which the row says all.
func (c *Credential) configuredAuthServer() authServer {
	s := c.withRowOverrides(authServer{Issuer: c.server.Issuer, Resource: c.resourceIndicator()})
	if s.Issuer == "" {
		s.Issuer, s.IssuerGuessed = safehttp.Origin(s.Token), true
	}
	return s
}

// withRowOverrides puts in what the row knows better.
func (c *Credential) withRowOverrides(s authServer) authServer {
	for into, said := range map[*string]string{
		&s.Authorization: c.server.AuthorizationURL, &s.Token: c.server.TokenURL, &s.Device: c.server.DeviceURL,
		&s.Registration: c.server.RegistrationURL, &s.Resource: c.server.Resource,
	} {
		if said != "" {
			*into = said
		}
	}
	if c.server.Resource == noResourceParam {
		s.Resource = ""
	}
	return s
}

// noResourceParam is what a row says of the resource where the authorization server does not know that parameter.
const noResourceParam = "none"

// resourceIndicator is the server's address as a resource indicator (RFC 8707): without a fragment.
func (c *Credential) resourceIndicator() string {
	address, _, _ := strings.Cut(c.server.URL, "#")
	return address
}

// validate says whether the endpoints are such as may be called, and shown to people.
func (s authServer) validate() error {
	for _, endpoint := range []struct{ name, address string }{
		{"authorization", s.Authorization}, {"token", s.Token}, {"device", s.Device}, {"registration", s.Registration},
		{"revocation", s.Revocation},
	} {
		if endpoint.address == "" {
			continue
		}
		if err := safehttp.CheckURL(endpoint.address); err != nil {
			return userErrorf("Invalid OAuth URLs. Please check: the %s endpoint %w", endpoint.name, err)
		}
	}
	if s.Token == "" {
		return errors.New("the authorization server names no token endpoint")
	}
	return nil
}
