package bearer

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A Resource describes an HTTP endpoint of Drawbridge to OAuth clients (RFC 9728). The zero value is an endpoint that
// accepts no issuer's tokens.
type Resource struct {
	// URL is the public URL of the endpoint, which clients use and tokens name. If it is empty, Drawbridge uses the URL
	// of its listener, on loopback only.
	URL string
	// Issuers are the issuers whose tokens are accepted. Scopes are the scopes that clients should request.
	Issuers, Scopes []string
}

// Validate returns an error if URL is not the URL of an endpoint. It also returns an error if clients would send
// issuers' tokens to URL unencrypted: http is allowed on loopback only. The error is a *drawbridge.Fault InvalidInput.
func (r Resource) Validate() error {
	u, err := url.Parse(r.URL)
	var wrong string
	switch {
	case r.URL == "":
		return nil
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
		strings.ContainsAny(r.URL, "?#"):
		wrong = "it must be an http or https URL without a query"
	case u.Scheme == "http" && len(r.Issuers) > 0 && !isLoopbackHost(u.Hostname()):
		wrong = "an issuer's tokens are for https URLs, or for loopback"
	default:
		return nil
	}
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "the public URL of the HTTP endpoint",
		Err:  errors.New(wrong),
		Next: "mend serve.public_url in drawbridge.toml",
	}
}

// The errors of RFC 6750 that a challenge names.
const (
	InvalidToken      = "invalid_token"
	InsufficientScope = "insufficient_scope"
)

// Challenge returns the WWW-Authenticate header for a refused request (RFC 6750, section 3; RFC 9728, section 5.1).
// code is the error code of RFC 6750, or "" if the request had no token. reason is a description for people; it is
// omitted if it contains characters that a header cannot contain.
func (r Resource) Challenge(code, reason string) string {
	var params []string
	add := func(name, value string) {
		if value != "" && !strings.ContainsFunc(value, func(r rune) bool {
			return r < ' ' || r > '~' ||
				r == '"' || r == '\\'
		}) {
			params = append(params, name+`="`+value+`"`)
		}
	}
	metadata := r.metadataURL()
	if metadata == "" {
		add("realm", "drawbridge")
	}
	add("error", code)
	add("error_description", reason)
	add("resource_metadata", metadata)
	if metadata != "" {
		add("scope", strings.Join(r.Scopes, " "))
	}
	return "Bearer " + strings.Join(params, ", ")
}

// MetadataPath is the path at which a resource's metadata are served. Clients append the path of the resource's URL to
// it.
const MetadataPath = "/.well-known/oauth-protected-resource"

// metadataURL returns the URL of the resource's metadata, which name its issuers. It returns "" if the resource has no
// issuers.
func (r Resource) metadataURL() string {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || len(r.Issuers) == 0 {
		return ""
	}
	return u.Scheme + "://" + u.Host + MetadataPath + strings.TrimSuffix(u.EscapedPath(), "/")
}

// MetadataHandler returns a handler that serves the metadata at MetadataPath. The path of the resource may be appended:
// the path of URL, or path, the path of the endpoint on this machine. The two differ if a proxy maps one to the other.
// If there are no issuers, the handler responds with 404.
func (r Resource) MetadataHandler(path string) http.Handler {
	if r.metadataURL() == "" {
		return http.NotFoundHandler()
	}
	answer := auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: r.URL, AuthorizationServers: r.Issuers, ScopesSupported: r.Scopes,
		BearerMethodsSupported: []string{"header"}, ResourceName: "Drawbridge",
	})
	paths := []string{"", "/", path}
	if u, err := url.Parse(r.URL); err == nil {
		paths = append(paths, u.Path)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, MetadataPath); !ok || !slices.Contains(paths, rest) {
			http.NotFound(w, r)
			return
		}
		answer.ServeHTTP(w, r)
	})
}

// IsToken reports whether a text has the form of a bearer token (RFC 6750, section 2.1) and at most maxToken bytes.
func IsToken(text string) bool {
	text = strings.TrimRight(text, "=")
	return text != "" && len(text) <= maxToken && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune("-._~+/", r)
	})
}
