package mcptest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// A TokenIssuer issues valid and invalid access tokens: it signs any content with its own keys, publishes the keys, and
// answers introspection requests. It does not use a JWT library, because a library may refuse to create invalid tokens.
type TokenIssuer struct {
	// URL is the identifier of the issuer, including the path.
	URL string
	// Client and Secret are the credentials for introspection.
	Client, Secret string

	web *httptest.Server
	rsa *rsa.PrivateKey
	ec  *ecdsa.PrivateKey
	ed  ed25519.PrivateKey

	mu sync.Mutex
	// id is the ID of the RSA key. asked counts requests by path.
	id    string
	asked map[string]int
	// answers are the introspection responses by token. If down is true, every request fails.
	answers map[string]string
	down    bool
	// odd contains handlers that replace the normal ones, by path.
	odd map[string]http.HandlerFunc
}

// NewTokenIssuer returns an issuer whose URL has the given path. The issuer is closed when the test ends.
func NewTokenIssuer(t testing.TB, path string) *TokenIssuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &TokenIssuer{
		Client: "gate", Secret: "s:e c+r%t", rsa: key, ec: ec, ed: ed, id: "rsa-1",
		asked: map[string]int{}, answers: map[string]string{}, odd: map[string]http.HandlerFunc{},
	}
	i.web = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.web.Close)
	i.URL = i.web.URL + path
	return i
}

// Claims returns the claims of a valid token for a resource, with the changes in change; a nil value removes a claim.
func (i *TokenIssuer) Claims(resource string, change map[string]any) map[string]any {
	claims := map[string]any{
		"iss": i.URL, "sub": "ada", "aud": resource, "client_id": "app", "scope": "mcp",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

// Token signs claims as an access token.
func (i *TokenIssuer) Token(claims map[string]any) string {
	payload, _ := json.Marshal(claims) // claims of tests always encode
	return i.Sign(fmt.Sprintf(`{"alg":"RS256","typ":"at+jwt","kid":%q}`, i.keyID()), string(payload))
}

// Sign returns a token with the given header and payload, signed with the key for the header's algorithm. HS256 uses
// the public RSA key as its secret, and none adds no signature.
func (i *TokenIssuer) Sign(header, payload string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(header)) + "." + encode([]byte(payload))
	var h struct{ Alg string }
	_ = json.Unmarshal([]byte(header), &h) // a header that cannot be parsed is signed as RS256
	return text + "." + encode(i.signature(h.Alg, []byte(text)))
}

func (i *TokenIssuer) signature(alg string, text []byte) (signature []byte) {
	sum := sha256.Sum256(text)
	switch alg {
	case "none":
	case "HS256":
		mac := hmac.New(sha256.New, i.rsa.N.Bytes())
		mac.Write(text)
		signature = mac.Sum(nil)
	case "ES256":
		r, s, err := ecdsa.Sign(rand.Reader, i.ec, sum[:])
		if err != nil {
			panic(err) // the key is valid
		}
		signature = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case "EdDSA":
		signature = ed25519.Sign(i.ed, text)
	case "PS256":
		signature, _ = rsa.SignPSS(rand.Reader, i.rsa, crypto.SHA256, sum[:],
			&rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	default:
		signature, _ = rsa.SignPKCS1v15(rand.Reader, i.rsa, crypto.SHA256, sum[:])
	}
	return signature
}

// Rotate sets another ID for the RSA key, as if the key was a new one.
func (i *TokenIssuer) Rotate(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.id = id
}

func (i *TokenIssuer) keyID() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.id
}

// SetIntrospection sets the introspection response for a token. An empty answer means that the token is not active.
func (i *TokenIssuer) SetIntrospection(token, answer string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answers[token] = answer
}

// SetDown makes the issuer answer every request with status 500 if down is true. If down is false, it answers normally
// again.
func (i *TokenIssuer) SetDown(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// SetHandler replaces the handler of a path; nil restores the normal handler.
func (i *TokenIssuer) SetHandler(path string, answer http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.odd[path] = answer
}

// RequestCount returns how often a path was requested.
func (i *TokenIssuer) RequestCount(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

// KeysPath and IntrospectPath are the paths of the keys and of introspection.
const (
	KeysPath       = "/keys"
	IntrospectPath = "/introspect"
)

func (i *TokenIssuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.asked[r.URL.Path]++
	down, odd, id := i.down, i.odd[r.URL.Path], i.id
	i.mu.Unlock()
	path := strings.TrimPrefix(i.URL, i.web.URL)
	switch {
	case down:
		http.Error(w, "down", http.StatusInternalServerError)
	case odd != nil:
		odd(w, r)
	case r.URL.Path == "/.well-known/oauth-authorization-server"+path:
		writeJSONBody(w, map[string]any{"issuer": i.URL, "jwks_uri": i.web.URL + KeysPath,
			"token_endpoint": i.web.URL + "/token"})
	case r.URL.Path == KeysPath:
		writeJSONBody(w, map[string]any{"keys": i.keys(id)})
	case r.URL.Path == IntrospectPath:
		i.introspect(w, r)
	default:
		http.NotFound(w, r)
	}
}

func writeJSONBody(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // an error means that the client has disconnected
}

// keys returns the public keys as a list of JWKs. The list also contains entries that a verifier must ignore.
func (i *TokenIssuer) keys(id string) []any {
	encode := base64.RawURLEncoding.EncodeToString
	point, err := i.ec.PublicKey.Bytes()
	if err != nil {
		panic(err) // the key is valid
	}
	return []any{
		map[string]any{"kty": "oct", "kid": "secret", "k": encode([]byte("hunter2"))},
		map[string]any{"kty": "of another world", "kid": "odd"},
		"no key",
		map[string]any{
			"kty": "RSA", "kid": id, "use": "sig", "n": encode(i.rsa.N.Bytes()),
			"e": encode(big.NewInt(int64(i.rsa.E)).Bytes()),
		},
		map[string]any{"kty": "RSA", "kid": "for-secrets", "use": "enc", "n": encode(i.rsa.N.Bytes()), "e": "AQAB"},
		map[string]any{"kty": "EC", "kid": "ec", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])},
		map[string]any{"kty": "OKP", "kid": "ed", "crv": "Ed25519", "x": encode(i.ed.Public().(ed25519.PublicKey))},
	}
}

// introspect handles an introspection request (RFC 7662). It accepts only the credentials Client and Secret.
func (i *TokenIssuer) introspect(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if !ok || id != i.Client || secret != formEncoded(i.Secret) || r.Method != http.MethodPost {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	i.mu.Lock()
	said := i.answers[r.PostFormValue("token")]
	i.mu.Unlock()
	if said == "" {
		said = `{"active":false}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(said)) // an error means that the client has disconnected
}

// formEncoded returns a text in form encoding.
func formEncoded(text string) string { return url.QueryEscape(text) }
