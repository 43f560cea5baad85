package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/bearer"
)

// An Authenticator identifies HTTP callers by the bearer token of each request. It is called often for the same token,
// so it caches slow verifications, for a minute at most.
type Authenticator interface {
	// Authenticate returns the Kind, Principal, Scopes and proof of the caller that a token proves. Principals are
	// unique among all issuers. resource is the URL that the token must be for; empty if none is configured. The error
	// is a *drawbridge.Fault whose Step the caller is shown: AuthFailure for an invalid or revoked token, PolicyBlocked
	// for a caller without any right here, any other code if verification is not possible now.
	Authenticate(ctx context.Context, token, resource string) (drawbridge.Caller, error)
	// Required reports whether callers on loopback must authenticate. If not, they are Options.Caller; callers from
	// elsewhere must always authenticate. An error admits no caller.
	Required(ctx context.Context) (bool, error)
}

// A Resource is an HTTP endpoint as OAuth clients know it (RFC 9728). The zero value accepts tokens of no issuer.
type Resource = bearer.Resource

// IssuerOptions configure the OAuth issuers whose tokens are accepted, see NewIssuers.
type IssuerOptions = bearer.Options

// An Introspection is the endpoint at which an issuer verifies tokens.
type Introspection = bearer.Introspection

// Issuers authenticates callers by access tokens of OAuth issuers.
type Issuers = bearer.Verifier

// NewIssuers returns a verifier of access tokens of OAuth issuers. It is half of an Authenticator, whose other half
// decides whether tokens are required. It sends nothing before the first token. The error is a *drawbridge.Fault
// InvalidInput for invalid options.
func NewIssuers(o IssuerOptions) (*Issuers, error) { return bearer.New(o) }

// authRequired reports whether callers on loopback must authenticate.
func (s *Server) authRequired(ctx context.Context) (bool, error) {
	if len(s.o.Token) > 0 || s.o.Authenticator == nil {
		return len(s.o.Token) > 0, nil
	}
	return s.o.Authenticator.Required(ctx)
}

// authenticate identifies the sender of a request by its Authorization header only: URLs end up in logs, and a proxy
// may set other headers. It reports false if it has answered the request itself.
func (d *httpHandler) authenticate(w http.ResponseWriter, r *http.Request) (*authenticatedRequest, bool) {
	anonymous := &authenticatedRequest{caller: d.s.o.Caller}
	anonymous.caller.Transport = drawbridge.HTTPTransport
	needed, err := d.s.authRequired(r.Context())
	switch {
	case err != nil:
		d.respondAuthUnavailable(w, err)
		return nil, false
	case !needed && !d.exposed:
		return anonymous, true
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
	isBearer := strings.EqualFold(scheme, "Bearer")
	sum := sha256.Sum256([]byte(token))
	switch {
	case isBearer && len(d.s.o.Token) > 0 && subtle.ConstantTimeCompare(sum[:], d.s.token[:]) == 1:
		return anonymous, true
	case !isBearer || d.s.o.Authenticator == nil || !bearer.IsToken(token):
		d.challenge(w, bearer.InvalidToken, "")
		return nil, false
	}
	caller, err := d.s.o.Authenticator.Authenticate(r.Context(), token, d.resource.URL)
	if err != nil {
		d.respondAuthFailure(w, err)
		return nil, false
	}
	caller.Transport = drawbridge.HTTPTransport
	return &authenticatedRequest{caller: caller, token: drawbridge.NewSecret(token), resource: d.resource.URL,
		verifiedAt: time.Now()}, true
}

// respondAuthFailure responds to a request whose access token is missing or invalid.
func (d *httpHandler) respondAuthFailure(w http.ResponseWriter, err error) {
	switch f := drawbridge.AsFault(err); f.Code {
	case drawbridge.AuthFailure:
		d.challenge(w, bearer.InvalidToken, f.Step)
	case drawbridge.PolicyBlocked:
		d.challenge(w, bearer.InsufficientScope, f.Step)
	default:
		d.respondAuthUnavailable(w, err)
	}
}

// authLogInterval is the shortest time between two log lines about callers that cannot be verified, because clients
// retry often.
const authLogInterval = int64(time.Minute)

// respondAuthUnavailable refuses a request whose sender cannot be verified now.
func (d *httpHandler) respondAuthUnavailable(w http.ResponseWriter, err error) {
	now, last := time.Now().UnixNano(), d.s.authLoggedAt.Load()
	if now-last >= authLogInterval && d.s.authLoggedAt.CompareAndSwap(last, now) {
		d.s.log.Warn("callers cannot be checked, and do not get in", "err", err)
	}
	w.Header().Set("Retry-After", "5")
	http.Error(w, "Service Unavailable: the caller cannot be verified now, try again later",
		http.StatusServiceUnavailable)
}

// challenge refuses a request and names the credentials that would admit it: 403 for a valid token without rights, 401
// for all others. It is about the endpoint as a whole. A tool that the caller lacks a scope for is answered like a name
// that does not exist, so that no challenge reveals it.
func (d *httpHandler) challenge(w http.ResponseWriter, code, reason string) {
	w.Header().Set("WWW-Authenticate", d.resource.Challenge(code, reason))
	if code == bearer.InsufficientScope {
		http.Error(w, "Forbidden: the token lacks the scope", http.StatusForbidden)
		return
	}
	http.Error(w, "Unauthorized: a bearer token is required", http.StatusUnauthorized)
}

// Metadata returns the handler for the well-known URIs of a protected resource (RFC 9728, section 3.1). A program that
// mounts Handler mounts this at "/.well-known/oauth-protected-resource", with and without a trailing slash. Without
// issuers it answers 404.
func (s *Server) Metadata() http.Handler {
	return s.newHTTPHandler(s.life.Done(), s.life, nil).metadata()
}

func (d *httpHandler) metadata() http.Handler {
	answer := d.resource.MetadataHandler(Path)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.hostAllowed(r) {
			http.Error(w, foreignHostText, http.StatusForbidden)
			return
		}
		answer.ServeHTTP(w, r)
	})
}
