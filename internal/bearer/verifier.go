// Package bearer says who an access token of an OAuth issuer proves, and tells those who come without one where to get
// it.
//
// It promises that a token counts only if a configured issuer vouches for it: by a signature of an asymmetric key that
// the issuer's own metadata lead to, or by its answer to introspection (RFC 7662), and for this resource, now, and for
// bearers. What cannot be asked is not believed: then the error says so, and not that the token is wrong. What a
// token's header says about where keys are is not read. It promises that no error, and nothing it logs, holds a part
// of a token, of a secret, or of what an issuer answered; and that a flood of wrong tokens costs an issuer one look
// for new keys a minute.
//
// It starts no goroutine, and asks nobody anything before the first token comes.
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

// Options say whose tokens count, and what they are for. One issuer is needed; the zero value of all else works.
type Options struct {
	// Issuers are the issuers as their metadata and tokens name them, byte for byte: https, or http on loopback.
	Issuers []string
	// Audience is what tokens must be for; empty means the resource that a request came to.
	Audience string
	// Introspection is where the only issuer says whether a token counts; its zero value is nowhere. Then tokens must
	// be JWTs. Otherwise every token is asked after, JWTs too: so a revoked one is noticed.
	Introspection Introspection
	// ClockSkew is how far the clocks of issuers may be off; 0 is half a minute.
	ClockSkew time.Duration
	// Scopes say what rights each of the issuer's scopes gives; see [Verifier.AcceptedScopes] for none.
	Scopes map[string][]drawbridge.Scope
	// AllowPrograms lets tokens count that have no subject, only a client_id: a program got them for itself.
	AllowPrograms bool
	// Transport carries what is asked of issuers; nil is one of its own.
	Transport http.RoundTripper
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Introspection is an endpoint of RFC 7662, and how we prove ourselves to it (HTTP Basic).
type Introspection struct {
	URL, ClientID string
	Secret        drawbridge.Secret
}

const (
	// maxToken is the most bytes of a token.
	maxToken = 16 << 10
	// defaultClockSkew is what clocks may be off where nobody says otherwise, and maxClockSkew what they may at most.
	defaultClockSkew = 30 * time.Second
	maxClockSkew     = 5 * time.Minute
	// acceptedTTL is how long a token is believed without another look, and rejectedTTL how long it is not where the
	// issuer said that it is not active.
	acceptedTTL = time.Minute
	rejectedTTL = 5 * time.Second
	// maxCachedTokens is how many tokens are remembered.
	maxCachedTokens = 8192
)

// A Verifier says who tokens prove. Its methods may be called from several goroutines.
type Verifier struct {
	o              Options
	client         *http.Client
	issuers        map[string]*issuer
	introspections chan struct{}

	// cache holds the results of recent verifications by the hash of the token. It locks itself; when it is full, the
	// token used least recently makes room.
	cache *lru.Cache[[sha256.Size]byte, cachedToken]
}

// A cachedToken is what a token said, and until when that is believed; err is why it proves nobody.
type cachedToken struct {
	claims claims
	err    error
	until  time.Time
}

// New makes a verifier. The error is a *drawbridge.Fault InvalidInput for options that nobody can mean.
func New(o Options) (*Verifier, error) {
	if o.ClockSkew == 0 {
		o.ClockSkew = defaultClockSkew
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := o.check(); err != nil {
		return nil, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "check access tokens", Err: err,
			Next: "mend [serve] in drawbridge.toml",
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
		return errors.New("there is no issuer")
	case o.ClockSkew < 0 || o.ClockSkew > maxClockSkew:
		return fmt.Errorf("the clock skew is more than %v", maxClockSkew)
	case in.URL == "" && (in.ClientID != "" || !in.Secret.IsZero()):
		return errors.New("there is a client for introspection, and no URL")
	case in.URL != "" && (in.ClientID == "" || in.Secret.IsZero()):
		return errors.New("introspection needs a client id and a secret")
	case in.URL != "" && len(o.Issuers) > 1:
		return errors.New("introspection is for one issuer, and there are several")
	}
	for _, name := range o.Issuers {
		if u, err := parseURL(name); err != nil || u.RawQuery != "" || strings.Contains(name, "@") {
			return fmt.Errorf("the issuer %q is no https URL without a query and an @", name)
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
			return fmt.Errorf("the scope %q gives what is no scope", word)
		}
	}
	return nil
}

// isScope says whether a text is a scope as RFC 6749 has them.
func isScope(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~' ||
			r == '"' || r == '\\'
	})
}

// anyServerScope is the issuer's scope that gives all mounted servers, where no table says what scopes give.
const anyServerScope = "mcp"

// AcceptedScopes are the issuer's scopes that open this door, in order: those of the table. Without a table a token
// with the scope "mcp" may use every server, and one with "mcp:NAME" the server NAME; those with a "*" give nothing,
// since an issuer that hands out whatever is asked for must not be talked into all rights.
func (v *Verifier) AcceptedScopes() []string {
	if len(v.o.Scopes) == 0 {
		return []string{anyServerScope}
	}
	return slices.Sorted(maps.Keys(v.o.Scopes))
}

// grantedScopes are what the issuer's scopes give.
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
	case named && drawbridge.ServerID(server).Validate() == nil: // so it has no "*"
		return []drawbridge.Scope{drawbridge.ServerScope(drawbridge.ServerID(server))}
	}
	return nil
}

// Authenticate says who a token proves that was sent to a resource: a principal no two issuers share, with the rights
// of its scopes, and the token as its proof. The error is a *drawbridge.Fault: AuthFailure for a token that proves
// nobody, PolicyBlocked for one of somebody without any right here, Transient where the issuer could not be asked.
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
			Step: "the token has none of the scopes that count here",
		}
	}
	return drawbridge.Caller{
		Kind: drawbridge.External, Principal: principal, Scopes: scopes, AccessToken: drawbridge.NewSecret(token),
	}, nil
}

// verifyToken gives what a token says, once its issuer has vouched for it.
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

// verifyUncached asks a token's issuer.
func (v *Verifier) verifyUncached(ctx context.Context, token string) (claims, error) {
	introspects := v.o.Introspection.URL != ""
	var c claims
	if jwt, ok := readJWT(token); ok {
		var err error
		if c, err = v.verifySignature(ctx, jwt); err != nil || !introspects {
			return c, err
		}
	} else if !introspects {
		return claims{}, authFailure("the token is no JWT")
	}
	return v.verifyByIntrospection(ctx, token, c)
}

// authFailure is the fault of a token that proves nobody. The reason is shown to the caller.
func authFailure(reason string) *drawbridge.Fault {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.AuthFailure, Step: reason}
}

// issuerUnavailable is the fault of a token that could not be looked at.
func issuerUnavailable(err error) *drawbridge.Fault {
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.Transient, Step: "the issuer of the token cannot be asked", Err: err,
	}
}

// parseURL reads a URL that we may ask: https, or http on loopback, without a user and a fragment.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || strings.HasSuffix(text, "#") {
		return nil, errors.New("it is no https URL")
	}
	if u.Scheme == "https" || u.Scheme == "http" && isLoopbackHost(u.Hostname()) {
		return u, nil
	}
	return nil, errors.New("it is neither https nor on loopback")
}
