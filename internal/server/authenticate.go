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

// An Authenticator identifies HTTP callers by the bearer token of each request. Authenticate is called often with the
// same token. So implementations should cache the result of a slow verification, for at most one minute.
type Authenticator interface {
	// Authenticate returns a Caller with the Kind, Principal, Scopes and AccessToken that belong to a token. Callers of
	// different issuers never have the same principal. resource is the URL that the token must be issued for; empty if
	// none is configured. The error is a *drawbridge.Fault whose Step is shown to the caller. Its code is AuthFailure
	// for an invalid or revoked token, and PolicyBlocked for a caller without any rights here. Any other code means
	// that the token cannot be verified now.
	Authenticate(ctx context.Context, token, resource string) (drawbridge.Caller, error)
	// Required reports whether callers on loopback must authenticate. If it returns false, a request over loopback is
	// handled as a request of Options.Caller. Callers on other machines must always authenticate. If Required returns
	// an error, no caller is admitted.
	Required(ctx context.Context) (bool, error)
}

// A Resource describes the HTTP endpoint to OAuth clients (RFC 9728). With the zero value, the tokens of no issuer are
// accepted.
type Resource = bearer.Resource

// IssuerOptions configure the OAuth issuers whose tokens are accepted, see NewIssuers.
type IssuerOptions = bearer.Options

// An Introspection configures the endpoint of an issuer that verifies tokens.
type Introspection = bearer.Introspection

// Issuers authenticates callers by the access tokens of OAuth issuers.
type Issuers = bearer.Verifier

// NewIssuers returns a verifier of access tokens of OAuth issuers. It has the method Authenticate of Authenticator, but
// not Required. It sends no request before it verifies the first token. The error is a *drawbridge.Fault with the code
// InvalidInput for invalid options.
func NewIssuers(o IssuerOptions) (*Issuers, error) { return bearer.New(o) }

// authRequired reports whether callers on loopback must authenticate.
func (s *Server) authRequired(ctx context.Context) (bool, error) {
	if len(s.o.Token) > 0 || s.o.Authenticator == nil {
		return len(s.o.Token) > 0, nil
	}
	return s.o.Authenticator.Required(ctx)
}

// authenticate identifies the sender of a request by the Authorization header. It ignores the URL, because URLs are
// often logged, and all other headers, because a proxy may set them. If it returns false, it has already sent an error
// response.
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

// respondAuthFailure responds to a request whose token the Authenticator did not accept. err is the error that the
// Authenticator returned.
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

// authLogInterval is the minimum time between two log messages about callers that cannot be verified. A limit is
// needed, because clients retry often.
const authLogInterval = int64(time.Minute)

// respondAuthUnavailable responds with status 503 to a request whose sender cannot be verified now.
func (d *httpHandler) respondAuthUnavailable(w http.ResponseWriter, err error) {
	now, last := time.Now().UnixNano(), d.s.authLoggedAt.Load()
	if now-last >= authLogInterval && d.s.authLoggedAt.CompareAndSwap(last, now) {
		d.s.log.Warn("callers cannot be checked, and do not get in", "err", err)
	}
	w.Header().Set("Retry-After", "5")
	http.Error(w, "Service Unavailable: the caller cannot be verified now, try again later",
		http.StatusServiceUnavailable)
}

// challenge responds to a request with an error status and the WWW-Authenticate header. The status is 403 for a valid
// token without sufficient rights, else 401. challenge is used only for the endpoint as a whole. If a caller lacks the
// scope for one tool, the response is the same as for an unknown tool: it must not reveal the tool.
func (d *httpHandler) challenge(w http.ResponseWriter, code, reason string) {
	w.Header().Set("WWW-Authenticate", d.resource.Challenge(code, reason))
	if code == bearer.InsufficientScope {
		http.Error(w, "Forbidden: the token lacks the scope", http.StatusForbidden)
		return
	}
	http.Error(w, "Unauthorized: a bearer token is required", http.StatusUnauthorized)
}

// Metadata returns the handler for the well-known URIs of a protected resource (RFC 9728, section 3.1). A program that
// mounts Handler must mount this handler at "/.well-known/oauth-protected-resource", with and without a trailing slash.
// Without issuers the handler responds with 404.
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
