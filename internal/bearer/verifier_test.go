package bearer

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const resource = "https://gate.example/mcp"

// A clock is one that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newClock() *clock { return &clock{now: time.Now()} }

func verifier(t *testing.T, o Options, issuers ...*mcptest.TokenIssuer) *Verifier {
	t.Helper()
	for _, i := range issuers {
		o.Issuers = append(o.Issuers, i.URL)
	}
	v, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// introspection is that of an issuer.
func introspection(i *mcptest.TokenIssuer) Introspection {
	return Introspection{URL: strings.TrimSuffix(i.URL, "/realms/a") + mcptest.IntrospectPath, ClientID: i.Client,
		Secret: drawbridge.NewSecret(i.Secret)}
}

// outcome says in a word what a token proves: the principal, or the code and the reason.
func outcome(t *testing.T, v *Verifier, token string) string {
	t.Helper()
	c, err := v.Authenticate(t.Context(), token, resource)
	if err == nil {
		if c.Kind != drawbridge.External || c.AccessToken.Reveal() != token || c.Session != "" {
			t.Errorf("the caller is %+v", c)
		}
		return c.Principal
	}
	if c.Kind != drawbridge.Nobody || c.Principal != "" || len(c.Scopes) > 0 {
		t.Errorf("somebody for an error: %+v", c)
	}
	if head, _, _ := strings.Cut(token, "."); len(head) > 8 && strings.Contains(err.Error(), head) {
		t.Errorf("the error holds the token: %v", err)
	}
	f := drawbridge.AsFault(err)
	return string(f.Code) + ": " + f.Step
}

const wrong = "auth_failure: "

// spliced is a token with the signature of another.
func spliced(token, other string) string {
	return token[:strings.LastIndex(token, ".")] + other[strings.LastIndex(other, "."):]
}

// A tokenRow is a token, and what it proves.
type tokenRow struct{ name, token, want string }

func tryTokens(t *testing.T, i *mcptest.TokenIssuer, now time.Time, rows []tokenRow) {
	t.Helper()
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			v := verifier(t, Options{Now: func() time.Time { return now }}, i)
			if got := outcome(t, v, tt.token); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// payloadOf is what a right token says, with changes.
func payloadOf(t *testing.T, i *mcptest.TokenIssuer, change map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(i.Claims(resource, change))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestOA9JWT has the rows of the matrix about the headers and signatures of JWTs, by their names.
func TestOA9JWT(t *testing.T) {
	i := mcptest.NewTokenIssuer(t, "/realms/a")
	ada, right := "ada@"+i.URL, payloadOf(t, i, nil)
	claims := func(change map[string]any) string { return i.Token(i.Claims(resource, change)) }
	tryTokens(t, i, time.Now(), []tokenRow{
		{"right", claims(nil), ada},
		{"ES256", i.Sign(`{"alg":"ES256","kid":"ec"}`, right), ada},
		{"EdDSA", i.Sign(`{"alg":"EdDSA","kid":"ed","typ":"JWT"}`, right), ada},
		{"PS256", i.Sign(`{"alg":"PS256","kid":"rsa-1","typ":"application/at+jwt"}`, right), ada},
		{"no key id", i.Sign(`{"alg":"RS256"}`, right), ada},
		{"none", i.Sign(`{"alg":"none"}`, right), wrong + "the token is not signed as it must be"},
		{"None", i.Sign(`{"alg":"None"}`, right), wrong + "the token is not signed as it must be"},
		{"no algorithm", i.Sign(`{"typ":"JWT"}`, right), wrong + "the token is not a JWT"},
		{"HS/RS confusion", i.Sign(`{"alg":"HS256","kid":"rsa-1"}`, right), wrong +
			"the token is not signed as it must be"},
		{"a symmetric key of the set", i.Sign(`{"alg":"HS256","kid":"secret"}`, right), wrong +
			"the token is not signed as it must be"},
		{"a key for secrets", i.Sign(`{"alg":"RS256","kid":"for-secrets"}`, right), wrong +
			"the token is signed with an unknown key"},
		{"another kind of key", i.Sign(`{"alg":"RS256","kid":"ec"}`, right), wrong +
			"the token is signed with an unknown key"},
		{"unknown kid", i.Sign(`{"alg":"RS256","kid":"rsa-2"}`, right), wrong +
			"the token is signed with an unknown key"},
		{"kid path", i.Sign(`{"alg":"RS256","kid":"../../etc/passwd"}`, right), wrong +
			"the token is signed with an unknown key"},
		{"kid SQL", i.Sign(`{"alg":"RS256","kid":"x' OR '1'='1"}`, right), wrong +
			"the token is signed with an unknown key"},
		{"kid number", i.Sign(`{"alg":"RS256","kid":1}`, right), wrong + "the token is not signed as it must be"},
		{"jku", i.Sign(`{"alg":"RS256","kid":"evil","jku":"`+i.URL+`/evil"}`, right), wrong +
			"the token is signed with an unknown key"},
		{"x5u", i.Sign(`{"alg":"RS256","kid":"evil","x5u":"`+i.URL+`/evil"}`, right), wrong +
			"the token is signed with an unknown key"},
		{"jku is not read", i.Sign(`{"alg":"RS256","kid":"rsa-1","jku":"`+i.URL+`/evil"}`, right), ada},
		{"crit", i.Sign(`{"alg":"RS256","kid":"rsa-1","crit":["exp"],"exp":1}`, right), wrong +
			"the token's header is not that of an access token"},
		{"b64", i.Sign(`{"alg":"RS256","kid":"rsa-1","b64":false}`, right), wrong +
			"the token's header is not that of an access token"},
		{"a header twice", i.Sign(`{"alg":"none","alg":"RS256","kid":"rsa-1"}`, right), wrong +
			"the token's header is not that of an access token"},
		{"type ID", i.Sign(`{"alg":"RS256","kid":"rsa-1","typ":"logout+jwt"}`, right), wrong +
			"the token's header is not that of an access token"},
		{"another payload", strings.Replace(claims(nil), ".ey", ".eyJ4IjoxfQ", 1), wrong +
			"the token's claims are not understood"},
		{"another's signature", spliced(claims(map[string]any{"sub": "root"}), claims(nil)), wrong +
			"the token is signed with an unknown key"},
	})
	if n := i.RequestCount("/realms/a/evil") + i.RequestCount("/evil"); n > 0 {
		t.Errorf("a place that a token named was asked %d times", n)
	}
}

// TestOA9Claims has the rows of the matrix about what JWTs say, by their names.
func TestOA9Claims(t *testing.T) {
	i, now := mcptest.NewTokenIssuer(t, "/realms/a"), time.Now()
	ada, right := "ada@"+i.URL, payloadOf(t, i, nil)
	claims := func(change map[string]any) string { return i.Token(i.Claims(resource, change)) }
	in := func(d time.Duration) int64 { return now.Add(d).Unix() }
	tryTokens(t, i, now, []tokenRow{
		{"expired", claims(map[string]any{"exp": in(-time.Minute)}), wrong + "the token has expired"},
		{"just expired, within the skew", claims(map[string]any{"exp": in(-20 * time.Second)}), ada},
		{"no exp", claims(map[string]any{"exp": nil}), wrong + "the token has no expiry time"},
		{"exp in milliseconds", claims(map[string]any{"exp": now.UnixMilli()}), wrong +
			"the token's claims are not understood"},
		{"exp as a text", claims(map[string]any{"exp": fmt.Sprint(in(time.Hour))}), wrong +
			"the token's claims are not understood"},
		{"exp with a fraction", claims(map[string]any{"exp": float64(in(time.Hour)) + 0.5}), ada},
		{"nbf", claims(map[string]any{"nbf": in(time.Minute)}), wrong + "the token is not valid yet"},
		{"nbf within the skew", claims(map[string]any{"nbf": in(20 * time.Second)}), ada},
		{"huge", claims(map[string]any{"x": strings.Repeat("x", maxToken)}), wrong + "the token is too long, or empty"},
		{"large", claims(map[string]any{"x": strings.Repeat("x", maxToken/2)}), ada},
		{"empty", "", wrong + "the token is too long, or empty"},
		{"no JSON", i.Sign(`{"alg":"RS256","kid":"rsa-1"}`, `hello`), wrong + "the token's claims are not understood"},
		{"an array", i.Sign(`{"alg":"RS256","kid":"rsa-1"}`, `[]`), wrong + "the token's claims are not understood"},
		{"duplicate claims", i.Sign(`{"alg":"RS256","kid":"rsa-1"}`, `{"sub":"root",`+right[1:]), wrong +
			"the token's claims are not understood"},
		{"duplicate claims, one escaped", i.Sign(`{"alg":"RS256","kid":"rsa-1"}`, `{"\u0073ub":"root",`+right[1:]),
			wrong + "the token's claims are not understood"},
		{"missing sub", claims(map[string]any{"sub": nil}), wrong + "the token has no subject"},
		{"empty sub", claims(map[string]any{"sub": ""}), wrong + "the token has no subject"},
		{"sub as a number", claims(map[string]any{"sub": 1}), wrong + "the token's claims are not understood"},
		{"sub of several lines", claims(map[string]any{"sub": "ada\nroot"}), wrong +
			"the token's subject is too long or has control characters"},
		{"other issuer", claims(map[string]any{"iss": "https://evil.example"}), wrong +
			"the token is from another issuer"},
		{"issuer with a slash", claims(map[string]any{"iss": i.URL + "/"}), wrong + "the token is from another issuer"},
		{"other tenant", claims(map[string]any{"iss": strings.TrimSuffix(i.URL, "a") + "b"}), wrong +
			"the token is from another issuer"},
		{"no issuer", claims(map[string]any{"iss": nil}), wrong + "the token is from another issuer"},
		{"ID token", claims(map[string]any{"at_hash": "x"}), wrong + "the token is not an access token"},
		{"ID token with a nonce", i.Sign(`{"alg":"RS256","kid":"rsa-1","typ":"JWT"}`,
			payloadOf(t, i, map[string]any{"nonce": "x"})), wrong + "the token is not an access token"},
		{"ID token of Keycloak", claims(map[string]any{"typ": "ID"}), wrong + "the token is not an access token"},
		{"access token with a nonce", claims(map[string]any{"nonce": "x"}), ada},
		{"bound to a key", claims(map[string]any{"cnf": map[string]string{"jkt": "x"}}), wrong +
			"the token is bound to a key, and was sent as a bearer token"},
		{"encrypted", "e30.a.b.c.d", wrong + "the token is not a JWT"},
	})
}

// TestOA5Audience has the rows about what a token is for.
func TestOA5Audience(t *testing.T) {
	i := mcptest.NewTokenIssuer(t, "")
	const refused = wrong + "the token is for another resource"
	for _, tt := range []struct {
		name          string
		resource, set string
		aud           any
		want          string
	}{
		{"right", resource, "", resource, ""},
		{"token for another resource", resource, "", "https://other.example/mcp", refused},
		{"missing aud", resource, "", nil, refused},
		{"empty aud", resource, "", "", refused},
		{"array aud", resource, "", []string{"https://other.example", resource}, ""},
		{"array aud of others", resource, "", []string{"https://other.example", "gate"}, refused},
		{"array aud with a number", resource, "", []any{1, resource}, wrong + "the token's claims are not understood"},
		{"path-different resource", resource, "", "https://gate.example/mcp2", refused},
		{"path-different resource above", resource, "", "https://gate.example", refused},
		{"a slash behind a path", resource, "", resource + "/", refused},
		{"upper-case host", resource, "", "https://GATE.example/mcp", refused},
		{"other port", resource, "", "https://gate.example:8443/mcp", refused},
		{"http", resource, "", "http://gate.example/mcp", refused},
		{"no path, and a slash", "https://gate.example", "", "https://gate.example/", ""},
		{"a slash, and no path", "https://gate.example/", "", "https://gate.example", ""},
		{"an audience of its own", resource, "api://gate", "api://gate", ""},
		{"an audience of its own, and the resource", resource, "api://gate", resource, refused},
		{"a door without a URL", "", "", "", refused},
		{"a client id", resource, "", "app", refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := verifier(t, Options{Audience: tt.set}, i)
			token := i.Token(i.Claims("", map[string]any{"aud": tt.aud}))
			want := tt.want
			if want == "" {
				want = "ada@" + i.URL
			}
			c, err := v.Authenticate(t.Context(), token, tt.resource)
			got := c.Principal
			if err != nil {
				f := drawbridge.AsFault(err)
				got = string(f.Code) + ": " + f.Step
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	i := mcptest.NewTokenIssuer(t, "")
	table := map[string][]drawbridge.Scope{"tools": {"mcp:*"}, "docs:read": {"mcp:docs", "mcp:wiki"},
		"wiki": {"mcp:wiki"}}
	for _, tt := range []struct {
		name  string
		table map[string][]drawbridge.Scope
		claim map[string]any
		want  []drawbridge.Scope
	}{
		{"all servers", nil, map[string]any{"scope": "openid mcp"}, []drawbridge.Scope{"mcp:*"}},
		{"one server", nil, map[string]any{"scope": "mcp:docs  mcp:docs mcp:wiki"},
			[]drawbridge.Scope{"mcp:docs", "mcp:wiki"}},
		{"wildcards refused", nil, map[string]any{"scope": "* mcp:* mcp:d* *mcp"}, nil},
		{"others' scopes", nil, map[string]any{"scope": "openid profile email mcpx mcp:"}, nil},
		{"no scope", nil, map[string]any{"scope": nil}, nil},
		{"an empty scope", nil, map[string]any{"scope": ""}, nil},
		{"scp", nil, map[string]any{"scope": nil, "scp": []string{"mcp:docs", "mcp:wiki"}},
			[]drawbridge.Scope{"mcp:docs", "mcp:wiki"}},
		{"scp in one text", nil, map[string]any{"scope": nil, "scp": "mcp:docs mcp:wiki"},
			[]drawbridge.Scope{"mcp:docs", "mcp:wiki"}},
		{"scope before scp", nil, map[string]any{"scope": "mcp:docs", "scp": []string{"mcp"}},
			[]drawbridge.Scope{"mcp:docs"}},
		{"a table", table, map[string]any{"scope": "docs:read wiki"}, []drawbridge.Scope{"mcp:docs", "mcp:wiki"}},
		{"a table, and our words", table, map[string]any{"scope": "mcp mcp:docs *"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := verifier(t, Options{Scopes: tt.table}, i)
			c, err := v.Authenticate(t.Context(), i.Token(i.Claims(resource, tt.claim)), resource)
			if diff := cmp.Diff(tt.want, c.Scopes); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if code := drawbridge.AsFault(err); tt.want == nil &&
				(code == nil || code.Code != drawbridge.PolicyBlocked) {
				t.Errorf("without a scope that counts: %v", err)
			}
		})
	}
	if diff := cmp.Diff([]string{"mcp"}, verifier(t, Options{}, i).AcceptedScopes()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"docs:read", "tools", "wiki"}, verifier(t, Options{Scopes: table},
		i).AcceptedScopes()); diff != "" {
		t.Error(diff)
	}
}

// TestTwoIssuers shows that no issuer speaks for another: not by its name, and not by a subject of the same name.
func TestTwoIssuers(t *testing.T) {
	a, b := mcptest.NewTokenIssuer(t, "/realms/a"), mcptest.NewTokenIssuer(t, "/realms/b")
	v := verifier(t, Options{}, a, b)
	for _, tt := range []struct{ token, want string }{
		{a.Token(a.Claims(resource, nil)), "ada@" + a.URL},
		{b.Token(b.Claims(resource, nil)), "ada@" + b.URL},
		{b.Token(b.Claims(resource, map[string]any{"iss": a.URL})), wrong + "the token is signed with an unknown key"},
		{b.Token(b.Claims(resource, map[string]any{"sub": "ada@" + a.URL})), "ada@" + a.URL + "@" + b.URL},
	} {
		if got := outcome(t, v, tt.token); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestPrograms(t *testing.T) {
	i := mcptest.NewTokenIssuer(t, "")
	of := func(sub, client any) string {
		return i.Token(i.Claims(resource, map[string]any{"sub": sub, "client_id": client}))
	}
	for _, tt := range []struct {
		programs    bool
		sub, client any
		want        string
	}{
		{false, nil, "app", wrong + "the token has no subject"},
		{true, nil, "app", "program:app@" + i.URL},
		{true, nil, nil, wrong + "the token has no subject"},
		{true, "app", "app", "app@" + i.URL},
		{true, "program:app", "x", wrong + "the token's subject is named as a program"},
		{false, "program:app", "x", "program:app@" + i.URL},
	} {
		if got := outcome(t, verifier(t, Options{AllowPrograms: tt.programs}, i),
			of(tt.sub, tt.client)); got != tt.want {
			t.Errorf("%+v: got %s", tt, got)
		}
	}
}

// TestKeys follows an issuer's keys through rotation, failure and a flood of wrong tokens.
func TestKeys(t *testing.T) {
	i, now := mcptest.NewTokenIssuer(t, ""), newClock()
	v := verifier(t, Options{Now: now.Now}, i)
	n := 0
	fresh := func() string { // no two tokens are alike, so that none is remembered
		n++
		return i.Token(i.Claims(resource, map[string]any{"jti": n, "exp": now.Now().Add(24 * time.Hour).Unix()}))
	}
	ada := "ada@" + i.URL
	expect := func(what, token, want string, asked int) {
		t.Helper()
		if got := outcome(t, v, token); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
		if got := i.RequestCount(mcptest.KeysPath); got != asked {
			t.Errorf("%s: the keys were asked for %d times, want %d", what, got, asked)
		}
	}
	expect("the first", fresh(), ada, 1)
	expect("the next", fresh(), ada, 1)
	i.Rotate("rsa-2")
	const unknown = wrong + "the token is signed with an unknown key"
	for range 20 {
		expect("a new key at once", fresh(), unknown, 1)
	}
	now.pass(refreshInterval)
	expect("a new key a minute later", fresh(), ada, 2)
	for k := range 20 {
		expect("a flood", i.Sign(fmt.Sprintf(`{"alg":"RS256","kid":"k%d"}`, k), `{"iss":"`+i.URL+`","exp":9999999999}`),
			unknown, 2)
	}
	now.pass(keysFreshTime)
	i.SetDown(true)
	expect("the issuer is down", fresh(), ada, 2)
	expect("a new key, and the issuer is down", i.Sign(`{"alg":"RS256","kid":"rsa-3"}`, `{"iss":"`+i.URL+
		`","exp":9999999999}`),
		"transient: the issuer of the token cannot be reached", 2)
	now.pass(keysMaxAge)
	expect("down for too long", fresh(), "transient: the issuer of the token cannot be reached", 2)
	i.SetDown(false)
	expect("up again, and asked just now", fresh(), "transient: the issuer of the token cannot be reached", 2)
	now.pass(retryInterval)
	expect("up again", fresh(), ada, 3)
}

// TestOA7Metadata has the rows about what an issuer's metadata lead to.
func TestOA7Metadata(t *testing.T) {
	const meta = "/.well-known/oauth-authorization-server"
	say := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for _, tt := range []struct {
		name, path string
		answer     func(i *mcptest.TokenIssuer) http.HandlerFunc
		want       string
	}{
		{"mismatched issuer", meta, func(i *mcptest.TokenIssuer) http.HandlerFunc {
			return say(`{"issuer":"https://evil.example","jwks_uri":"` + i.URL + `/keys"}`)
		}, "they are of another issuer"},
		{"http", meta, func(i *mcptest.TokenIssuer) http.HandlerFunc {
			return say(`{"issuer":"` + i.URL + `","jwks_uri":"http://192.0.2.1/keys"}`)
		}, "it must be https, or http on loopback"},
		{"no keys", meta, func(i *mcptest.TokenIssuer) http.HandlerFunc { return say(`{"issuer":"` + i.URL + `"}`) },
			"it must be an https URL"},
		{"10 MB document", meta, func(*mcptest.TokenIssuer) http.HandlerFunc {
			return say(`{"x":"` + strings.Repeat("x", 10<<20) + `"}`)
		}, "the answer is too long"},
		{"redirect", meta, func(*mcptest.TokenIssuer) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://evil.example/", http.StatusFound)
			}
		}, "it leads elsewhere"},
		{"redirect without an end", meta, func(*mcptest.TokenIssuer) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }
		}, "it leads elsewhere"},
		{"no JSON", mcptest.KeysPath, func(*mcptest.TokenIssuer) http.HandlerFunc { return say(`canary`) },
			"the answer is not valid JSON"},
		{"symmetric keys", mcptest.KeysPath, func(*mcptest.TokenIssuer) http.HandlerFunc {
			return say(`{"keys":[{"kty":"oct","kid":"rsa-1","k":"aHVudGVyMg"}]}`)
		}, "there is none to check signatures with"},
		{"cut off", mcptest.KeysPath, func(*mcptest.TokenIssuer) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1000")
				_, _ = io.WriteString(w, `{"keys":"canary`)
			}
		}, "the answer is cut off"},
		{"no HTTP", mcptest.KeysPath, func(*mcptest.TokenIssuer) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					_, _ = io.WriteString(conn, "canary\r\n\r\n")
					_ = conn.Close()
				}
			}
		}, "the issuer's answer is invalid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := mcptest.NewTokenIssuer(t, "")
			i.SetHandler(tt.path, tt.answer(i))
			_, err := verifier(t, Options{}, i).Authenticate(t.Context(), i.Token(i.Claims(resource, nil)), resource)
			f := drawbridge.AsFault(err)
			if f == nil || f.Code != drawbridge.Transient || !strings.Contains(err.Error(), tt.want) ||
				strings.Contains(err.Error(), "canary") {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestMetadataPlaces has an issuer that knows one of the places only.
func TestMetadataPlaces(t *testing.T) {
	for _, place := range []string{
		"/.well-known/oauth-authorization-server/realms/a", "/.well-known/openid-configuration/realms/a",
		"/realms/a/.well-known/openid-configuration",
	} {
		i := mcptest.NewTokenIssuer(t, "/realms/a")
		i.SetHandler("/.well-known/oauth-authorization-server/realms/a", http.NotFound)
		i.SetHandler(place, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.URL, strings.TrimSuffix(i.URL, "/realms/a")+
				mcptest.KeysPath)
		})
		if got := outcome(t, verifier(t, Options{}, i), i.Token(i.Claims(resource, nil))); got != "ada@"+i.URL {
			t.Errorf("%s: %s", place, got)
		}
	}
	want := []string{"https://a.example/.well-known/oauth-authorization-server",
		"https://a.example/.well-known/openid-configuration"}
	if diff := cmp.Diff(want, metadataURLs("https://a.example/")); diff != "" {
		t.Error(diff)
	}
}

