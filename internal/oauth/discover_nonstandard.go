package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// discoverNonstandard returns the endpoints of an MCP server without resource metadata. First, it looks for endpoints
// in the body and the headers of the server's challenge. Then it tries two issuers: the issuer in the Mcp-Auth-Server
// header, and root, the origin of the MCP server. For each issuer, it requests the metadata and the paths of
// discoverAtOldPaths. If all fail, it returns the default endpoints of specification 2025-03-26 for root. If there was
// no challenge, or a challenge that is not about OAuth, it returns nil.
func (c *Credential) discoverNonstandard(ctx context.Context, demand AuthChallenge, root string) (*authServer, error) {
	if s := endpointsInChallenge(demand); s != nil {
		return c.withMetadata(ctx, s), nil
	}
	for _, issuer := range []string{demand.AuthServerHint, root} {
		if issuer == "" || safehttp.CheckURL(issuer) != nil {
			continue
		}
		if s, err := c.fetchIssuerMetadata(ctx, issuer); s != nil || err != nil {
			return s, err
		}
		if s := c.discoverAtOldPaths(ctx, safehttp.Origin(issuer)); s != nil {
			return s, nil
		}
	}
	if demand.Status == 0 || !asksForOAuth(demand) {
		return nil, nil
	}
	s := conventionalEndpoints(root)
	s.IssuerGuessed = true
	return &s, nil
}

// endpointsInChallenge returns the endpoints in the body or the headers of a challenge, or nil if there are none.
func endpointsInChallenge(demand AuthChallenge) *authServer {
	if s := endpointsInBody(demand.Body); s != nil {
		return s
	}
	return endpointsInHeaders(demand.Challenges)
}

// withMetadata completes s, the endpoints of a challenge. It requests the metadata of the authorization endpoint's
// origin, and returns them if they name the same token endpoint as s. Otherwise it returns s with the default
// registration endpoint of specification 2025-03-26. If a client ID or a registration endpoint is already known, it
// returns s unchanged, without a request.
func (c *Credential) withMetadata(ctx context.Context, s *authServer) *authServer {
	if s.ClientID != "" || c.server.ClientID != "" || s.Registration != "" {
		return s
	}
	root := safehttp.Origin(s.Authorization)
	s.Registration = conventionalEndpoints(root).Registration
	if safehttp.CheckURL(root) != nil {
		return s
	}
	if meta, err := c.fetchIssuerMetadata(ctx, root); err == nil && meta != nil && meta.Token == s.Token {
		meta.Authorization, meta.Scopes = s.Authorization, s.Scopes
		return meta
	}
	return s
}

// asksForOAuth reports whether a challenge can be about OAuth: it contains a bearer challenge, or no WWW-Authenticate
// header at all.
func asksForOAuth(demand AuthChallenge) bool {
	return len(demand.Challenges) == 0 || bearerParams(demand.Challenges) != nil
}

// discoverAtOldPaths requests the paths at which servers published their endpoints before the specification defined a
// path. root is the origin of the server. It returns nil if no path has endpoints.
func (c *Credential) discoverAtOldPaths(ctx context.Context, root string) *authServer {
	for _, path := range []string{"/oauth/metadata", "/.mcp/auth", "/authorize"} {
		var body json.RawMessage
		if found, err := c.fetchJSON(ctx, root+path, &body); found && err == nil {
			if s := endpointsInBody(body); s != nil {
				return s
			}
		}
	}
	return nil
}

// Names that older servers use for the members of the metadata.
var (
	authorizationNames = []string{"authorization_url", "authorizationUrl", "authorization_endpoint",
		"authorizationEndpoint", "authorization_uri", "authorizationUri"}
	tokenNames        = []string{"token_url", "tokenUrl", "token_endpoint", "tokenEndpoint", "token_uri", "tokenUri"}
	clientNames       = []string{"client_id", "clientId", "default_client_id", "public_client_id"}
	scopeNames        = []string{"scopes", "scope", "scopes_supported"}
	registrationNames = []string{"registration_endpoint", "registrationEndpoint", "registration_url"}
)

