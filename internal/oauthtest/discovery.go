package oauthtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// wellKnown returns the path of a metadata document: /.well-known/, the name of the kind of metadata, and then path.
func wellKnown(name, path string) string {
	return "/.well-known/" + name + strings.TrimSuffix(path, "/")
}

// metadataByPath returns the metadata that an origin serves: a map from the path of a request to the MetadataPlace of
// the document there. resource is true for the origin of the MCP server, and false for that of the authorization
// server.
func (p *Provider) metadataByPath(k Knobs, resource bool) map[string]MetadataPlace {
	issuer, server := p.options.IssuerPath, p.options.resourcePath()
	all := map[MetadataPlace]string{}
	if resource || p.options.OneOrigin {
		all[PRMPath] = wellKnown("oauth-protected-resource", server)
		all[PRMRoot] = wellKnown("oauth-protected-resource", "")
		all[PRMElsewhere] = "/about/resource.json"
	}
	if !resource || p.options.OneOrigin || k.Discovery.OnResource {
		all[ASPath] = wellKnown("oauth-authorization-server", issuer)
		all[ASRoot] = wellKnown("oauth-authorization-server", "")
		all[OIDCInserted] = wellKnown("openid-configuration", issuer)
		all[OIDCAppended] = issuer + wellKnown("openid-configuration", "")
		all[OIDCRoot] = wellKnown("openid-configuration", "")
		all[OddMetadata], all[OddMCPAuth], all[OddAuthorize] = "/oauth/metadata", "/.mcp/auth", "/authorize"
	}
	paths := map[string]MetadataPlace{}
	for place, path := range all {
		if k.places(place) {
			paths[path] = place
		}
	}
	return paths
}

func (k Knobs) places(p MetadataPlace) bool {
	if k.Discovery.Places == nil {
		return p == PRMPath || p == ASPath
	}
	return slices.Contains(k.Discovery.Places, p)
}

// serveWellKnown returns a handler for requests to paths without an endpoint. The handler sends the metadata document
// for the path, or 404 if there is none.
func (p *Provider) serveWellKnown(resource bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		place, ok := p.metadataByPath(p.currentKnobs(), resource)[r.URL.Path]
		switch {
		case !ok:
			p.recordRequests(Nothing, http.NotFound)(w, r)
		case place == PRMPath || place == PRMRoot || place == PRMElsewhere:
			p.recordRequests(ResourceMetadata, p.document(p.resourceMetadata))(w, r)
		default:
			p.recordRequests(ServerMetadata, p.document(p.serverMetadata))(w, r)
		}
	}
}

// document returns a handler that sends the metadata that make returns.
func (p *Provider) document(make func(Knobs) map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		k := p.currentKnobs()
		if to := k.Discovery.Redirect; to != "" {
			http.Redirect(w, r, p.fillURLs(to), http.StatusFound)
			return
		}
		text, err := json.Marshal(make(k))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = w.Write(text)
		pad := strings.Repeat(" ", 1<<16)
		for n := k.Discovery.Padding; n > 0; n -= len(pad) {
			if _, err := io.WriteString(w, pad[:min(n, len(pad))]); err != nil {
				return
			}
		}
	}
}

// resourceMetadata returns the document of RFC 9728.
func (p *Provider) resourceMetadata(k Knobs) map[string]any {
	servers := k.Discovery.AuthorizationServers
	if servers == nil {
		servers = []string{p.Issuer}
	}
	m := map[string]any{
		"resource":                 orDefault(p.fillURLs(k.Discovery.Resource), p.ResourceURL),
		"authorization_servers":    p.fillAll(servers),
		"scopes_supported":         []string{k.serverScope(), k.secretScope()},
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "The test provider's tools",
	}
	p.overlayMembers(m, k.Discovery.SetPRM)
	return m
}

