package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/server/bearer"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// A Check proves who calls over HTTP, by the bearer token of each request. It is asked often, and again and again about the
// same token: it remembers what is slow to find out, for a minute at most.
type Check interface {
	// Authenticate says who a token proves: Kind, Principal, Scopes and Proof of the caller. No two people share a principal,
	// whoever vouches for them. Resource is the URL by which the token must be for this door, empty where nobody set one.
	// An error is a *drawbridge.Fault, whose Step the caller is told: AuthFailure for a token that proves nobody, or nobody
	// any more; PolicyBlocked for one of somebody who may do nothing here; any other where that cannot be found out now.
	Authenticate(ctx context.Context, token, resource string) (drawbridge.Caller, error)
	// Needed says whether callers must prove who they are. Where they need not, who comes by loopback is Options.Caller; who
	// comes from elsewhere must all the same. An error means that nobody gets in now.
	Needed(ctx context.Context) (bool, error)
}

// A Resource is an HTTP door as OAuth clients know it (RFC 9728). Its zero value is one that no issuer gives tokens for.
type Resource struct {
	// URL is the door's own, as clients reach it and tokens name it. Where it is empty Serve takes the listener's, on
	// loopback only.
	URL string
	// Issuers are those whose tokens count. Scopes are what clients are told to ask them for.
	Issuers, Scopes []string
}

// IssuerOptions say which OAuth issuers' tokens count, see NewIssuers.
type IssuerOptions = bearer.Options

// An Introspection is where an issuer says whether a token counts.
type Introspection = bearer.Introspection

// Issuers prove callers by access tokens.
type Issuers = bearer.Verifier

// NewIssuers makes what proves callers by access tokens of OAuth issuers: half of a Check, whose other half says whether they
// are needed. It asks nobody before the first token comes. The error is a *drawbridge.Fault InvalidInput for options that
// nobody can mean.
func NewIssuers(o IssuerOptions) (*Issuers, error) { return bearer.New(o) }

// proofNeeded says whether callers on loopback must prove who they are.
func (s *Server) proofNeeded(ctx context.Context) (bool, error) {
	if len(s.o.Token) > 0 || s.o.Check == nil {
		return len(s.o.Token) > 0, nil
	}
	return s.o.Check.Needed(ctx)
}

// prove finds out who sends a request, from its Authorization header and nothing else: not from the URL, where tokens end up
// in logs, nor from what a proxy may have written into other headers. It says false where it has answered itself.
func (d *door) prove(w http.ResponseWriter, r *http.Request) (*visit, bool) {
	nobody := &visit{caller: d.s.o.Caller}
	needed, err := d.s.proofNeeded(r.Context())
	switch {
	case err != nil:
		d.unchecked(w, err)
		return nil, false
	case !needed && !d.beyond:
		return nobody, true
	}
	headers := r.Header["Authorization"]
	switch {
	case len(headers) == 0:
		d.challenge(w, "", "")
		return nil, false
	case len(headers) > 1:
		http.Error(w, "Bad Request: there are several Authorization headers", http.StatusBadRequest)
		return nil, false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	token = strings.TrimSpace(token)
	bearer := strings.EqualFold(scheme, "Bearer")
	sum := sha256.Sum256([]byte(token))
	switch {
	case bearer && len(d.s.o.Token) > 0 && subtle.ConstantTimeCompare(sum[:], d.s.token[:]) == 1:
		return nobody, true
	case !bearer || d.s.o.Check == nil || !isToken(token):
		d.challenge(w, "invalid_token", "")
		return nil, false
	}
	caller, err := d.s.o.Check.Authenticate(r.Context(), token, d.resource.URL)
	if err != nil {
		d.unproved(w, err)
		return nil, false
	}
	return &visit{caller: caller, token: drawbridge.NewSecret(token), resource: d.resource.URL, good: time.Now()}, true
}

// isToken says whether a text has the form of a bearer token (RFC 6750, section 2.1).
func isToken(text string) bool {
	text = strings.TrimRight(text, "=")
	return text != "" && len(text) <= bearer.MaxToken && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~+/", r)
	})
}

// unproved answers a request whose token does not prove who may come in.
func (d *door) unproved(w http.ResponseWriter, err error) {
	switch f := drawbridge.AsFault(err); f.Code {
	case drawbridge.AuthFailure:
		d.challenge(w, "invalid_token", f.Step)
	case drawbridge.PolicyBlocked:
		d.challenge(w, "insufficient_scope", f.Step)
	default:
		d.unchecked(w, err)
	}
}

