package oauth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// FuzzCallback has what a browser, or a person, brings back. What is taken says something, once, and is what the same
// words mean to a browser; what a person pastes means what the same query means. It is row FZ-19.
func FuzzCallback(f *testing.F) {
	for _, seed := range []string{
		"", "?", "code=c&state=s", "http://127.0.0.1:1/callback?code=c&state=s&iss=http%3A%2F%2Fas",
		"?code=c&state=s#_=_", `"code=c"`,
		"error=access_denied&error_description=no&state=s", "code=c&code=d", "state=s&state=t", "%zz", "a;b",
		"code=%00", "code=c+d", "<http://x/?code=c>",
		"https://as/authorize?state=s&client_id=x", "code=\u202e", strings.Repeat("a", maxCallback+1),
		"http://[::1]:1/callback?code=c&state=s", "?a?code=c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := parseCallback(text)
		if err == nil {
			for _, name := range []string{"state", "code", "iss", "error", "error_description"} {
				if len(values[name]) > 1 {
					t.Errorf("%s is there twice", name)
				}
			}
			again, err := parseCallback(values.Encode())
			if len(text) < maxCallback/4 && (err != nil || again.Encode() != values.Encode()) {
				t.Errorf("%q is %q, %v", values.Encode(), again.Encode(), err)
			}
		} else if values != nil {
			t.Error("values beside an error")
		}
		pasted, perr := parsePasted(text)
		if perr == nil && !hasResponse(pasted) {
			t.Error("nothing was said, and taken")
		}
		if perr == nil && len(text) < maxCallback/4 {
			for _, form := range []string{pasted.Encode(), "?" + pasted.Encode(), " http://127.0.0.1:1/callback?" +
				pasted.Encode() + "#x\n"} {
				if again, err := parsePasted(form); err != nil || again.Encode() != pasted.Encode() {
					t.Errorf("%q is %q, %v", form, again.Encode(), err)
				}
			}
		}
		for _, err := range []error{err, perr} {
			if err != nil && len(text) > 8 && strings.Contains(err.Error(), text) {
				t.Errorf("%v repeats what came", err)
			}
		}
	})
}

// FuzzChallenge has what a server says when it refuses. What comes of it is a bearer's, has both endpoints, or is
// nothing; one header that makes no sense hides no other. It is row FZ-19.
func FuzzChallenge(f *testing.F) {
	for _, seed := range []string{
		"", "Bearer", "bearer", `Bearer resource_metadata="https://a/b", scope="a b", error="invalid_token"`,
		`Basic realm="x", Bearer scope="y"`,
		`Bearer realm="https://a/authorize", token_url="https://a/token"`,
		`Bearer authorization_uri="https://a?client_id=c&scope=s", token_uri="https://a/t"`,
		`Bearer scope=a`, `Bearer scope="a\"b"`, `Bearer "`, `"`, `Bearer =`, `Bearer a==`,
		`DPoP algs="x", Bearer error="insufficient_scope", scope="a"`,
		`Bearer error_description="a, b=c", scope="d"`, "Bearer scope=\"\x00\u202e\"", `Negotiate YII=`,
		`Bearer scope="unterminated`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		params := bearerParams([]string{header})
		if params != nil && !strings.Contains(strings.ToLower(header), "bearer") {
			t.Errorf("%q is a bearer's", header)
		}
		const good = `Bearer scope="a b", error="insufficient_scope", resource_metadata="https://a/b", x="1", y="2", z="3", q="4", r="5", s="6"`
		if got := bearerParams([]string{header, good}); len(got) < 9 {
			t.Errorf("%q hides another", header)
		}
		if s := endpointsInHeaders([]string{header}); s != nil {
			checkSite(t, *s)
		}
		demand := parseChallenge(http.StatusUnauthorized, http.Header{"Www-Authenticate": {header}}, nil)
		if other := parseChallenge(http.StatusForbidden, http.Header{"Www-Authenticate": {header}},
			nil); demand.cacheKey(nil) == other.cacheKey(nil) ||
			demand.cacheKey(nil) == demand.cacheKey([]string{"x"}) {
			t.Error("two demands are one")
		}
		n := &SignInRequiredError{Scopes: strings.Fields(params["scope"])}
		if text := n.Error(); strings.ContainsFunc(text, func(r rune) bool {
			return unicode.IsControl(r) ||
				unicode.Is(unicode.Cf, r)
		}) || len(text) > 500 {
			t.Errorf("%q is for people", text)
		}
	})
}

