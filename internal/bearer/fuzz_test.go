package bearer

import (
	"slices"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// FuzzToken looks at any text: it never proves anybody, since nobody signed it.
func FuzzToken(f *testing.F) {
	i := mcptest.NewTokenIssuer(f, "")
	v, err := New(Options{Issuers: []string{i.URL}})
	if err != nil {
		f.Fatal(err)
	}
	for _, header := range []string{`{"alg":"none"}`, `{"alg":"HS256","kid":"secret"}`,
		`{"alg":"RS256","jwk":{"kty":"oct","k":"eA"}}`, `{"alg":"RS256","kid":"rsa-1"}`} {
		f.Add(spliced(i.Sign(header, `{"iss":"`+i.URL+`","sub":"x","aud":"y","exp":9999999999,"scope":"mcp"}`),
			".AAAA"))
	}
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		if c, err := v.Authenticate(t.Context(), token, "y"); err == nil {
			t.Errorf("%q is %s", token, c.Principal)
		}
	})
}

// FuzzClaims reads any claims: what is read fits, and nothing is read of a broken object.
func FuzzClaims(f *testing.F) {
	f.Add([]byte(`{"iss":"i","sub":"s","aud":["a"],"exp":1.5,"nbf":0,"scope":"a b","scp":["c"],"active":true,"cnf":{}}`))
	f.Add([]byte(`{"exp":1e400}`))
	f.Add([]byte(`{"\u0073ub":"a","sub":"b"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := readClaims(raw)
		if err != nil {
			return
		}
		if c.expires.After(time.Unix(maxUnixTime, 0)) || slices.Contains(c.scopes, "") {
			t.Errorf("%s: %+v", raw, c)
		}
	})
}

// FuzzKeys reads any metadata and any keys: only public keys come of it.
func FuzzKeys(f *testing.F) {
	f.Add([]byte(`{"issuer":"https://a","jwks_uri":"https://a/k","keys":[{"kty":"oct","k":"eA"},{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if place, err := readJWKSURL(raw, "https://a"); err == nil {
			if u, err := parseURL(place); err != nil || u.Scheme != "https" {
				t.Errorf("keys at %s", place)
			}
		}
		keys, _ := readKeys(raw)
		for _, key := range keys {
			if !key.IsPublic() || !key.Valid() {
				t.Errorf("%s: a key that is not public", raw)
			}
		}
	})
}
