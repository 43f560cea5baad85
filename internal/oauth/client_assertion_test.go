package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
)

type theClaims struct {
	Iss, Sub, Aud, JTI string
	Iat, Exp           int64
}

// TestAdd signs with keys of every kind, and has the signature checked with the public half.
func TestAdd(t *testing.T) {
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	p256, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p384, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	sec1, _ := x509.MarshalECPrivateKey(p256)
	for name, test := range map[string]struct {
		key       crypto.Signer
		text      string
		algorithm jose.SignatureAlgorithm
	}{
		"RSA":       {rsaKey, pkcs8(rsaKey), jose.RS256},
		"RSA, old":  {rsaKey, inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)), jose.RS256},
		"P-256":     {p256, pkcs8(p256), jose.ES256},
		"P-256 old": {p256, inPEM("EC PRIVATE KEY", sec1), jose.ES256},
		"P-384":     {p384, pkcs8(p384), jose.ES384},
		"Ed25519":   {ed, pkcs8(ed), jose.EdDSA},
	} {
		t.Run(name, func(t *testing.T) {
			form := url.Values{"grant_type": {"g"}}
			if err := addClientAssertion(form, test.text, "c", "https://as", time.Unix(1000, 0)); err != nil {
				t.Fatal(err)
			}
			signed, err := jose.ParseSignedCompact(form.Get("client_assertion"),
				[]jose.SignatureAlgorithm{test.algorithm})
			if err != nil {
				t.Fatal(err)
			}
			text, err := signed.Verify(test.key.Public())
			if err != nil {
				t.Fatal(err)
			}
			var claims theClaims
			if err := json.Unmarshal(text, &claims); err != nil || len(claims.JTI) < 20 {
				t.Errorf("%s, %v", text, err)
			}
			claims.JTI = ""
			if diff := cmp.Diff(theClaims{Iss: "c", Sub: "c", Aud: "https://as", Iat: 1000, Exp: 1060},
				claims); diff != "" {
				t.Error(diff)
			}
			form.Del("client_assertion")
			want := url.Values{"grant_type": {"g"}, "client_assertion_type": {assertionType}}
			if diff := cmp.Diff(want, form); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKeysThatDoNotSign(t *testing.T) {
	p224, _ := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	for text, want := range map[string]string{
		"s3cret": "the private key is not in PEM format",
		inPEM("PRIVATE KEY",
			[]byte("s3cret")): "the private key cannot be read: it must be PKCS #8 without a passphrase",
		pkcs8(p224): "the private key is of an unsupported type: use RSA, Ed25519, or ECDSA with P-256, P-384 or P-521",
	} {
		form := url.Values{}
		if err := addClientAssertion(form, text, "c", "https://as", time.Now()); err == nil ||
			err.Error() != want || len(form) > 0 {
			t.Errorf("%v, want %s; %v", err, want, form)
		}
	}
}

func FuzzSigningKey(f *testing.F) {
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	f.Add(pkcs8(ed))
	f.Add("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n")
	f.Add("s3cret")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := parseSigningKey(text)
		if (err == nil) == (key.Key == nil) {
			t.Errorf("%v without an error, or %v", key.Key, err)
		}
		if err != nil && len(text) > 30 && strings.Contains(err.Error(), text) {
			t.Error("the error repeats the key")
		}
	})
}

func pkcs8(key any) string {
	der, _ := x509.MarshalPKCS8PrivateKey(key)
	return inPEM("PRIVATE KEY", der)
}

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
