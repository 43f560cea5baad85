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

// An authServer contains the metadata of an authorization server that a sign-in needs. Most fields are addresses of its
// endpoints.
type authServer struct {
	Issuer        string `json:"issuer,omitempty"`
	Authorization string `json:"authorization,omitempty"`
	Token         string `json:"token,omitempty"`
	Device        string `json:"device,omitempty"`
	Registration  string `json:"registration,omitempty"`
	Revocation    string `json:"revocation,omitempty"`
	// Resource is the resource indicator of requests. If it is empty, the parameter resource is omitted.
	Resource string `json:"resource,omitempty"`
	// Scopes are the scopes that the resource supports. OfflineScope is true if the scope offline_access must be
	// requested to get a refresh token.
	Scopes       []string `json:"scopes,omitempty"`
	OfflineScope bool     `json:"offline,omitempty"`
	// AuthMethods are the supported methods of client authentication at the token endpoint.
	AuthMethods []string `json:"methods,omitempty"`
	Grants      []string `json:"grants,omitempty"`
	// ClientDocuments is true if the server accepts client ID metadata documents. NamesIssuer is true if the server's
	// metadata promise the parameter iss in authorization responses.
	ClientDocuments bool `json:"documents,omitempty"`
	NamesIssuer     bool `json:"names_issuer,omitempty"`
	// IssuerGuessed is true if neither the server's configuration nor metadata name the issuer. Issuer is then the
	// origin of the token endpoint.
	IssuerGuessed bool `json:"vague,omitempty"`
	// Conventional is true if the issuer has no metadata. The endpoints are then the default endpoints of specification
	// 2025-03-26.
	Conventional bool `json:"-"`
	// ClientID is a client ID for public use, which some older servers publish together with their endpoints.
	ClientID string `json:"client_id,omitempty"`
}

// maxMetadata is the maximum size of a metadata document or of a response, in bytes.
const maxMetadata = 1 << 20

// discoverAuthServer returns the authorization server of the MCP server. The endpoints come from the MCP server's
// configuration, from the metadata of the configured issuer, or from the MCP server's resource metadata. demand is the
// MCP server's challenge, which may contain the URL of the resource metadata.
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

