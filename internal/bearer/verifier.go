// Package bearer verifies access tokens of OAuth issuers, and tells clients without a token where to get one.
//
// A token is accepted only if a configured issuer confirms it: by a signature with an asymmetric key from the issuer's
// own metadata, or by token introspection (RFC 7662). The token must also be a bearer token, issued for this resource,
// and valid now. If the issuer cannot be reached, the error is Transient, because the token may be valid. Key locations
// in a token's header are ignored.
//
// Errors and logs never contain a part of a token, of a secret or of an issuer's response. Invalid tokens make
// Drawbridge fetch an issuer's keys at most once a minute, or every five seconds while fetches fail. The package starts
// no goroutine and sends no request before the first token.
package bearer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Options configure a Verifier. One issuer is required; the zero value of every other field works.
type Options struct {
	// Issuers are the issuers, exactly as their metadata and tokens name them: https URLs, or http URLs on loopback.
	Issuers []string
	// Audience is the audience that tokens must have; empty means the resource of the request.
	Audience string
	// Introspection is the endpoint at which the issuer verifies tokens. It can be set only if there is exactly one
	// issuer. If it is not set, tokens must be JWTs. If it is set, JWTs are introspected too, so that Drawbridge
	// detects revoked tokens.
	Introspection Introspection
	// ClockSkew is how far the clocks of issuers may be off; 0 is half a minute.
	ClockSkew time.Duration
	// Scopes map each scope of the issuer to scopes of Drawbridge. If Scopes is empty, see [Verifier.AcceptedScopes].
	Scopes map[string][]drawbridge.Scope
	// AllowPrograms accepts tokens with a client_id and no subject, which a program obtained for itself.
	AllowPrograms bool
	// Transport sends the requests to issuers; nil means a default transport.
	Transport http.RoundTripper
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// ExpiryTime returns the time that is compared with the expiry of a token. now is the result of Now. If the clock
	// was set back, the returned time is later than now, so that an expired token stays expired. If ExpiryTime is nil,
	// now itself is compared.
	ExpiryTime func(now time.Time) time.Time
}

// Introspection is an endpoint of RFC 7662, with Drawbridge's client credentials there (HTTP Basic).
type Introspection struct {
	URL, ClientID string
	Secret        drawbridge.Secret
}

const (
	// maxToken is the maximum size of a token in bytes.
	maxToken = 16 << 10
	// defaultClockSkew is the default of Options.ClockSkew, maxClockSkew is its maximum.
	defaultClockSkew = 30 * time.Second
	maxClockSkew     = 5 * time.Minute
	// acceptedTTL is how long a successful verification is cached. rejectedTTL is how long the refusal of a token is
	// cached that the issuer reported as not active. Other refusals are not cached.
	acceptedTTL = time.Minute
	rejectedTTL = 5 * time.Second
	// maxCachedTokens is the maximum number of cached verifications.
	maxCachedTokens = 8192
)

// A Verifier verifies access tokens. Its methods may be called from several goroutines.
type Verifier struct {
	o              Options
	client         *http.Client
	issuers        map[string]*issuer
	introspections chan struct{}

	// cache contains the results of recent verifications, with the hash of the token as key. It has its own lock. When
	// it is full, the least recently used entry is removed.
	cache *lru.Cache[[sha256.Size]byte, cachedToken]
}

// A cachedToken is the result of a verification, which is used until the time until. claims are the verified claims. If
// the token was refused, err is the reason.
type cachedToken struct {
	claims claims
	err    error
	until  time.Time
}

// New returns a verifier. The error is a *drawbridge.Fault InvalidInput for invalid options.
func New(o Options) (*Verifier, error) {
	if o.ClockSkew == 0 {
		o.ClockSkew = defaultClockSkew
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ExpiryTime == nil {
		o.ExpiryTime = func(now time.Time) time.Time { return now }
	}
	if err := o.check(); err != nil {
		return nil, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "check access tokens", Err: err,
			Next: "correct [serve] in drawbridge.toml",
		}
	}
	cache, err := lru.New[[sha256.Size]byte, cachedToken](maxCachedTokens)
	if err != nil {
		return nil, err // the size is a positive constant
	}
	v := &Verifier{
		o: o, client: newHTTPClient(o.Transport), issuers: map[string]*issuer{}, cache: cache,
		introspections: make(chan struct{}, maxIntrospections),
	}
	for _, name := range o.Issuers {
		v.issuers[name] = newIssuer(name, v.client, o.Now)
	}
	return v, nil
}

func (o Options) check() error {
	in := o.Introspection
	switch {
	case len(o.Issuers) == 0:
		return errors.New("name at least one issuer")
	case o.ClockSkew < 0 || o.ClockSkew > maxClockSkew:
		return fmt.Errorf("the clock skew must be between 0 and %v", maxClockSkew)
	case in.URL == "" && (in.ClientID != "" || !in.Secret.IsZero()):
		return errors.New("introspection has a client and no URL")
	case in.URL != "" && (in.ClientID == "" || in.Secret.IsZero()):
		return errors.New("introspection needs a client id and a secret")
	case in.URL != "" && len(o.Issuers) > 1:
		return errors.New("introspection works with one issuer only, and there are several")
	}
	for _, name := range o.Issuers {
		if u, err := parseURL(name); err != nil || u.RawQuery != "" || strings.Contains(name, "@") {
			return fmt.Errorf("the issuer %q must be an https URL without a query or an @", name)
		}
	}
	if in.URL != "" {
		if _, err := parseURL(in.URL); err != nil {
			return fmt.Errorf("introspection: %w", err)
		}
	}
	for word, scopes := range o.Scopes {
		if len(scopes) == 0 || !isScope(word) || slices.ContainsFunc(scopes,
			func(s drawbridge.Scope) bool { return !isScope(string(s)) }) {
			return fmt.Errorf("the scope %q maps to an invalid scope", word)
		}
	}
	return nil
}

