package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// assertionType is the value of client_assertion_type (RFC 7523, 2.2).
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// assertionLifetime is how long an assertion is valid.
const assertionLifetime = time.Minute

// addClientAssertion adds a client assertion to the parameters of a token request (private_key_jwt: OpenID Connect
// Core, 9). key is the private key in PEM that signs the assertion. The audience of the assertion is the issuer.
func addClientAssertion(values url.Values, key, client, issuer string, now time.Time) error {
	signing, err := parseSigningKey(key)
	if err != nil {
		return err
	}
	signer, err := jose.NewSigner(signing, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return errors.New("sign the client assertion: the private key cannot be used")
	}
	claims, err := json.Marshal(map[string]any{
		"iss": client, "sub": client, "aud": issuer, "jti": rand.Text(), "iat": now.Unix(),
		"exp": now.Add(assertionLifetime).Unix(),
	})
	if err != nil {
		return err
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return errors.New("sign the client assertion: the private key cannot be used")
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		return errors.New("sign the client assertion: the private key cannot be used")
	}
	values.Set("client_assertion_type", assertionType)
	values.Set("client_assertion", text)
	return nil
}

// parseSigningKey parses a private key in PEM: PKCS #8, or the older formats of RSA and elliptic curve keys. The error
// never contains any part of the key.
func parseSigningKey(text string) (jose.SigningKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return jose.SigningKey{}, errors.New("the private key is not in PEM format")
	}
	var key crypto.PrivateKey
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return jose.SigningKey{}, errors.New("the private key cannot be read: it must be PKCS #8 without a passphrase")
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return jose.SigningKey{Algorithm: jose.RS256, Key: k}, nil
	case ed25519.PrivateKey:
		return jose.SigningKey{Algorithm: jose.EdDSA, Key: k}, nil
	case *ecdsa.PrivateKey:
		if algorithm, ok := map[int]jose.SignatureAlgorithm{256: jose.ES256, 384: jose.ES384,
			521: jose.ES512}[k.Params().BitSize]; ok {
			return jose.SigningKey{Algorithm: algorithm, Key: k}, nil
		}
	}
	return jose.SigningKey{},
		errors.New("the private key is of an unsupported type: use RSA, Ed25519, or ECDSA with P-256, P-384 or P-521")
}
