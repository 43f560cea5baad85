package oauthtest_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/google/go-cmp/cmp"
)

// An answer is what came back to a request by hand.
type answer struct {
	Status int
	Type   string
	JSON   map[string]any
	Text   string
	Header http.Header
}

func do(t *testing.T, p *oauthtest.Provider, r *http.Request) answer {
	t.Helper()
	client := *p.HTTP()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(r.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{Status: response.StatusCode, Type: response.Header.Get("Content-Type"), Text: string(text),
		Header: response.Header}
	_ = json.Unmarshal(text, &a.JSON)
	return a
}

func get(t *testing.T, p *oauthtest.Provider, at string) answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, p, r)
}

func post(t *testing.T, p *oauthtest.Provider, at oauthtest.Endpoint, form url.Values, login ...string) answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, p.URL(at), strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if len(login) == 2 {
		r.SetBasicAuth(login[0], login[1])
	}
	return do(t, p, r)
}

// registered are options with one public and one confidential client.
func registered(k oauthtest.Knobs) oauthtest.Options {
	return oauthtest.Options{Knobs: k, Clients: []oauthtest.Client{
		{ID: "public", Redirects: []string{callback}},
		{ID: "shop", Secret: "s3cret", Redirects: []string{callback}},
	}}
}

const verifier = "a-verifier-of-the-forty-three-characters-it-needs"

// question is an authorization request of the public client.
func question(p *oauthtest.Provider) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	return url.Values{
		"response_type": {"code"}, "client_id": {"public"}, "redirect_uri": {callback}, "state": {"state"},
		"resource":       {p.ResourceURL},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
}

// authorized gives the query of the callback.
func authorized(t *testing.T, p *oauthtest.Provider, q url.Values) url.Values {
	t.Helper()
	at, err := p.SignInRedirect(t.Context(), p.URL(oauthtest.Authorize)+"?"+q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

// exchange is the request for the tokens of a code.
func exchange(p *oauthtest.Provider, code string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"public"}, "code": {code}, "redirect_uri": {callback},
		"code_verifier": {verifier}, "resource": {p.ResourceURL},
	}
}

func renew(p *oauthtest.Provider, token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {"public"}, "refresh_token": {token},
		"resource": {p.ResourceURL}}
}

// tokens signs the public client in.
func tokens(t *testing.T, p *oauthtest.Provider) answer {
	t.Helper()
	a := post(t, p, oauthtest.Token, exchange(p, authorized(t, p, question(p)).Get("code")))
	if a.Status != http.StatusOK {
		t.Fatalf("token endpoint: %d %s", a.Status, a.Text)
	}
	return a
}

func text(a answer, name string) string { s, _ := a.JSON[name].(string); return s }