// checkSite checks what is always so of endpoints that a refusal names.
func checkSite(t *testing.T, s authServer) {
	t.Helper()
	if s.Authorization == "" || s.Token == "" {
		t.Errorf("%+v", s)
	}
	if s.validate() != nil {
		return
	}
	if s.Issuer == "" {
		t.Errorf("nobody is the issuer of %+v", s)
	}
	for _, address := range []string{s.Authorization, s.Token, s.Registration} {
		u, err := url.Parse(address)
		if address == "" {
			continue
		}
		if err != nil || u.User != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" &&
			safehttp.IsLoopback(u.Hostname())) || len(address) > safehttp.MaxURLBytes ||
			strings.HasPrefix(address, "-") || strings.ContainsAny(address, " \t\r\n\"'`<>\\\x00") &&
			!strings.Contains(address, "'") {
			t.Errorf("%q was taken", address)
		}
	}
}

// FuzzMetadata has a document: the body of a refusal, or metadata. Endpoints that pass are fit to be called and shown.
// It is row FZ-19.
func FuzzMetadata(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", "[]", `{"oauth":{"authorization_url":"https://a/a","token_url":"https://a/t"}}`,
		`{"authorizationUrl":"https://a/a?client_id=x&scope=a+b","tokenUrl":"https://a/t","scopes":["a"]}`,
		`error 401: {"auth":{"authorization_uri":"https://a","token_uri":"https://b"}}`,
		`{"authorization_endpoint":"javascript:alert(1)","token_endpoint":"https://a/t"}`,
		`{"authorization_endpoint":"https://a","token_endpoint":"file:///x"}`,
		`{"oauth":7,"authorization":null,"auth":[],"authorization_endpoint":"https://a","token_endpoint":"https://a"}`,
		`{"issuer":"https://a","authorization_endpoint":"https://a/a","token_endpoint":"https://a/t","code_challenge_methods_supported":["S256"],"device_authorization_endpoint":"https://a/d"}`,
		`{"authorization_endpoint":"https://u:p@a/","token_endpoint":"https://a\\b"}`,
		`{"scopes":"a b","scope":["c"],"client_id":7}`, "{\"a\":\"\xff\"}", strings.Repeat(`{"auth":`, 1000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s := endpointsInBody([]byte(text)); s != nil {
			checkSite(t, *s)
			if len(text) < 4096 {
				if again := endpointsInBody([]byte("x " + text)); again == nil || again.Token != s.Token {
					t.Errorf("%q hides %q", "x ", text)
				}
			}
		}
		var meta authServerMetadata
		if json.Unmarshal([]byte(text), &meta) == nil && meta.AuthorizationEndpoint != "" {
			s := meta.authServer()
			if s.Issuer == "" {
				s.Issuer = "https://as.example"
			}
			if s.validate() == nil {
				checkSite(t, s)
			}
		}
		said := parseResponse("application/x-www-form-urlencoded", []byte(text))
		if got, err := said.tokenResponse(); err == nil {
			h := http.Header{}
			h.Set("Authorization", "Bearer "+got.access)
			if got.access == "" || got.lifetime < 0 || strings.ContainsAny(got.access, "\r\n\x00 ") {
				t.Errorf("%+v", got)
			}
		}
		_ = said.seconds("expires_in")
	})
}