// isScope reports whether a text is a scope of RFC 6749.
func isScope(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~' ||
			r == '"' || r == '\\'
	})
}

// anyServerScope is the issuer's scope that grants access to all MCP servers if Options.Scopes is empty.
const anyServerScope = "mcp"

// AcceptedScopes returns the issuer's scopes that grant access here, sorted: the keys of Options.Scopes. If
// Options.Scopes is empty, it returns "mcp", which grants all servers; "mcp:NAME" then grants the server NAME. "mcp:*"
// grants nothing, because some issuers grant any scope that a client requests.
func (v *Verifier) AcceptedScopes() []string {
	if len(v.o.Scopes) == 0 {
		return []string{anyServerScope}
	}
	return slices.Sorted(maps.Keys(v.o.Scopes))
}

// grantedScopes returns the scopes of Drawbridge that the issuer's scopes grant.
func (v *Verifier) grantedScopes(words []string) (scopes []drawbridge.Scope) {
	for _, word := range words {
		for _, scope := range v.scopesFor(word) {
			if !slices.Contains(scopes, scope) {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes
}

func (v *Verifier) scopesFor(word string) []drawbridge.Scope {
	server, named := strings.CutPrefix(word, anyServerScope+":")
	switch {
	case len(v.o.Scopes) > 0:
		return v.o.Scopes[word]
	case word == anyServerScope:
		return []drawbridge.Scope{anyServerScope + ":*"}
	case named && drawbridge.ServerID(server).Validate() == nil: // a valid name has no "*"
		return []drawbridge.Scope{drawbridge.ServerScope(drawbridge.ServerID(server))}
	}
	return nil
}

// Authenticate verifies a token that was sent to a resource and returns its caller: a principal that is unique among
// issuers, the granted scopes, and the token itself. The error is a *drawbridge.Fault: AuthFailure for an invalid
// token, PolicyBlocked for a valid token whose scopes grant no access here, Transient if the issuer cannot be reached.
func (v *Verifier) Authenticate(ctx context.Context, token, resource string) (drawbridge.Caller, error) {
	c, err := v.verifyToken(ctx, token)
	if err == nil {
		err = v.checkClaims(c, resource)
	}
	if err != nil {
		return drawbridge.Caller{}, err
	}
	principal, err := v.principal(c)
	if err != nil {
		return drawbridge.Caller{}, err
	}
	scopes := v.grantedScopes(c.scopes)
	if len(scopes) == 0 {
		return drawbridge.Caller{}, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.PolicyBlocked,
			Step: "the token has none of the scopes accepted here",
		}
	}
	return drawbridge.Caller{
		Kind: drawbridge.External, Principal: principal, Scopes: scopes, AccessToken: drawbridge.NewSecret(token),
	}, nil
}

// verifyToken returns the verified claims of a token, from the cache if it contains the token.
func (v *Verifier) verifyToken(ctx context.Context, token string) (claims, error) {
	if token == "" || len(token) > maxToken {
		return claims{}, authFailure("the token is too long, or empty")
	}
	hash := sha256.Sum256([]byte(token))
	now := v.o.Now()
	if k, ok := v.cached(hash, now); ok {
		return k.claims, k.err
	}
	c, err := v.verifyUncached(ctx, token)
	switch {
	case err == nil:
		until := now.Add(acceptedTTL)
		if !c.expires.IsZero() && c.expires.Before(until) {
			until = c.expires
		}
		v.cache.Add(hash, cachedToken{claims: c, until: until})
	case errors.Is(err, errInactive):
		v.cache.Add(hash, cachedToken{err: err, until: now.Add(rejectedTTL)})
	}
	return c, err
}

func (v *Verifier) cached(hash [sha256.Size]byte, now time.Time) (cachedToken, bool) {
	k, ok := v.cache.Get(hash)
	return k, ok && now.Before(k.until)
}

// verifyUncached verifies a token without the cache: by its signature, by introspection, or by both.
func (v *Verifier) verifyUncached(ctx context.Context, token string) (claims, error) {
	introspects := v.o.Introspection.URL != ""
	var c claims
	if jwt, ok := readJWT(token); ok {
		var err error
		if c, err = v.verifySignature(ctx, jwt); err != nil || !introspects {
			return c, err
		}
	} else if !introspects {
		return claims{}, authFailure("the token is not a JWT")
	}
	return v.verifyByIntrospection(ctx, token, c)
}

// authFailure returns the fault for an invalid token. The reason is shown to the caller.
func authFailure(reason string) *drawbridge.Fault {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.AuthFailure, Step: reason}
}

// issuerUnavailable returns the fault for a token whose issuer cannot be reached.
func issuerUnavailable(err error) *drawbridge.Fault {
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.Transient, Step: "the issuer of the token cannot be reached",
		Err: err,
	}
}

// parseURL parses the URL of an issuer: https, or http on loopback, without user and fragment.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || strings.HasSuffix(text, "#") {
		return nil, errors.New("it must be an https URL")
	}
	if u.Scheme == "https" || u.Scheme == "http" && isLoopbackHost(u.Hostname()) {
		return u, nil
	}
	return nil, errors.New("it must be https, or http on loopback")
}
