package signin

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

	"github.com/drawbridge-mcp/drawbridge/bridge/egress"
)

// A site is an authorization server as a server's sign-ins need it.
type site struct {
	Issuer        string `json:"issuer,omitempty"`
	Authorization string `json:"authorization,omitempty"`
	Token         string `json:"token,omitempty"`
	Device        string `json:"device,omitempty"`
	Registration  string `json:"registration,omitempty"`
	Revocation    string `json:"revocation,omitempty"`
	// Resource is what tokens are asked for; empty where the server names none, as older ones do.
	Resource string `json:"resource,omitempty"`
	// Scopes are what the resource supports; Offline says that refresh tokens are to be asked for by a scope.
	Scopes  []string `json:"scopes,omitempty"`
	Offline bool     `json:"offline,omitempty"`
	// Methods are how a client may prove itself at the token endpoint.
	Methods []string `json:"methods,omitempty"`
	Grants  []string `json:"grants,omitempty"`
	// Documents says that clients may be described by a document; NamesIssuer that the answer names the issuer.
	Documents   bool `json:"documents,omitempty"`
	NamesIssuer bool `json:"names_issuer,omitempty"`
	// Vague says that nobody named the issuer: it is where the token endpoint is.
	Vague bool `json:"vague,omitempty"`
	// ClientID is the one that an older server names itself.
	ClientID string `json:"client_id,omitempty"`
}

// maxMetadata is the most that is read of a document.
const maxMetadata = 1 << 20

// discover finds out where to sign in, from what the server said when it refused.
func (c *Credential) discover(ctx context.Context, demand Demand) (site, error) {
	if c.site.AuthorizationURL != "" && c.site.TokenURL != "" || c.site.URL == "" && c.site.Issuer == "" && c.site.TokenURL != "" {
		s := c.configured()
		return s, s.check()
	}
	var s site
	var err error
	if c.site.Issuer != "" {
		s, err = c.atIssuer(ctx, c.site.Issuer)
		s.Resource = c.resource()
	} else {
		s, err = c.byServer(ctx, demand)
	}
	if err != nil {
		return site{}, err
	}
	return c.overridden(s), s.check()
}

// byServer finds the authorization server by what the server says of itself.
func (c *Credential) byServer(ctx context.Context, demand Demand) (site, error) {
	meta, err := c.resourceMetadata(ctx, demand)
	if err != nil {
		return site{}, err
	}
	if meta != nil {
		s, err := c.atIssuer(ctx, meta.AuthorizationServers[0])
		s.Resource, s.Scopes = meta.Resource, meta.ScopesSupported
		return s, err
	}
	s, err := c.odd(ctx, demand, egress.Origin(c.site.URL))
	switch {
	case err != nil:
		return site{}, err
	case s == nil:
		return site{}, sentence("Authentication required, and OAuth endpoints could not be discovered; name them in the row's \"auth\"")
	}
	s.Resource = c.resource()
	return *s, nil
}

// atIssuer reads the metadata of an issuer that somebody named; one without any is taken to have the endpoints that
// 2025-03-26 gave them.
func (c *Credential) atIssuer(ctx context.Context, issuer string) (site, error) {
	if err := egress.Check(issuer); err != nil {
		return site{}, fmt.Errorf("the authorization server's address %w", err)
	}
	s, err := c.standard(ctx, issuer)
	if err != nil {
		return site{}, err
	}
	if s == nil {
		return byConvention(issuer), nil
	}
	return *s, nil
}

// byConvention has the endpoints of 2025-03-26 for a server without metadata.
func byConvention(issuer string) site {
	base := strings.TrimSuffix(issuer, "/")
	return site{Issuer: issuer, Authorization: base + "/authorize", Token: base + "/token", Registration: base + "/register"}
}

// standard reads an issuer's metadata in the places and the order of the specification. Nil means that it has none.
func (c *Credential) standard(ctx context.Context, issuer string) (*site, error) {
	for _, place := range metadataURLs(issuer) {
		var meta metadata
		found, err := c.document(ctx, place, &meta)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the authorization server's metadata: %w", err)
		case !found:
			continue
		case strings.TrimSuffix(meta.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
			return nil, fmt.Errorf("the authorization server's metadata are those of another issuer, %s: if that is right, name it as \"issuer\" in the row's \"auth\"", printable(hostOf(meta.Issuer)))
		case !slices.Contains(meta.CodeChallengeMethodsSupported, "S256"):
			return nil, errors.New("the authorization server does not support PKCE with S256, without which nobody should sign in")
		}
		s := meta.site()
		return &s, nil
	}
	return nil, nil
}

// metadata are those of an authorization server: what the SDK has members for, and the endpoint of RFC 8628, 4.
type metadata struct {
	oauthex.AuthServerMeta
	Device string `json:"device_authorization_endpoint"`
}