// complainTime is how often it is logged that callers cannot be checked: they come again and again.
const complainTime = int64(time.Minute)

// unchecked answers a request of which nobody can say now who sends it: it gets in no more than a wrong one.
func (d *door) unchecked(w http.ResponseWriter, err error) {
	now, last := time.Now().UnixNano(), d.s.complained.Load()
	if now-last >= complainTime && d.s.complained.CompareAndSwap(last, now) {
		d.s.log.Warn("callers cannot be checked, and do not get in", "err", err)
	}
	w.Header().Set("Retry-After", "5")
	http.Error(w, "Service Unavailable: who calls cannot be checked now", http.StatusServiceUnavailable)
}

// challenge refuses a request, and says what would open the door (RFC 6750, section 3; RFC 9728, section 5.1): 403 for a token
// that proves somebody without a right, 401 for all others. That is the door as a whole. What of the deck a caller lacks the
// scope for is not there for them, which no challenge may give away: it is answered as any name that nobody has.
func (d *door) challenge(w http.ResponseWriter, code, reason string) {
	var params []string
	add := func(name, value string) {
		if value != "" && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
			params = append(params, name+`="`+value+`"`)
		}
	}
	metadata := wellKnownURL(d.resource)
	if metadata == "" {
		add("realm", "drawbridge")
	}
	add("error", code)
	add("error_description", reason)
	add("resource_metadata", metadata)
	if metadata != "" {
		add("scope", strings.Join(d.resource.Scopes, " "))
	}
	w.Header().Set("WWW-Authenticate", "Bearer "+strings.Join(params, ", "))
	if code == "insufficient_scope" {
		http.Error(w, "Forbidden: the token lacks the scope", http.StatusForbidden)
		return
	}
	http.Error(w, "Unauthorized: a bearer token is needed", http.StatusUnauthorized)
}

// check refuses a URL that is none of a door, and one where tokens would be sent in clear.
func (r Resource) check() error {
	u, err := url.Parse(r.URL)
	var wrong string
	switch {
	case r.URL == "":
		return nil
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.ContainsAny(r.URL, "?#"):
		wrong = "it is no http URL without a query"
	case u.Scheme == "http" && len(r.Issuers) > 0 && !bearer.IsLoopback(u.Hostname()):
		wrong = "an issuer's tokens are for https URLs, or for loopback"
	default:
		return nil
	}
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "the public URL of the HTTP door", Err: errors.New(wrong),
		Next: "mend serve.public_url in drawbridge.toml",
	}
}

// wellKnown is where a resource's metadata are: behind its origin, and before its path.
const wellKnown = "/.well-known/oauth-protected-resource"

// wellKnownURL is where clients find who gives tokens for a resource; empty where nobody does.
func wellKnownURL(resource Resource) string {
	u, err := url.Parse(resource.URL)
	if err != nil || u.Host == "" || len(resource.Issuers) == 0 {
		return ""
	}
	return u.Scheme + "://" + u.Host + wellKnown + strings.TrimSuffix(u.EscapedPath(), "/")
}

// Metadata gives what Serve answers at the two well-known URIs of a protected resource: that of the whole host, and that of
// the door's path (RFC 9728, section 3.1). Who mounts Handler mounts this at "/.well-known/oauth-protected-resource", and at
// that with a slash behind. It is not found where no issuer gives tokens.
func (s *Server) Metadata() http.Handler { return s.newDoor(s.life.Done(), s.life, nil).metadata() }

func (d *door) metadata() http.Handler {
	if wellKnownURL(d.resource) == "" {
		return http.NotFoundHandler()
	}
	answer := auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: d.resource.URL, AuthorizationServers: d.resource.Issuers, ScopesSupported: d.resource.Scopes,
		BearerMethodsSupported: []string{"header"}, ResourceName: "Drawbridge",
	})
	paths := []string{"", "/", Path}
	if u, err := url.Parse(d.resource.URL); err == nil {
		paths = append(paths, u.Path)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, wellKnown)
		switch {
		case !d.hostAllowed(r):
			http.Error(w, "Forbidden: the Host header is not a name of this machine", http.StatusForbidden)
		case !ok || !slices.Contains(paths, rest):
			http.NotFound(w, r)
		default:
			answer.ServeHTTP(w, r)
		}
	})
}