func TestWrongOptions(t *testing.T) {
	good := []string{"https://a.example"}
	in := Introspection{URL: "https://a.example/i", ClientID: "gate", Secret: drawbridge.NewSecret("hunter2")}
	for name, o := range map[string]Options{
		"no issuer":            {},
		"http":                 {Issuers: []string{"http://a.example"}},
		"a file":               {Issuers: []string{"file:///etc/passwd"}},
		"a query":              {Issuers: []string{"https://a.example?x=1"}},
		"a user":               {Issuers: []string{"https://u@a.example"}},
		"an @":                 {Issuers: []string{"https://a.example/@b"}},
		"a fragment":           {Issuers: []string{"https://a.example#"}},
		"a large skew":         {Issuers: good, ClockSkew: time.Hour},
		"a skew below 0":       {Issuers: good, ClockSkew: -1},
		"a table of nothing":   {Issuers: good, Scopes: map[string][]drawbridge.Scope{"a": {}}},
		"a scope with a quote": {Issuers: good, Scopes: map[string][]drawbridge.Scope{`a"`: {"mcp:*"}}},
		"a scope of two words": {Issuers: good, Scopes: map[string][]drawbridge.Scope{"a": {"mcp:x y"}}},
		"introspection without secret": {Issuers: good, Introspection: Introspection{URL: "https://a.example/i",
			ClientID: "x"}},
		"introspection without URL": {Issuers: good, Introspection: Introspection{ClientID: "x"}},
		"introspection over http": {Issuers: good, Introspection: Introspection{URL: "http://a.example/i",
			ClientID: "x", Secret: in.Secret}},
		"introspection of two": {Issuers: []string{"https://a.example", "https://b.example"},
			Introspection: in},
	} {
		_, err := New(o)
		if f := drawbridge.AsFault(err); f == nil || f.Code != drawbridge.InvalidInput ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