// discoverFromResource returns the authorization server that the MCP server's resource metadata name. If the MCP server
// has no such metadata, it returns the result of discoverNonstandard, or an error if there is none.
func (c *Credential) discoverFromResource(ctx context.Context, demand AuthChallenge) (authServer, error) {
	meta, err := c.fetchResourceMetadata(ctx, demand)
	if err != nil {
		return authServer{}, err
	}
	if meta != nil {
		s, err := c.discoverFromIssuers(ctx, meta.AuthorizationServers)
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

// maxNamedIssuers is the maximum number of issuers that are tried if the resource metadata name several.
const maxNamedIssuers = 5

// discoverFromIssuers requests the metadata of the issuers that a resource names, in that order. It returns the first
// authorization server that has metadata. If no issuer has metadata, it returns the result for the first issuer.
func (c *Credential) discoverFromIssuers(ctx context.Context, issuers []string) (authServer, error) {
	first, err := c.discoverFromIssuer(ctx, issuers[0])
	if err == nil && !first.Conventional {
		return first, nil
	}
	for _, issuer := range issuers[1:min(len(issuers), maxNamedIssuers)] {
		s, otherErr := c.discoverFromIssuer(ctx, issuer)
		if otherErr == nil && !s.Conventional {
			return s, nil
		}
	}
	return first, err
}

// discoverFromIssuer returns the authorization server of a named issuer, from its metadata. For an issuer without
// metadata, it returns the default endpoints of specification 2025-03-26.
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

// conventionalEndpoints returns the default endpoints that specification 2025-03-26 defines for an issuer without
// metadata.
func conventionalEndpoints(issuer string) authServer {
	base := strings.TrimSuffix(issuer, "/")
	return authServer{Issuer: issuer, Authorization: base + "/authorize", Token: base + "/token",
		Registration: base + "/register", Conventional: true}
}

// fetchIssuerMetadata requests an issuer's metadata at each URL of metadataURLs, in that order. It returns nil if the
// issuer has no metadata.
func (c *Credential) fetchIssuerMetadata(ctx context.Context, issuer string) (*authServer, error) {
	for _, location := range metadataURLs(issuer) {
		var meta authServerMetadata
		found, err := c.fetchJSON(ctx, location, &meta)
		switch {
		case err != nil:
			return nil, fmt.Errorf("read the authorization server's metadata: %w", err)
		case !found:
			continue
		case strings.TrimSuffix(meta.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
			return nil, fmt.Errorf(
				"the authorization server's metadata name another issuer, %s: if that is right, set \"issuer\" to it in the row's \"auth\"", printable(hostOf(meta.Issuer)))
		case !slices.Contains(meta.CodeChallengeMethodsSupported, "S256"):
			return nil, errors.New(
				"the authorization server does not support PKCE with S256, without which a sign-in is not safe")
		}
		s := meta.authServer()
		return &s, nil
	}
	return nil, nil
}

// authServerMetadata are the metadata of an authorization server: the members that the SDK knows, and the device
// authorization endpoint of RFC 8628, section 4.
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

// metadataURLs returns the URLs at which an issuer may publish metadata, in the order in which they must be tried
// (2025-11-25, authorization server metadata discovery).
func metadataURLs(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	at := func(path string) string {
		location := *u
		location.Path, location.RawPath, location.RawQuery, location.Fragment = path, "", "", ""
		return location.String()
	}
	const oauth, oidc = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	path := strings.Trim(u.Path, "/")
	if path == "" {
		return []string{at(oauth), at(oidc)}
	}
	return []string{at(oauth + "/" + path), at(oidc + "/" + path), at("/" + path + oidc)}
}

// fetchResourceMetadata requests the server's protected resource metadata (RFC 9728). It uses the URL in the challenge,
// or else the well-known URLs for the server's path and root. It returns nil if no URL has such metadata.
func (c *Credential) fetchResourceMetadata(ctx context.Context, demand AuthChallenge) (
	*oauthex.ProtectedResourceMetadata, error) {
	for _, location := range c.resourceMetadataURLs(demand) {
		if err := safehttp.CheckURL(location); err != nil {
			return nil, fmt.Errorf("the address of the resource metadata %w", err)
		}
		var meta oauthex.ProtectedResourceMetadata
		found, err := c.fetchJSON(ctx, location, &meta)
		switch {
		case err != nil:
			return nil, fmt.Errorf("read the resource metadata: %w", err)
		case !found:
			continue
		case !coversAddress(meta.Resource, c.server.URL):
			return nil, fmt.Errorf("the resource metadata describe another resource, %s",
				printable(hostOf(meta.Resource)))
		case len(meta.AuthorizationServers) == 0:
			return nil, errors.New("the resource metadata do not name an authorization server")
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
	location := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/.well-known/oauth-protected-resource"}
	root := location.String()
	if path := strings.Trim(u.Path, "/"); path != "" {
		return []string{root + "/" + path, root}
	}
	return []string{root}
}

// coversAddress reports whether the metadata of a resource apply to an address: both have the same origin, and the
// address's path is at or below the resource's path. RFC 9728 requires equal texts, but servers differ in trailing
// slashes or name their root.
func coversAddress(resource, address string) bool {
	r, err := url.Parse(resource)
	a, err2 := url.Parse(address)
	if err != nil || err2 != nil || r.Host == "" || safehttp.Origin(resource) != safehttp.Origin(address) {
		return false
	}
	above, path := strings.TrimSuffix(r.Path, "/")+"/", strings.TrimSuffix(a.Path, "/")+"/"
	return strings.HasPrefix(path, above)
}

// fetchJSON requests the JSON document at the URL location and decodes it into into. found is false if the response is
// not a JSON document.
func (c *Credential) fetchJSON(ctx context.Context, location string, into any) (found bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
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
		return false, errors.New("not JSON of the expected form")
	}
	return true, nil
}

// configuredAuthServer returns the authorization server that the MCP server's configuration describes, without sending
// a request.
func (c *Credential) configuredAuthServer() authServer {
	s := c.withRowOverrides(authServer{Issuer: c.server.Issuer, Resource: c.resourceIndicator()})
	if s.Issuer == "" {
		s.Issuer, s.IssuerGuessed = safehttp.Origin(s.Token), true
	}
	return s
}

// withRowOverrides returns s with the endpoints and the resource that the MCP server's configuration sets, in place of
// those in s.
func (c *Credential) withRowOverrides(s authServer) authServer {
	for into, value := range map[*string]string{
		&s.Authorization: c.server.AuthorizationURL, &s.Token: c.server.TokenURL, &s.Device: c.server.DeviceURL,
		&s.Registration: c.server.RegistrationURL, &s.Resource: c.server.Resource,
	} {
		if value != "" {
			*into = value
		}
	}
	if c.server.Resource == noResourceParam {
		s.Resource = ""
	}
	return s
}

// noResourceParam is the value of "resource" in the configuration that omits the parameter resource from requests. It
// is for authorization servers that do not know the parameter.
const noResourceParam = "none"

// resourceIndicator returns the server's address as a resource indicator (RFC 8707), that is, without the fragment.
func (c *Credential) resourceIndicator() string {
	address, _, _ := strings.Cut(c.server.URL, "#")
	return address
}

// validate returns an error if s has no token endpoint, or an endpoint whose address is not safe to request
// (safehttp.CheckURL). It also checks the authorization endpoint with checkAuthorizationEndpoint.
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
	if err := checkAuthorizationEndpoint(s.Authorization); err != nil {
		return userErrorf("Invalid OAuth URLs. Please check: the authorization endpoint %w", err)
	}
	if s.Token == "" {
		return errors.New("the authorization server does not name a token endpoint")
	}
	return nil
}