// endpointsInBody returns the endpoints in a JSON object: in its member oauth, authorization or auth, or else in its
// top-level members. It returns nil if body contains no JSON object with endpoints.
func endpointsInBody(body []byte) *authServer {
	start := bytes.IndexByte(body, '{')
	if start < 0 {
		return nil
	}
	var top map[string]json.RawMessage
	if json.NewDecoder(bytes.NewReader(body[start:])).Decode(&top) != nil {
		return nil
	}
	for _, name := range []string{"oauth", "authorization", "auth"} {
		var inner map[string]json.RawMessage
		if json.Unmarshal(top[name], &inner) == nil {
			if s := endpointsInMembers(inner); s != nil {
				return s
			}
		}
	}
	return endpointsInMembers(top)
}

func endpointsInMembers(members map[string]json.RawMessage) *authServer {
	text := func(names []string) string {
		for _, name := range names {
			var s string
			if json.Unmarshal(members[name], &s) == nil && s != "" {
				return s
			}
		}
		return ""
	}
	scopes := strings.Fields(text(scopeNames))
	for _, name := range scopeNames {
		var list []string
		if json.Unmarshal(members[name], &list) == nil && len(list) > 0 {
			scopes = list
			break
		}
	}
	return completedEndpoints(authServer{
		Authorization: text(authorizationNames), Token: text(tokenNames), Registration: text(registrationNames),
		ClientID: text(clientNames), Scopes: scopes, Issuer: text([]string{"issuer"}),
	})
}

// endpointsInHeaders returns the endpoints in the parameters of WWW-Authenticate headers, or nil if there are none.
func endpointsInHeaders(headers []string) *authServer {
	all, err := oauthex.ParseWWWAuthenticate(headers)
	if err != nil {
		return nil
	}
	for _, challenge := range all {
		text := func(names ...string) string {
			for _, name := range names {
				if s := challenge.Params[name]; strings.Contains(s, "://") {
					return s
				}
			}
			return ""
		}
		s := completedEndpoints(authServer{
			Authorization: text("authorization_uri", "authorization_url", "authorization_endpoint",
				"authorize_url", "realm"),
			Token:    text("token_url", "token_uri", "token_endpoint"),
			ClientID: challenge.Params["client_id"], Scopes: strings.Fields(challenge.Params["scope"]),
		})
		if s != nil {
			return s
		}
	}
	return nil
}

// completedEndpoints returns s with missing members filled in: the client ID and the scopes from the query of the
// authorization endpoint, and the origin of the token endpoint as the issuer. It returns nil if the authorization or
// the token endpoint is missing.
func completedEndpoints(s authServer) *authServer {
	u, err := url.Parse(s.Authorization)
	if err != nil || s.Authorization == "" || s.Token == "" {
		return nil
	}
	query := u.Query()
	if s.ClientID == "" {
		s.ClientID = query.Get("client_id")
	}
	if len(s.Scopes) == 0 {
		s.Scopes = strings.Fields(query.Get("scope"))
	}
	if s.Issuer == "" {
		s.Issuer, s.IssuerGuessed = safehttp.Origin(s.Token), true
	}
	return &s
}

// bearerParams returns the parameters of the bearer challenge in WWW-Authenticate headers, or nil if there is none. It
// skips headers that cannot be parsed. If there are several bearer challenges, it returns the longest list of
// parameters.
func bearerParams(headers []string) map[string]string {
	var found map[string]string
	for _, header := range headers {
		all, err := oauthex.ParseWWWAuthenticate([]string{header})
		if err != nil {
			continue
		}
		for _, challenge := range all {
			if challenge.Scheme == "bearer" && len(challenge.Params) >= len(found) {
				found = challenge.Params
				if found == nil {
					found = map[string]string{}
				}
			}
		}
	}
	return found
}
