package bearer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/go-jose/go-jose/v4"
)

const (
	// keysFreshTime is how long fetched keys are used before they are fetched again. keysMaxAge is how long they are
	// used if all later fetches fail.
	keysFreshTime = 10 * time.Minute
	keysMaxAge    = time.Hour
	// refreshInterval is the minimum time between a successful fetch and the next fetch. retryInterval is the minimum
	// time between a failed fetch and the next fetch.
	refreshInterval = time.Minute
	retryInterval   = 5 * time.Second
	// maxKeys is the maximum number of keys of an issuer. maxCandidateKeys is the maximum number of keys that are tried
	// for one token. Several keys match if the token does not name its key.
	maxKeys          = 64
	maxCandidateKeys = 8
)

// An issuer is an issuer of tokens, with the keys of the last successful fetch.
type issuer struct {
	name string
	web  *http.Client
	now  func() time.Time
	keys atomic.Pointer[keySet]
	// refreshing lets only one goroutine at a time fetch keys. refreshedAt is the time at which the last fetch ended.
	// err is the error of that fetch.
	refreshing  chan struct{}
	refreshedAt time.Time
	err         error
}

// A keySet contains the fetched keys and the time of the fetch.
type keySet struct {
	keys  []jose.JSONWebKey
	found time.Time
}

func newIssuer(name string, web *http.Client, now func() time.Time) *issuer {
	return &issuer{name: name, web: web, now: now, refreshing: make(chan struct{}, 1)}
}

// keysFor returns the issuer's keys for the algorithm alg that have the given ID, or all keys for alg if id is empty.
// It first fetches the keys if they are too old, or if no key matches. The error is a *drawbridge.Fault: AuthFailure if
// there is no such key, Transient if the keys cannot be fetched.
func (i *issuer) keysFor(ctx context.Context, id string, alg jose.SignatureAlgorithm) ([]jose.JSONWebKey, error) {
	keys, age := i.find(id, alg)
	if len(keys) > 0 && age < keysFreshTime {
		return keys, nil
	}
	usable := len(keys) > 0 && age < keysMaxAge
	err := i.refreshKeys(ctx, !usable)
	if keys, age = i.find(id, alg); len(keys) > 0 && age < keysMaxAge {
		return keys, nil
	}
	if err != nil {
		return nil, issuerUnavailable(err) // the issuer may have such a key now
	}
	return nil, authFailure("the token is signed with an unknown key")
}

// find returns the matching keys of the last key set, and the age of that set.
func (i *issuer) find(id string, alg jose.SignatureAlgorithm) (keys []jose.JSONWebKey, age time.Duration) {
	set := i.keys.Load()
	if set == nil {
		return nil, 0
	}
	return set.find(id, alg), i.now().Sub(set.found)
}

func (s *keySet) find(id string, alg jose.SignatureAlgorithm) (keys []jose.JSONWebKey) {
	for _, key := range s.keys {
		if (id == "" || key.KeyID == id) && canVerify(key, alg) && len(keys) < maxCandidateKeys {
			keys = append(keys, key)
		}
	}
	return keys
}

// refreshKeys fetches the keys and returns the error. If the last fetch ended less than refreshInterval ago
// (retryInterval after a failure), it returns the error of that fetch. If another call is fetching the keys, it waits
// for that call if wait is true, and otherwise returns nil at once.
func (i *issuer) refreshKeys(ctx context.Context, wait bool) error {
	select {
	case i.refreshing <- struct{}{}:
	default:
		if !wait {
			return nil
		}
		select {
		case i.refreshing <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-i.refreshing }()
	pause := refreshInterval
	if i.err != nil {
		pause = retryInterval
	}
	if !i.refreshedAt.IsZero() && i.now().Sub(i.refreshedAt) < pause {
		return i.err
	}
	// Other calls wait for this fetch too. It therefore continues when ctx ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	keys, err := i.fetchKeysByMetadata(ctx)
	if i.refreshedAt, i.err = i.now(), err; err == nil {
		i.keys.Store(&keySet{keys, i.refreshedAt})
	}
	return err
}

// fetchKeysByMetadata requests the issuer's metadata, and then the keys at the URL in the metadata.
func (i *issuer) fetchKeysByMetadata(ctx context.Context) ([]jose.JSONWebKey, error) {
	var first error
	for _, place := range metadataURLs(i.name) {
		raw, err := getJSON(ctx, i.web, place)
		if err != nil {
			err = fmt.Errorf("read the metadata: %w", err)
		} else if jwks, wrong := readJWKSURL(raw, i.name); wrong != nil {
			err = wrong
		} else {
			return i.fetchKeys(ctx, jwks)
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

func (i *issuer) fetchKeys(ctx context.Context, place string) ([]jose.JSONWebKey, error) {
	raw, err := getJSON(ctx, i.web, place)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	return readKeys(raw)
}

// metadataURLs returns the URLs at which an issuer's metadata may be, in the order of the MCP specification. The first
// URL is that of RFC 8414. The URLs of OpenID Connect Discovery follow, with the issuer's path after and before the
// well-known part.
func metadataURLs(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	const oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	if path == "" {
		return []string{origin + oauth, origin + openid}
	}
	return []string{origin + oauth + path, origin + openid + path, origin + path + openid}
}

// readJWKSURL returns the URL of the keys from an issuer's metadata. It returns an error if the metadata name another
// issuer (RFC 8414, section 3.3), or if the URL is less secure than the issuer's.
func readJWKSURL(raw []byte, issuer string) (jwks string, err error) {
	if name := rawjson.GetString(raw, "issuer"); name != issuer {
		return "", errors.New("read the metadata: they are of another issuer")
	}
	jwks = rawjson.GetString(raw, "jwks_uri")
	u, err := parseURL(jwks)
	if err != nil {
		return "", fmt.Errorf("read the metadata: jwks_uri: %w", err)
	}
	if u.Scheme == "http" && strings.HasPrefix(issuer, "https:") {
		return "", errors.New("read the metadata: jwks_uri: it is not https, as the issuer is")
	}
	return jwks, nil
}

// readKeys parses a JWK set. It skips keys that it cannot parse or that are not for signatures (RFC 7517, section 5).
func readKeys(raw []byte) (keys []jose.JSONWebKey, err error) {
	for one := range rawjson.Elements(rawjson.Get(raw, "keys")) {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(one) != nil || !key.IsPublic() || !key.Valid() || key.Use != "" && key.Use != "sig" {
			continue
		}
		if keys = append(keys, key); len(keys) == maxKeys {
			break
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("read the keys: there is none to check signatures with")
	}
	return keys, nil
}