func (meta metadata) site() site {
	return site{
		Issuer: meta.Issuer, Authorization: meta.AuthorizationEndpoint, Token: meta.TokenEndpoint, Device: meta.Device,
		Registration: meta.RegistrationEndpoint, Revocation: meta.RevocationEndpoint,
		Offline: slices.Contains(meta.ScopesSupported, "offline_access"), Methods: meta.TokenEndpointAuthMethodsSupported,
		Grants: meta.GrantTypesSupported, Documents: meta.ClientIDMetadataDocumentSupported,
		NamesIssuer: meta.AuthorizationResponseIssParameterSupported,
	}
}

// metadataURLs gives the places of an issuer's metadata, in order (2025-11-25, authorization server metadata discovery).
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

// resourceMetadata reads what the server says of itself (RFC 9728): where its challenge says, else at its path, else at the
// root. Nil means that it says nothing.
func (c *Credential) resourceMetadata(ctx context.Context, demand Demand) (*oauthex.ProtectedResourceMetadata, error) {
	for _, place := range c.resourcePlaces(demand) {
		if err := egress.Check(place); err != nil {
			return nil, fmt.Errorf("the address of the resource's metadata %w", err)
		}
		var meta oauthex.ProtectedResourceMetadata
		found, err := c.document(ctx, place, &meta)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the resource's metadata: %w", err)
		case !found:
			continue
		case !covers(meta.Resource, c.site.URL):
			return nil, fmt.Errorf("the resource's metadata is that of another resource, %s", printable(hostOf(meta.Resource)))
		case len(meta.AuthorizationServers) == 0:
			return nil, errors.New("the resource's metadata names no authorization server")
		}
		return &meta, nil
	}
	return nil, nil
}

func (c *Credential) resourcePlaces(demand Demand) []string {
	if named := bearer(demand.Challenges)["resource_metadata"]; named != "" {
		return []string{named}
	}
	u, err := url.Parse(c.site.URL)
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

// covers says whether metadata of a resource are those of an address: the same origin, and a path at or above it. RFC 9728
// wants the very same text; servers differ in slashes and name their root.
func covers(resource, address string) bool {
	r, err := url.Parse(resource)
	a, err2 := url.Parse(address)
	if err != nil || err2 != nil || r.Host == "" || egress.Origin(resource) != egress.Origin(address) {
		return false
	}
	above, path := strings.TrimSuffix(r.Path, "/")+"/", strings.TrimSuffix(a.Path, "/")+"/"
	return strings.HasPrefix(path, above)
}

// document reads a JSON document. It says false for one that is not there.
func (c *Credential) document(ctx context.Context, place string, into any) (found bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return false, plain(err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return false, away(plain(err))
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case isAway(resp.StatusCode):
		return false, awayError{fmt.Errorf("status %d", resp.StatusCode)}
	case resp.StatusCode != http.StatusOK, media != "application/json" && !strings.HasSuffix(media, "+json"):
		return false, nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata+1))
	switch {
	case err != nil:
		return false, away(plain(err))
	case len(data) > maxMetadata:
		return false, fmt.Errorf("more than %d bytes", maxMetadata)
	case json.Unmarshal(data, into) != nil:
		return false, errors.New("it is no JSON of the right form")
	}
	return true, nil
}

// configured is a site of which the row says all.
func (c *Credential) configured() site {
	s := c.overridden(site{Issuer: c.site.Issuer, Resource: c.resource()})
	if s.Issuer == "" {
		s.Issuer, s.Vague = egress.Origin(s.Token), true
	}
	return s
}

// overridden puts in what the row knows better.
func (c *Credential) overridden(s site) site {
	for into, said := range map[*string]string{
		&s.Authorization: c.site.AuthorizationURL, &s.Token: c.site.TokenURL, &s.Device: c.site.DeviceURL,
		&s.Registration: c.site.RegistrationURL, &s.Resource: c.site.Resource,
	} {
		if said != "" {
			*into = said
		}
	}
	if c.site.Resource == noResource {
		s.Resource = ""
	}
	return s
}

// noResource is what a row says of the resource where the authorization server does not know that parameter.
const noResource = "none"

// resource is the server's address as a resource indicator (RFC 8707): without a fragment.
func (c *Credential) resource() string {
	address, _, _ := strings.Cut(c.site.URL, "#")
	return address
}

// check says whether the endpoints are such as may be called, and shown to people.
func (s site) check() error {
	for _, endpoint := range []struct{ name, address string }{
		{"authorization", s.Authorization}, {"token", s.Token}, {"device", s.Device}, {"registration", s.Registration}, {"revocation", s.Revocation},
	} {
		if endpoint.address == "" {
			continue
		}
		if err := egress.Check(endpoint.address); err != nil {
			return saying("Invalid OAuth URLs. Please check: the %s endpoint %w", endpoint.name, err)
		}
	}
	if s.Token == "" {
		return errors.New("the authorization server names no token endpoint")
	}
	return nil
}