// serverMetadata returns the document of RFC 8414 and OpenID Connect Discovery.
func (p *Provider) serverMetadata(k Knobs) map[string]any {
	m := map[string]any{
		"issuer":                                orDefault(p.fillURLs(k.Discovery.Issuer), p.Issuer),
		"authorization_endpoint":                p.URL(Authorize),
		"token_endpoint":                        p.URL(Token),
		"revocation_endpoint":                   p.URL(Revoke),
		"introspection_endpoint":                p.URL(Introspect),
		"jwks_uri":                              p.URL(Keys),
		"response_types_supported":              []string{"code"},
		"response_modes_supported":              []string{"query"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"},
		"grant_types_supported":                 grantTypes(),
		"token_endpoint_auth_methods_supported": k.methods(),
		"scopes_supported":                      k.scopes(),
	}
	switch k.Authorization.PKCE {
	case "unadvertised":
	case "plain":
		m["code_challenge_methods_supported"] = []string{"plain"}
	default:
		m["code_challenge_methods_supported"] = []string{"S256"}
	}
	if !k.Authorization.IssUnadvertised {
		m["authorization_response_iss_parameter_supported"] = true
	}
	if !k.Registration.Absent {
		m["registration_endpoint"] = p.URL(Register)
	}
	if k.Registration.Documents {
		m["client_id_metadata_document_supported"] = true
	}
	if !k.Device.Absent {
		m["device_authorization_endpoint"] = p.URL(DeviceStart)
	}
	p.overlayMembers(m, k.Discovery.Set)
	return m
}

func (k Knobs) methods() []string {
	if k.Registration.Methods != nil {
		return k.Registration.Methods
	}
	return []string{"none", "client_secret_basic", "client_secret_post"}
}

func (k Knobs) serverScope() string { return orDefault(k.Server.Scope, "mcp") }
func (k Knobs) secretScope() string { return orDefault(k.Server.SecretScope, "secret") }

// scopes returns all scopes that can be granted.
func (k Knobs) scopes() []string {
	return []string{k.serverScope(), k.secretScope(), "openid", "offline_access"}
}

// challenge sends the response to a request without a valid token, in the form that the knobs set. problem is the error
// code of RFC 6750; it may be empty.
func (p *Provider) challenge(w http.ResponseWriter, k Knobs, problem string) {
	c := k.Challenge
	status := c.Status
	if status == 0 {
		status = http.StatusUnauthorized
	}
	header, body := w.Header(), any(map[string]any{"error": orDefault(problem, "unauthorized")})
	switch c.Form {
	case ChallengeStandard:
		header.Set("WWW-Authenticate", p.standardChallenge(k, problem, c.Scope))
	case ChallengeBare:
		header.Set("WWW-Authenticate", "Bearer")
	case ChallengePairs:
		header.Set("WWW-Authenticate", fmt.Sprintf(`Bearer %s="%s", %s="%s"`,
			orDefault(c.AuthorizationKey, "authorization_uri"), p.authorizationURL(k),
			orDefault(c.TokenKey, "token_uri"), p.URL(Token)))
	case ChallengeBody:
		body = p.challengeBody(k)
	case ChallengeAuthServer:
		header.Set("Mcp-Auth-Server", p.Issuer)
	}
	writeJSON(w, status, body)
}

// standardChallenge returns the challenge of RFC 9728 with the error code of RFC 6750.
func (p *Provider) standardChallenge(k Knobs, problem, scope string) string {
	var all []string
	add := func(name, value string) {
		if value != "" && value != "-" {
			all = append(all, fmt.Sprintf("%s=%q", name, value))
		}
	}
	switch {
	case k.places(PRMElsewhere):
		add("resource_metadata", p.resourceOrigin()+"/about/resource.json")
	case k.places(PRMPath):
		add("resource_metadata", p.URL(ResourceMetadata))
	case k.places(PRMRoot):
		add("resource_metadata", p.resourceOrigin()+wellKnown("oauth-protected-resource", ""))
	}
	add("error", problem)
	add("scope", orDefault(scope, k.serverScope()))
	return strings.TrimSpace("Bearer " + strings.Join(all, ", "))
}

func (p *Provider) authorizationURL(k Knobs) string {
	if !k.Challenge.InQuery {
		return p.URL(Authorize)
	}
	return p.URL(Authorize) + "?" + url.Values{"client_id": {k.Challenge.ClientID}, "scope": {k.serverScope()}}.Encode()
}

// challengeBody returns the response body that names the endpoints.
func (p *Provider) challengeBody(k Knobs) map[string]any {
	c := k.Challenge
	endpoints := map[string]any{
		orDefault(c.AuthorizationKey, "authorization_endpoint"): p.authorizationURL(k),
		orDefault(c.TokenKey, "token_endpoint"):                 p.URL(Token),
	}
	if c.ClientIDKey != "" {
		endpoints[c.ClientIDKey] = c.ClientID
	}
	switch {
	case c.ScopesKey != "" && c.ScopeList:
		endpoints[c.ScopesKey] = []string{k.serverScope()}
	case c.ScopesKey != "":
		endpoints[c.ScopesKey] = k.serverScope()
	}
	if c.Under == "" {
		return endpoints
	}
	return map[string]any{"error": "unauthorized", c.Under: endpoints}
}
