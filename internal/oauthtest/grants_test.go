package oauthtest_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"crypto"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/google/go-cmp/cmp"
)

// register asks for a client.
func register(t *testing.T, p *oauthtest.Provider, metadata, token string) answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, p.URL(oauthtest.Register), strings.NewReader(metadata))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return do(t, p, r)
}

const publicClient = `{"client_name":"<b>x</b>","redirect_uris":["http://127.0.0.1/cb"],"token_endpoint_auth_method":"none"}`

func TestRegistration(t *testing.T) {
	for _, tt := range []struct {
		name, asked, token string
		knobs              oauthtest.Registration
		status             int
		want               map[string]any
	}{
		{"public", publicClient, "", oauthtest.Registration{}, 201,
			map[string]any{"token_endpoint_auth_method": "none"}},
		{"with a secret", publicClient, "", oauthtest.Registration{Secret: true}, 201,
			map[string]any{"token_endpoint_auth_method": "client_secret_post", "client_secret_expires_at": 0.0}},
		{"absent", publicClient, "", oauthtest.Registration{Absent: true}, 404, map[string]any{}},
		{"without the token", publicClient, "", oauthtest.Registration{InitialToken: "let me in"}, 401,
			map[string]any{"error": "invalid_token"}},
		{"with the token", publicClient, "let me in", oauthtest.Registration{InitialToken: "let me in"}, 201,
			map[string]any{"token_endpoint_auth_method": "none"}},
		{"no redirect URI", `{}`, "", oauthtest.Registration{}, 400, map[string]any{"error": "invalid_redirect_uri"}},
		{"a redirect URI it does not like", publicClient, "",
			oauthtest.Registration{RejectRedirects: []string{"127.0.0.1"}}, 400,
			map[string]any{"error": "invalid_redirect_uri"}},
		{"http elsewhere", `{"redirect_uris":["http://example.com/cb"]}`, "", oauthtest.Registration{}, 400,
			map[string]any{"error": "invalid_redirect_uri"}},
		{"no JSON", `x`, "", oauthtest.Registration{}, 400, map[string]any{"error": "invalid_client_metadata"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := oauthtest.New(t, oauthtest.Options{Knobs: oauthtest.Knobs{Registration: tt.knobs}})
			a := register(t, p, tt.asked, tt.token)
			got := map[string]any{}
			for _, name := range []string{"error", "token_endpoint_auth_method", "client_secret_expires_at"} {
				if a.JSON[name] != nil {
					got[name] = a.JSON[name]
				}
			}
			if a.Status != tt.status {
				t.Errorf("status = %d, want %d", a.Status, tt.status)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestClientsProveThemselves is client authentication: each row is one request for a token of a client's own.
func TestClientsProveThemselves(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{Clients: []oauthtest.Client{
		{ID: "any", Secret: "s p&c"}, {ID: "basic", Secret: "s", Method: "client_secret_basic"}, {ID: "public"},
		{ID: "old", Secret: "s", SecretExpires: time.Now().Add(-time.Minute)}, {ID: "codes", Secret: "s",
			Grants: []string{"authorization_code"}},
	}})
	for _, tt := range []struct {
		name  string
		form  url.Values
		login []string
		want  any
	}{
		{"basic, encoded", nil, []string{"any", "s+p%26c"}, nil},
		{"post", url.Values{"client_id": {"any"}, "client_secret": {"s p&c"}}, nil, nil},
		{"post where basic is wanted", url.Values{"client_id": {"basic"}, "client_secret": {"s"}}, nil,
			"invalid_client"},
		{"wrong secret", nil, []string{"any", "x"}, "invalid_client"},
		{"no secret", url.Values{"client_id": {"any"}}, nil, "invalid_client"},
		{"expired secret", nil, []string{"old", "s"}, "invalid_client"},
		{"unknown", nil, []string{"who", "s"}, "invalid_client"},
		{"public", url.Values{"client_id": {"public"}}, nil, "unauthorized_client"},
		{"another grant", nil, []string{"codes", "s"}, "unauthorized_client"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			form := url.Values{"grant_type": {"client_credentials"}, "resource": {p.ResourceURL}}
			for name, values := range tt.form {
				form[name] = values
			}
			if a := post(t, p, oauthtest.Token, form, tt.login...); a.JSON["error"] != tt.want ||
				a.JSON["refresh_token"] != nil {
				t.Errorf("%d %s, want %v", a.Status, a.Text, tt.want)
			}
		})
	}
}

func TestClientDocuments(t *testing.T) {
	const id = "https://client.example/oauth.json"
	p := oauthtest.New(t, oauthtest.Options{
		Knobs: oauthtest.Knobs{Registration: oauthtest.Registration{Documents: true}},
		Documents: map[string]json.RawMessage{id: json.RawMessage(`{"client_id":"` + id + `","redirect_uris":["` +
			callback + `"]}`)},
	})
	q := question(p)
	q.Set("client_id", id)
	form := exchange(p, authorized(t, p, q).Get("code"))
	form.Set("client_id", id)
	if a := post(t, p, oauthtest.Token, form); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Text)
	}
	p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Registration.Documents = false })
	if a := get(t, p, p.URL(oauthtest.Authorize)+"?"+q.Encode()); a.Status != http.StatusBadRequest {
		t.Errorf("a document where there are none: %d", a.Status)
	}
}