// TestAuthorizationRefused is what an honest provider refuses: the table has what is changed in a good request.
func TestAuthorizationRefused(t *testing.T) {
	p := oauthtest.New(t, registered(oauthtest.Knobs{}))
	for _, tt := range []struct{ name, member, value, want string }{
		{"no PKCE", "code_challenge_method", "", "invalid_request"},
		{"plain PKCE", "code_challenge_method", "plain", "invalid_request"},
		{"no resource", "resource", "", "invalid_target"},
		{"another resource", "resource", "https://example.com", "invalid_target"},
		{"another response type", "response_type", "token", "unsupported_response_type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := question(p)
			q.Set(tt.member, tt.value)
			got := authorized(t, p, q)
			got.Del("error_description")
			if diff := cmp.Diff(url.Values{"error": {tt.want}, "state": {"state"}, "iss": {p.Issuer}},
				got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRedirectURIs(t *testing.T) {
	for _, tt := range []struct {
		name, uri string
		knobs     oauthtest.Authorization
		ok        bool
	}{
		{"the same", callback, oauthtest.Authorization{}, true},
		{"another port", "http://127.0.0.1:4321/callback", oauthtest.Authorization{}, true},
		{"another port, where it counts", "http://127.0.0.1:4321/callback", oauthtest.Authorization{ExactPort: true},
			false},
		{"another name of the loopback", "http://localhost:1/callback", oauthtest.Authorization{}, false},
		{"another name, where that is the same", "http://localhost:1/callback",
			oauthtest.Authorization{LoopbackNames: true}, true},
		{"a trailing slash", callback + "/", oauthtest.Authorization{}, false},
		{"a query", callback + "?x=1", oauthtest.Authorization{}, false},
		{"user information", "http://a@127.0.0.1:1/callback", oauthtest.Authorization{}, false},
		{"another path, encoded", "http://127.0.0.1:1/%63allback", oauthtest.Authorization{}, false},
		{"another host", "http://example.com/callback", oauthtest.Authorization{}, false},
		{"none", "", oauthtest.Authorization{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := oauthtest.New(t, registered(oauthtest.Knobs{Authorization: tt.knobs}))
			q := question(p)
			q.Set("redirect_uri", tt.uri)
			a := get(t, p, p.URL(oauthtest.Authorize)+"?"+q.Encode())
			want := http.StatusBadRequest
			if tt.ok {
				want = http.StatusSeeOther
			}
			if a.Status != want {
				t.Errorf("status = %d, want %d", a.Status, want)
			}
		})
	}
}

// TestWhatTheBrowserBrings is the callback's query under the knobs of the authorization endpoint.
func TestWhatTheBrowserBrings(t *testing.T) {
	for _, tt := range []struct {
		name  string
		knobs oauthtest.Authorization
		want  url.Values
	}{
		{"no iss", oauthtest.Authorization{Iss: "-"}, url.Values{"state": {"state"}}},
		{"a wrong iss", oauthtest.Authorization{Iss: "{issuer}/"}, url.Values{"state": {"state"},
			"iss": {"{issuer}/"}}},
		{"no state", oauthtest.Authorization{State: "-"}, url.Values{"iss": {"{issuer}"}}},
		{"a wrong state", oauthtest.Authorization{State: "other"}, url.Values{"state": {"other"}, "iss": {"{issuer}"}}},
		{"an error", oauthtest.Authorization{Error: "access_denied"}, url.Values{"error": {"access_denied"},
			"state": {"state"}, "iss": {"{issuer}"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := oauthtest.New(t, registered(oauthtest.Knobs{Authorization: tt.knobs}))
			got := authorized(t, p, question(p))
			got.Del("code")
			got.Del("error_description")
			for _, values := range tt.want {
				values[0] = strings.ReplaceAll(values[0], "{issuer}", p.Issuer)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCodesRefused is what is wrong with the exchange of a code.
func TestCodesRefused(t *testing.T) {
	p := oauthtest.New(t, registered(oauthtest.Knobs{}))
	for _, tt := range []struct{ name, member, value, want string }{
		{"wrong verifier", "code_verifier", "wrong", "invalid_grant"},
		{"no verifier", "code_verifier", "", "invalid_grant"},
		{"another redirect URI", "redirect_uri", "http://127.0.0.1:2/callback", "invalid_grant"},
		{"another client", "client_id", "shop", "invalid_client"},
		{"no resource", "resource", "", "invalid_target"},
		{"no such code", "code", "made up", "invalid_grant"},
		{"no such grant", "grant_type", "password", "unsupported_grant_type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := exchange(p, authorized(t, p, question(p)).Get("code"))
			q.Set(tt.member, tt.value)
			if a := post(t, p, oauthtest.Token, q); a.JSON["error"] != tt.want {
				t.Errorf("got %d %s, want %s", a.Status, a.Text, tt.want)
			}
		})
	}
}

func TestACodeTwiceEndsTheSession(t *testing.T) {
	p := oauthtest.New(t, registered(oauthtest.Knobs{}))
	code := authorized(t, p, question(p)).Get("code")
	first := post(t, p, oauthtest.Token, exchange(p, code))
	second := post(t, p, oauthtest.Token, exchange(p, code))
	third := post(t, p, oauthtest.Token, renew(p, text(first, "refresh_token")))
	if first.Status != 200 || text(second, "error") != "invalid_grant" || text(third, "error") != "invalid_grant" {
		t.Errorf("got %s, %s, %s", first.Text, second.Text, third.Text)
	}
}

// TestTokenAnswers is the answer of the token endpoint under its knobs.
func TestTokenAnswers(t *testing.T) {
	type members = map[string]any
	for _, tt := range []struct {
		name  string
		knobs oauthtest.Tokens
		want  members
	}{
		{"honest", oauthtest.Tokens{}, members{"token_type": "Bearer", "scope": "mcp", "expires_in": 3600.0}},
		{"no expires_in", oauthtest.Tokens{ExpiresIn: oauthtest.ExpiresAbsent}, members{"token_type": "Bearer",
			"scope": "mcp"}},
		{"expires_in as a text", oauthtest.Tokens{ExpiresIn: oauthtest.ExpiresText, Life: time.Minute},
			members{"token_type": "Bearer", "scope": "mcp", "expires_in": "60"}},
		{"expires_in that is nonsense", oauthtest.Tokens{ExpiresIn: `"soon"`}, members{"token_type": "Bearer",
			"scope": "mcp", "expires_in": "soon"}},
		{"no token_type", oauthtest.Tokens{NoType: true}, members{"scope": "mcp", "expires_in": 3600.0}},
		{"other token_type", oauthtest.Tokens{Type: "bearer"}, members{"token_type": "bearer", "scope": "mcp",
			"expires_in": 3600.0}},
		{"no scope", oauthtest.Tokens{NoScope: true}, members{"token_type": "Bearer", "expires_in": 3600.0}},
		{"other scope", oauthtest.Tokens{Scope: "less"}, members{"token_type": "Bearer", "scope": "less",
			"expires_in": 3600.0}},
		{"an error with the status 200", oauthtest.Tokens{Error: "bad_verification_code", Errors200: true},
			members{"error": "bad_verification_code"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := oauthtest.New(t, registered(oauthtest.Knobs{Tokens: tt.knobs}))
			got := tokens(t, p).JSON
			for _, name := range []string{"access_token", "refresh_token", "error_description"} {
				delete(got, name)
			}
			if diff := cmp.Diff(tt.want, members(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFormEncodedAnswer(t *testing.T) {
	p := oauthtest.New(t, registered(oauthtest.Knobs{Tokens: oauthtest.Tokens{Form: true, Opaque: true}}))
	a := tokens(t, p)
	got, err := url.ParseQuery(a.Text)
	if err != nil || a.Type != "application/x-www-form-urlencoded" {
		t.Fatalf("%s: %v", a.Type, err)
	}
	for _, name := range []string{"access_token", "refresh_token"} {
		if got.Get(name) == "" {
			t.Errorf("no %s", name)
		}
		got.Del(name)
	}
	if diff := cmp.Diff(url.Values{"token_type": {"Bearer"}, "scope": {"mcp"}, "expires_in": {"3600"}},
		got); diff != "" {
		t.Error(diff)
	}
}

func TestRotation(t *testing.T) {
	for _, tt := range []struct {
		name  string
		knobs oauthtest.Tokens
		// fresh says that a refresh gives a new refresh token, again that the old one is still good after it, and alive
		// that the new one is good after both.
		fresh, again, alive bool
		reuses              int
	}{
		{"a spent token ends all", oauthtest.Tokens{}, true, false, false, 1},
		{"a spent token within the grace", oauthtest.Tokens{Grace: time.Hour}, true, true, true, 0},
		{"the same again", oauthtest.Tokens{Rotation: "same"}, false, true, true, 0},
		{"none in the answer", oauthtest.Tokens{Rotation: "omit"}, false, true, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := oauthtest.New(t, registered(oauthtest.Knobs{Tokens: tt.knobs}))
			old := text(tokens(t, p), "refresh_token")
			first := post(t, p, oauthtest.Token, renew(p, old))
			now := either(text(first, "refresh_token"), old)
			second := post(t, p, oauthtest.Token, renew(p, old))
			third := post(t, p, oauthtest.Token, renew(p, now))
			got := []bool{now != old, second.Status == 200, third.Status == 200}
			if diff := cmp.Diff([]bool{tt.fresh, tt.again, tt.alive}, got); diff != "" {
				t.Error(diff)
			}
			if n := p.Counts().Reuses; n != tt.reuses {
				t.Errorf("reuses = %d, want %d", n, tt.reuses)
			}
		})
	}
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
