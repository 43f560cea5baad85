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

// A Authenticator proves who calls over HTTP, by the bearer token of each request. It is asked often, and again and
// again about the same token: it remembers what is slow to find out, for a minute at most.
type Authenticator interface {
	// Authenticate says who a token proves: Kind, Principal, Scopes and Proof of the caller. No two people share a
	// principal, whoever vouches for them. Resource is the URL by which the token must be for this door, empty where
	// nobody set one. An error is a *drawbridge.Fault, whose Step the caller is told: AuthFailure for a token that
	// proves nobody, or nobody any more; PolicyBlocked for one of somebody who may do nothing here; any other where
	// that cannot be found out now.
	Authenticate(ctx context.Context, token, resource string) (drawbridge.Caller, error)
	// Required says whether callers must prove who they are. Where they need not, who comes by loopback is
	// Options.Caller; who comes from elsewhere must all the same. An error means that nobody gets in now.
	Required(ctx context.Context) (bool, error)
}

// A Resource is an HTTP door as OAuth clients know it (RFC 9728). Its zero value is one that no issuer gives tokens
// for.
type Resource = bearer.Resource

// IssuerOptions say which OAuth issuers' tokens count, see NewIssuers.
type IssuerOptions = bearer.Options

// An Introspection is where an issuer says whether a token counts.
type Introspection = bearer.Introspection

// Issuers prove callers by access tokens.
type Issuers = bearer.Verifier

// NewIssuers makes what proves callers by access tokens of OAuth issuers: half of a Check, whose other half says
// whether they are needed. It asks nobody before the first token comes. The error is a *drawbridge.Fault InvalidInput
// for options that nobody can mean.
func NewIssuers(o IssuerOptions) (*Issuers, error) { return bearer.New(o) }

// authRequired says whether callers on loopback must prove who they are.
func (s *Server) authRequired(ctx context.Context) (bool, error) {
	if len(s.o.Token) > 0 || s.o.Authenticator == nil {
		return len(s.o.Token) > 0, nil
	}
	return s.o.Authenticator.Required(ctx)
}

// authenticate finds out who sends a request, from its Authorization header and nothing else: not from the URL, where
// tokens end up in logs, nor from what a proxy may have written into other headers. It says false where it has
// answered itself.
func (d *httpHandler) authenticate(w http.ResponseWriter, r *http.Request) (*authenticatedRequest, bool) {
	nobody := &authenticatedRequest{caller: d.s.o.Caller}
	nobody.caller.Transport = drawbridge.HTTPTransport
	needed, err := d.s.authRequired(r.Context())
	switch {
	case err != nil:
		d.respondAuthUnavailable(w, err)
		return nil, false
	case !needed && !d.exposed:
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
	isBearer := strings.EqualFold(scheme, "Bearer")
	sum := sha256.Sum256([]byte(token))
	switch {
	case isBearer && len(d.s.o.Token) > 0 && subtle.ConstantTimeCompare(sum[:], d.s.token[:]) == 1:
		return nobody, true
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

// respondAuthFailure answers a request whose token does not prove who may come in.
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

// authLogInterval is how often it is logged that callers cannot be checked: they come again and again.
const authLogInterval = int64(time.Minute)

// respondAuthUnavailable answers a request of which nobody can say now who sends it: it gets in no more than a wrong
// one.
func (d *httpHandler) respondAuthUnavailable(w http.ResponseWriter, err error) {
	now, last := time.Now().UnixNano(), d.s.authLoggedAt.Load()
	if now-last >= authLogInterval && d.s.authLoggedAt.CompareAndSwap(last, now) {
		d.s.log.Warn("callers cannot be checked, and do not get in", "err", err)
	}
	w.Header().Set("Retry-After", "5")
	http.Error(w, "Service Unavailable: who calls cannot be checked now", http.StatusServiceUnavailable)
}

// challenge refuses a request, and says what would open the door: 403 for a token that proves somebody without a
// right, 401 for all others. That is the door as a whole. What of the deck a caller lacks the scope for is not there
// for them, which no challenge may give away: it is answered as any name that nobody has.
func (d *httpHandler) challenge(w http.ResponseWriter, code, reason string) {
	w.Header().Set("WWW-Authenticate", d.resource.Challenge(code, reason))
	if code == bearer.InsufficientScope {
		http.Error(w, "Forbidden: the token lacks the scope", http.StatusForbidden)
		return
	}
	http.Error(w, "Unauthorized: a bearer token is needed", http.StatusUnauthorized)
}

// Metadata gives what Serve answers at the well-known URIs of a protected resource (RFC 9728, section 3.1). Who mounts
// Handler mounts this at "/.well-known/oauth-protected-resource", and at that with a slash behind. It is not found
// where no issuer gives tokens.
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
