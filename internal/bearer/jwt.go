package bearer

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/go-jose/go-jose/v4"
)

// allowedAlgorithms returns the accepted signature algorithms, all of them asymmetric. With a shared secret, every
// verifier could sign tokens, and an attacker could use a public key as the secret.
func allowedAlgorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384,
		jose.ES512, jose.EdDSA,
	}
}

// A jwt is a parsed signed token. access reports whether the type in the token's header is the type of access tokens.
// If err is set, the token is refused even if its signature is valid.
type jwt struct {
	parsed *jose.JSONWebSignature
	access bool
	err    error
}

// readJWT parses a token. It returns false if the text is not a JWT. For a malformed JWT, it returns true and a jwt
// with err set.
func readJWT(token string) (jwt, bool) {
	head, rest, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil || strings.Count(rest, ".") != 1 || rawjson.Valid(raw) != nil || rawjson.Get(raw, "alg") == nil {
		return jwt{}, false
	}
	typ, ok := headerType(raw)
	if !ok {
		return jwt{err: authFailure("the token's header is not that of an access token")}, true
	}
	parsed, err := jose.ParseSignedCompact(token, allowedAlgorithms())
	if err != nil || len(parsed.Signatures) != 1 {
		return jwt{err: authFailure("the token is not signed as it must be")}, true
	}
	return jwt{parsed: parsed, access: typ == accessType}, true
}

// accessType is the type of access tokens (RFC 9068, section 2.1). Many issuers use the type JWT, or omit it.
const accessType = "at+jwt"

// headerType returns the type in a token's header. It returns false for a type that access tokens never have, for
// duplicate members, and for critical extensions. It ignores key locations in the header (jku, jwk, x5u, x5c).
func headerType(header []byte) (typ string, ok bool) {
	seen := map[string]bool{}
	for m := range rawjson.Members(header) {
		name, ok := rawjson.DecodeString(m.Name)
		if !ok || seen[name] || name == "crit" || name == "b64" {
			return "", false
		}
		seen[name] = true
		if name == "typ" {
			typ, _ = rawjson.DecodeString(m.Value)
			typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
			if typ != "jwt" && typ != accessType {
				return "", false
			}
		}
	}
	return typ, true
}

// verifySignature returns the claims of a JWT if a key of its issuer verifies the signature, or an error.
func (v *Verifier) verifySignature(ctx context.Context, t jwt) (claims, error) {
	if t.err != nil {
		return claims{}, t.err
	}
	c, err := readClaims(t.parsed.UnsafePayloadWithoutVerification())
	if err != nil {
		return claims{}, authFailure("the token's claims are not understood")
	}
	c.isAccessToken = c.isAccessToken || t.access
	from := v.issuers[c.issuer]
	switch {
	case from == nil:
		return claims{}, authFailure("the token is from another issuer")
	case c.expires.IsZero():
		return claims{}, authFailure("the token has no expiry time")
	}
	header := t.parsed.Signatures[0].Header
	keys, err := from.keysFor(ctx, header.KeyID, jose.SignatureAlgorithm(header.Algorithm))
	if err != nil {
		return claims{}, err
	}
	for _, key := range keys {
		if _, err := t.parsed.Verify(key.Key); err == nil {
			return c, nil
		}
	}
	return claims{}, authFailure("the token is signed with an unknown key")
}

// minRSA is the minimum size of an RSA key in bits (RFC 7518, section 3.3).
const minRSA = 2048

// canVerify reports whether a public key verifies signatures of an algorithm.
func canVerify(key jose.JSONWebKey, alg jose.SignatureAlgorithm) bool {
	if key.Algorithm != "" && key.Algorithm != string(alg) {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		all := []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
		return slices.Contains(all, alg) && public.N.BitLen() >= minRSA
	case *ecdsa.PublicKey:
		curve := map[jose.SignatureAlgorithm]string{jose.ES256: "P-256", jose.ES384: "P-384", jose.ES512: "P-521"}
		return public.Curve.Params().Name == curve[alg]
	case ed25519.PublicKey:
		return alg == jose.EdDSA
	}
	return false
}