// TestDevice follows a device: what it is told each time that it asks.
func TestDevice(t *testing.T) {
	for _, tt := range []struct {
		name  string
		knobs oauthtest.Device
		act   func(t *testing.T, p *oauthtest.Provider, start answer) // after the first question
		want  []any
	}{
		{"waits for ever", oauthtest.Device{}, nil, []any{"authorization_pending", "authorization_pending"}},
		{"approved on the page", oauthtest.Device{}, func(t *testing.T, p *oauthtest.Provider, start answer) {
			if err := p.AllowSignIn(t.Context(), text(start, "verification_uri_complete")); err != nil {
				t.Error(err)
			}
		}, []any{"authorization_pending", nil, "invalid_grant"}},
		{"approved", oauthtest.Device{}, func(t *testing.T, p *oauthtest.Provider, start answer) {
			if p.Approve("made up") || !p.Approve(text(start, "user_code")) {
				t.Error("approved the wrong one")
			}
		}, []any{"authorization_pending", nil}},
		{"denied", oauthtest.Device{}, func(_ *testing.T, p *oauthtest.Provider,
			start answer) {
			p.Deny(text(start, "user_code"))
		}, []any{"authorization_pending", "access_denied"}},
		{"by itself, slowly", oauthtest.Device{Auto: true, SlowDowns: 1, Pendings: 1}, nil,
			[]any{"slow_down", "authorization_pending", nil}},
		{"too late", oauthtest.Device{Life: -time.Second}, nil, []any{"expired_token"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := oauthtest.New(t, registered(oauthtest.Knobs{Device: tt.knobs}))
			start := post(t, p, oauthtest.DeviceStart, url.Values{"client_id": {"public"}, "resource": {p.ResourceURL}})
			var got []any
			for i := range tt.want {
				a := post(t, p, oauthtest.Token, url.Values{
					"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {"public"},
					"device_code": {text(start, "device_code")},
				})
				got = append(got, a.JSON["error"])
				if i == 0 && tt.act != nil {
					tt.act(t, p, start)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConsentDenied(t *testing.T) {
	p := oauthtest.New(t, registered(oauthtest.Knobs{Authorization: oauthtest.Authorization{Consent: true}}))
	a := get(t, p, p.URL(oauthtest.Authorize)+"?"+question(p).Encode())
	_, token, _ := strings.Cut(a.Text, `name="token" value="`)
	token, _, _ = strings.Cut(token, `"`)
	said := post(t, p, oauthtest.Consent, url.Values{"token": {token}, "decision": {"deny"}})
	if to := said.Header.Get("Location"); !strings.HasPrefix(to, callback+"?error=access_denied") {
		t.Errorf("%d %s", said.Status, to)
	}
	if again := post(t, p, oauthtest.Consent, url.Values{"token": {token},
		"decision": {"allow"}}); again.Status != http.StatusBadRequest {
		t.Errorf("the page was good twice: %d", again.Status)
	}
}

// TestIntrospectionAndRevocation follows one sign-in to its end.
func TestIntrospectionAndRevocation(t *testing.T) {
	p := oauthtest.New(t, registered(oauthtest.Knobs{Tokens: oauthtest.Tokens{Introspection: map[string]any{"jti": nil,
		"iat": nil, "nbf": nil, "exp": nil, "note": "{issuer}"}}}))
	signed := tokens(t, p)
	look := func() map[string]any {
		return post(t, p, oauthtest.Introspect, url.Values{"token": {text(signed, "access_token")}},
			"shop", "s3cret").JSON
	}
	want := map[string]any{
		"active": true, "iss": p.Issuer, "sub": "ada", "client_id": "public", "scope": "mcp", "aud": p.ResourceURL,
		"token_type": "Bearer", "note": p.Issuer,
	}
	if diff := cmp.Diff(want, look()); diff != "" {
		t.Error(diff)
	}
	if a := post(t, p, oauthtest.Introspect, url.Values{"token": {text(signed, "access_token")},
		"client_id": {"public"}}); a.Status != http.StatusUnauthorized {
		t.Errorf("a public client may look: %d", a.Status)
	}
	if a := post(t, p, oauthtest.Revoke, url.Values{"token": {text(signed, "refresh_token")},
		"client_id": {"public"}}); a.Status != http.StatusOK {
		t.Errorf("revoke: %d %s", a.Status, a.Text)
	}
	if diff := cmp.Diff(map[string]any{"active": false}, look()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]oauthtest.Session{{Client: "public", Subject: "ada", Resource: p.ResourceURL,
		Scope: []string{"mcp"}, Ended: true}}, p.Sessions()); diff != "" {
		t.Error(diff)
	}
}

func TestExchange(t *testing.T) {
	const other = "https://other.example"
	o := registered(oauthtest.Knobs{})
	o.Resources = []string{other}
	p := oauthtest.New(t, o)
	good := text(tokens(t, p), "access_token")
	for _, tt := range []struct {
		name, subject string
		change        url.Values
		want          any
	}{
		{"for another resource", good, nil, nil},
		{"by audience", good, url.Values{"resource": nil, "audience": {other}}, nil},
		{"fewer scopes", good, url.Values{"scope": {"mcp"}}, nil},
		{"more scopes", good, url.Values{"scope": {"mcp secret"}}, "invalid_scope"},
		{"made up", "x", nil, "invalid_grant"},
		{"for nobody", good, url.Values{"resource": {"https://unknown.example"}}, "invalid_target"},
		{"as another type", good, url.Values{"subject_token_type": {"urn:x"}}, "invalid_request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			form := url.Values{
				"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {tt.subject},
				"subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"}, "resource": {other},
			}
			for name, values := range tt.change {
				form[name] = values
			}
			a := post(t, p, oauthtest.Token, form, "shop", "s3cret")
			if a.JSON["error"] != tt.want {
				t.Fatalf("%d %s, want %v", a.Status, a.Text, tt.want)
			}
			if tt.want != nil {
				return
			}
			claims := payload(t, text(a, "access_token"))
			got := map[string]any{"aud": claims["aud"], "sub": claims["sub"], "act": claims["act"],
				"scope": claims["scope"]}
			want := map[string]any{"aud": other, "sub": "ada", "act": map[string]any{"sub": "shop"}, "scope": "mcp"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func unbase(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// payload gives the claims of a token, unchecked.
func payload(t *testing.T, token string) map[string]any {
	t.Helper()
	var claims map[string]any
	if err := json.Unmarshal(unbase(t, strings.Split(token, ".")[1]), &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// TestSignatures checks tokens against the published keys.
func TestSignatures(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{Knobs: oauthtest.Knobs{Skew: time.Hour}})
	for _, tt := range []struct {
		name string
		mint oauthtest.TokenSpec
		ok   bool
	}{
		{"EC", oauthtest.TokenSpec{}, true},
		{"RSA", oauthtest.TokenSpec{Alg: "RS256"}, true},
		{"foreign EC", oauthtest.TokenSpec{Foreign: true}, false},
		{"foreign RSA", oauthtest.TokenSpec{Foreign: true, Alg: "RS256"}, false},
		{"none", oauthtest.TokenSpec{Alg: "none"}, false},
		{"HMAC", oauthtest.TokenSpec{Alg: "HS256"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			token, err := p.Mint(tt.mint)
			if err != nil {
				t.Fatal(err)
			}
			if got := signed(t, get(t, p, p.URL(oauthtest.Keys)), token); got != tt.ok {
				t.Errorf("signed = %v, want %v", got, tt.ok)
			}
		})
	}
	token, err := p.Mint(oauthtest.TokenSpec{Claims: map[string]any{"sub": nil, "aud": []string{"{resource}"}}})
	if err != nil {
		t.Fatal(err)
	}
	claims := payload(t, token)
	if date, err := http.ParseTime(get(t, p, p.URL(oauthtest.Keys)).Header.Get("Date")); err != nil ||
		time.Until(date) < 59*time.Minute {
		t.Errorf("the date is %s: %v", date, err)
	}
	if ahead := time.Until(time.Unix(int64(claims["iat"].(float64)), 0)); ahead < 59*time.Minute {
		t.Errorf("the clock is %s ahead, want an hour", ahead)
	}
	for _, name := range []string{"iat", "nbf", "exp", "jti"} {
		delete(claims, name)
	}
	want := map[string]any{"iss": p.Issuer, "client_id": "minted", "scope": "mcp", "aud": []any{p.ResourceURL}}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Error(diff)
	}
	p.RotateKeys()
	if signed(t, get(t, p, p.URL(oauthtest.Keys)), token) {
		t.Error("the old key is still known")
	}
}

// signed says whether a key of the set signed the token.
func signed(t *testing.T, set answer, token string) bool {
	t.Helper()
	parts := strings.Split(token, ".")
	var header struct{ Alg, Kid string }
	if err := json.Unmarshal(unbase(t, parts[0]), &header); err != nil {
		t.Fatal(err)
	}
	sum, signature := sha256.Sum256([]byte(parts[0]+"."+parts[1])), unbase(t, parts[2])
	keys, _ := set.JSON["keys"].([]any)
	for _, k := range keys {
		key := k.(map[string]any)
		number := func(name string) *big.Int { return new(big.Int).SetBytes(unbase(t, key[name].(string))) }
		switch {
		case key["kid"] != header.Kid || key["alg"] != header.Alg:
		case header.Alg == "RS256":
			public := &rsa.PublicKey{N: number("n"), E: int(number("e").Int64())}
			return rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) == nil
		default:
			point := append([]byte{4}, append(unbase(t, key["x"].(string)), unbase(t, key["y"].(string))...)...)
			public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
			if err != nil {
				t.Fatal(err)
			}
			return ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:32]),
				new(big.Int).SetBytes(signature[32:]))
		}
	}
	return false
}
