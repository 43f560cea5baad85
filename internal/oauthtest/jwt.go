package oauthtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"sync"
)

// A keyring contains the provider's signing keys: one RSA key and one EC key, generated at their first use. A rotation
// discards both keys, and the provider then no longer publishes them.
type keyring struct {
	mu    sync.Mutex
	turns int
	rsa   *rsa.PrivateKey
	ec    *ecdsa.PrivateKey
}

func (k *keyring) rotate() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turns++
	k.rsa, k.ec = nil, nil
}

// rsaKey returns the RSA key and its ID.
func (k *keyring) rsaKey() (key *rsa.PrivateKey, id string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rsa == nil {
		k.rsa, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	return k.rsa, fmt.Sprintf("rsa-%d", k.turns), err
}

// ecKey returns the EC key and its ID.
func (k *keyring) ecKey() (key *ecdsa.PrivateKey, id string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ec == nil {
		k.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	return k.ec, fmt.Sprintf("ec-%d", k.turns), err
}

// public returns the JWK set of the public keys.
func (k *keyring) public() (map[string]any, error) {
	r, rid, err := k.rsaKey()
	if err != nil {
		return nil, err
	}
	e, eid, err := k.ecKey()
	if err != nil {
		return nil, err
	}
	point, err := e.PublicKey.Bytes() // 0x04, x, y
	if err != nil {
		return nil, err
	}
	return map[string]any{"keys": []any{
		map[string]any{
			"kty": "RSA", "kid": rid, "use": "sig", "alg": "RS256",
			"n": encode(r.N.Bytes()), "e": encode(big.NewInt(int64(r.E)).Bytes()),
		},
		map[string]any{
			"kty": "EC", "kid": eid, "use": "sig", "alg": "ES256", "crv": "P-256",
			"x": encode(point[1:33]), "y": encode(point[33:65]),
		},
	}}, nil
}

// RotateKeys replaces the signing keys and their ids.
func (p *Provider) RotateKeys() { p.keys.rotate() }

func (p *Provider) serveKeys(w http.ResponseWriter, _ *http.Request) {
	keys, err := p.keys.public()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeJSON(w, http.StatusOK, keys)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// A TokenSpec describes a token for Mint, valid or invalid.
type TokenSpec struct {
	// Claims replace claims of a valid access token for the MCP server; nil removes a claim.
	Claims map[string]any
	// Header replaces members of the header in the same way, after the algorithm and the key ID are set.
	Header map[string]any
	// Payload, if not empty, is the whole payload. It can contain duplicate claims or invalid JSON.
	Payload string
	// Alg is the algorithm: ES256 (the default), RS256, "none" for a token without a signature, or HS256. HS256 uses
	// the PEM of the public RSA key as the secret, to test verifiers that confuse kinds of keys.
	Alg string
	// Foreign signs with a key that is not in the key set.
	Foreign bool
}

// Mint returns a new token. The provider does not store the token: its MCP server and its introspection endpoint refuse
// it.
func (p *Provider) Mint(m TokenSpec) (string, error) {
	k := p.currentKnobs()
	claims := p.claims(k, &accessTokenState{
		family: &tokenFamily{subject: k.user(), client: "minted"}, scope: []string{k.serverScope()},
		audience: p.ResourceURL,
		issued:   k.clock(), expires: k.clock().Add(k.life()), id: random(),
	})
	p.overlayMembers(claims, m.Claims)
	payload := []byte(m.Payload)
	if m.Payload == "" {
		var err error
		if payload, err = json.Marshal(claims); err != nil {
			return "", err
		}
	}
	keys := p.keys
	if m.Foreign {
		keys = &keyring{}
	}
	return keys.sign(orDefault(m.Alg, "ES256"), m.Header, payload)
}

// sign returns a compact signed token. over replaces members of its header.
func (k *keyring) sign(alg string, over map[string]any, payload []byte) (string, error) {
	id, signature, err := k.signer(alg)
	if err != nil {
		return "", err
	}
	header := map[string]any{"typ": "at+jwt", "alg": alg, "kid": id}
	maps.Copy(header, over)
	maps.DeleteFunc(header, func(_ string, v any) bool { return v == nil })
	head, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	signed := encode(head) + "." + encode(payload)
	b, err := signature(signed)
	return signed + "." + encode(b), err
}

// signer returns the function that signs with an algorithm, and the ID of its key.
func (k *keyring) signer(alg string) (id string, sign func(string) ([]byte, error), err error) {
	switch alg {
	case "ES256":
		key, id, err := k.ecKey()
		return id, func(text string) ([]byte, error) { return signEC(key, text) }, err
	case "RS256":
		key, id, err := k.rsaKey()
		return id, func(text string) ([]byte, error) {
			digest := sha256.Sum256([]byte(text))
			return rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
		}, err
	case "HS256":
		key, id, err := k.rsaKey()
		return id, func(text string) ([]byte, error) { return confused(key, text) }, err
	case "none":
		return "none", func(string) ([]byte, error) { return nil, nil }, nil
	}
	return "", nil, fmt.Errorf("sign token: no algorithm %q", alg)
}

// signEC returns a signature as the two numbers r and s, each in 32 bytes.
func signEC(key *ecdsa.PrivateKey, text string) ([]byte, error) {
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		return nil, err
	}
	both := make([]byte, 64)
	r.FillBytes(both[:32])
	s.FillBytes(both[32:])
	return both, nil
}

// confused returns an HMAC signature that uses the public key as the shared secret.
func confused(key *rsa.PrivateKey, signed string) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	mac.Write([]byte(signed))
	return mac.Sum(nil), nil
}

// claims returns the claims of an access token (RFC 9068).
func (p *Provider) claims(k Knobs, a *accessTokenState) map[string]any {
	c := map[string]any{
		"iss": p.Issuer, "sub": a.family.subject, "client_id": a.family.client,
		"scope": joinScopes(a.scope), "jti": a.id,
		"aud": a.audience, "iat": a.issued.Unix(), "nbf": a.issued.Unix(), "exp": a.expires.Unix(),
	}
	if k.Tokens.AudienceList {
		c["aud"] = []string{a.audience}
	}
	if a.actor != "" {
		c["act"] = map[string]any{"sub": a.actor}
	}
	return c
}
