package oauth

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

func discovery(d oauthtest.Discovery) oauthtest.Options {
	return oauthtest.Options{Knobs: oauthtest.Knobs{Discovery: d}}
}

// TestWellKnownPlaces has metadata at each place that the specification names, for issuers with and without a path.
func TestWellKnownPlaces(t *testing.T) {
	for _, path := range []string{"", "/tenant", "/a/b"} {
		for _, as := range []oauthtest.MetadataPlace{oauthtest.ASPath, oauthtest.OIDCInserted, oauthtest.OIDCAppended} {
			for _, prm := range []oauthtest.MetadataPlace{oauthtest.PRMPath, oauthtest.PRMRoot,
				oauthtest.PRMElsewhere} {
				o := discovery(oauthtest.Discovery{Places: []oauthtest.MetadataPlace{as, prm}})
				o.IssuerPath = path
				y := meet(t, o, nil)
				y.signIn()
				y.in()
				if got := y.kept().AuthServer; got.Issuer != y.p.Issuer || got.Resource != y.p.ResourceURL ||
					got.Device == "" {
					t.Errorf("%s, %s, issuer %q: %+v", as, prm, path, got)
				}
			}
		}
	}
}

// TestResourceMetadataWithoutChallenge has a server whose refusal says nothing, and whose metadata say all.
func TestResourceMetadataWithoutChallenge(t *testing.T) {
	for _, form := range []oauthtest.ChallengeForm{oauthtest.ChallengeBare, oauthtest.ChallengeNone} {
		for _, place := range []oauthtest.MetadataPlace{oauthtest.PRMPath, oauthtest.PRMRoot} {
			o := discovery(oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.ASPath, place}})
			o.Knobs.Challenge.Form = form
			y := meet(t, o, nil)
			y.signIn()
			y.in()
		}
	}
}

// TestOddPlaces has servers from before there was metadata of resources.
func TestOddPlaces(t *testing.T) {
	for _, place := range []oauthtest.MetadataPlace{oauthtest.ASPath, oauthtest.OIDCRoot, oauthtest.OddMetadata,
		oauthtest.OddMCPAuth, oauthtest.OddAuthorize, ""} {
		for _, form := range []oauthtest.ChallengeForm{oauthtest.ChallengeBare, oauthtest.ChallengeNone} {
			o := discovery(oauthtest.Discovery{Places: []oauthtest.MetadataPlace{place}})
			o.OneOrigin, o.Knobs.Challenge.Form = true, form
			y := meet(t, o, nil)
			y.signIn()
			y.in()
		}
	}
}

// TestAuthServerHint has a server that says where in a header of its own.
func TestAuthServerHint(t *testing.T) {
	for _, place := range []oauthtest.MetadataPlace{oauthtest.ASPath, oauthtest.OIDCAppended, oauthtest.OddMetadata,
		oauthtest.OddMCPAuth} {
		for _, path := range []string{"", "/tenant"} {
			o := discovery(oauthtest.Discovery{Places: []oauthtest.MetadataPlace{place}})
			o.IssuerPath, o.Knobs.Challenge.Form = path, oauthtest.ChallengeAuthServer
			y := meet(t, o, nil)
			y.signIn()
			y.in()
		}
	}
}

// TestChallengePairs has servers that name the endpoints in their challenge, by each name that some use.
func TestChallengePairs(t *testing.T) {
	for _, a := range []string{"authorization_uri", "authorization_url", "authorization_endpoint",
		"authorize_url", "realm"} {
		for _, b := range []string{"token_url", "token_uri", "token_endpoint"} {
			o := discovery(oauthtest.Discovery{Places: []oauthtest.MetadataPlace{}})
			o.Knobs.Challenge = oauthtest.Challenge{Form: oauthtest.ChallengePairs, AuthorizationKey: a, TokenKey: b}
			o.IssuerPath = "/tenant" // whose name is not to be guessed
			o.Knobs.Registration.Absent = true
			o.Clients = []oauthtest.Client{{ID: "known", Redirects: []string{"http://127.0.0.1/callback"}}}
			y := meet(t, o, func(s *Server) { s.ClientID = "known" })
			y.signIn()
			y.in()
		}
	}
}

// TestChallengeBody has servers that name the endpoints in the body, by each name that some use.
func TestChallengeBody(t *testing.T) {
	client := []oauthtest.Client{{ID: "public", Redirects: []string{"http://127.0.0.1/callback"}}}
	run := func(c oauthtest.Challenge, clientID bool) {
		t.Helper()
		o := discovery(oauthtest.Discovery{Places: []oauthtest.MetadataPlace{}})
		c.Form, c.ClientID = oauthtest.ChallengeBody, "public"
		o.Knobs.Challenge, o.Clients = c, client
		y := meet(t, o, nil)
		y.signIn()
		y.in()
		if got := y.kept().Client.ID; (got == "public") != clientID {
			t.Errorf("%+v: client %q", c, got)
		}
	}
	for i, a := range authorizationNames {
		for _, under := range []string{"", "oauth", "authorization", "auth"} {
			run(oauthtest.Challenge{AuthorizationKey: a, TokenKey: tokenNames[(i+len(under))%len(tokenNames)],
				Under: under}, false)
		}
	}
	for _, name := range tokenNames {
		run(oauthtest.Challenge{TokenKey: name}, false)
	}
	for _, name := range clientNames {
		run(oauthtest.Challenge{ClientIDKey: name, Under: "auth"}, true)
	}
	for _, name := range scopeNames {
		run(oauthtest.Challenge{ClientIDKey: "client_id", ScopesKey: name}, true)
		run(oauthtest.Challenge{ClientIDKey: "client_id", ScopesKey: name, ScopeList: true}, true)
	}
	run(oauthtest.Challenge{InQuery: true}, true)
}

// testMetadataRefused is row OA-7: what metadata must not say.
func testMetadataRefused(t *testing.T) {
	set := func(name string, value any) oauthtest.Knobs {
		return oauthtest.Knobs{Discovery: oauthtest.Discovery{Set: map[string]any{name: value}}}
	}
	prm := func(name string, value any) oauthtest.Knobs {
		return oauthtest.Knobs{Discovery: oauthtest.Discovery{SetPRM: map[string]any{name: value}}}
	}
	for _, tt := range []struct {
		name string
		k    oauthtest.Knobs
		says string
	}{
		{"another issuer", set("issuer", "https://evil.example"), "issuer"},
		{"an issuer of another path", set("issuer", "{issuer}/other"), "issuer"},
		{"an issuer that only looks the same", set("issuer", "{issuer}.evil.example"), "issuer"},
		{"no issuer", set("issuer", nil), "issuer"},
		{"10 MB of the resource's", oauthtest.Knobs{Discovery: oauthtest.Discovery{Padding: 10 << 20}}, "bytes"},
		{"a redirect elsewhere", oauthtest.Knobs{Discovery: oauthtest.Discovery{Redirect: "http://127.0.0.1:1/x"}},
			"redirect"},
		{"a redirect to a file", oauthtest.Knobs{Discovery: oauthtest.Discovery{Redirect: "file:///etc/passwd"}},
			"redirect"},
		{"no PKCE", oauthtest.Knobs{Authorization: oauthtest.Authorization{PKCE: "unadvertised"}}, "PKCE"},
		{"plain PKCE", oauthtest.Knobs{Authorization: oauthtest.Authorization{PKCE: "plain"}}, "PKCE"},
		{"no token endpoint", set("token_endpoint", nil), "token endpoint"},
		{"no authorization endpoint", set("authorization_endpoint", nil), "authorization endpoint"},
		{"http elsewhere for tokens", set("token_endpoint", "http://tokens.example/token"), "https"},
		{"http elsewhere for registration", set("registration_endpoint", "http://tokens.example/register"), "https"},
		{"http elsewhere for revocation", set("revocation_endpoint", "http://tokens.example/revoke"), "https"},
		{"a script for tokens", set("token_endpoint", "javascript:alert(1)"), "Invalid OAuth URLs. Please check:"},
		{"a file for registration", set("registration_endpoint", "file:///etc/passwd"),
			"Invalid OAuth URLs. Please check:"},
		{"a name and password", set("token_endpoint", "https://a:b@tokens.example/token"),
			"Invalid OAuth URLs. Please check:"},
		{"a number for an endpoint", set("token_endpoint", 7), "JSON"},
		{"another resource", prm("resource", "https://evil.example/mcp"), "another resource"},
		{"another path's resource", prm("resource", "{resource}/other"), "another resource"},
		{"a path that only begins the same", prm("resource", "{origin}/m"), "another resource"},
		{"no resource", prm("resource", nil), "another resource"},
		{"no authorization server", prm("authorization_servers", []string{}), "do not name an authorization server"},
		{"a script for an authorization server", prm("authorization_servers", []string{"javascript:alert(1)"}),
			"not a valid URL"},
		{"http elsewhere for an authorization server", prm("authorization_servers", []string{"http://as.example"}),
			"https"},
		{"an array", oauthtest.Knobs{Faults: map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.ServerMetadata: {Status: 200, Type: "application/json", Body: "[]"}}}, "JSON"},
		{"cut off", oauthtest.Knobs{Faults: map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.ServerMetadata: {Status: 200, Type: "application/json", Body: `{"issuer":`}}}, "JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y := meet(t, oauthtest.Options{Knobs: tt.k}, nil)
			_, err := y.c.Begin(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v; want it to say %q", err, tt.says)
			}
			if n := len(y.p.Requests(oauthtest.Register, oauthtest.Authorize, oauthtest.Token)); n != 0 {
				t.Errorf("%d requests to endpoints", n)
			}
		})
	}
}

// testAuthorizationAddresses is row OA-8: what is shown to a person, and opened.
func testAuthorizationAddresses(t *testing.T) {
	for _, address := range []string{
		"javascript:alert(1)", "JaVaScRiPt://127.0.0.1/%0aalert(1)", "data:text/html,x", "file:///etc/passwd",
		"vscode://x/y", "ms-settings:x",
		"-https://evil.example/", "--help", "https://a b.example/", "https://evil.example/ x",
		"https://evil.example/\"x", "https://evil.example/`id`",
		"https://evil.example/<x>", "https://evil.example/\x00", "https://evil.example/\n",
		"https://evil.example/\u202ex", "https://evil.example\\x",
		"https://user:pw@evil.example/", "http://evil.example/", "http://127.0.0.1.evil.example/", "//evil.example/x",
		"/x", "https:///x",
		"https://evil.example/" + strings.Repeat("x", 100_000),
	} {
		o := discovery(oauthtest.Discovery{Set: map[string]any{"authorization_endpoint": address}})
		y := meet(t, o, nil)
		f, err := y.c.Begin(t.Context())
		if err == nil {
			t.Errorf("%.60q was taken: %.60q", address, f.url)
			continue
		}
		if !strings.HasPrefix(err.Error(), "Invalid OAuth URLs. Please check: the authorization endpoint ") ||
			len(err.Error()) > 400 {
			t.Errorf("%.60q: %.400v", address, err)
		}
		y = meet(t, oauthtest.Options{}, func(s *Server) {
			s.AuthorizationURL, s.TokenURL, s.ClientID = address, "https://tokens.example/token", "x"
		})
		if f, err := y.c.Begin(t.Context()); err == nil {
			t.Errorf("%.60q of the row was taken: %.60q", address, f.url)
		}
	}
	for _, address := range []string{"https://as.example/$(id)", "https://as.example/a?b=c&d='e'",
		"http://localhost:1/x", "http://[::1]:1/x"} {
		y := meet(t, oauthtest.Options{}, func(s *Server) {
			s.AuthorizationURL, s.TokenURL, s.ClientID = address, "https://tokens.example/token", "x"
		})
		if _, err := y.c.Begin(t.Context()); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// testAuthorizationParameters is row OA-8 too: an endpoint's own parameters do not choose what a sign-in depends on, and
// none stands there twice.
func testAuthorizationParameters(t *testing.T) {
	for _, tail := range []string{
		"?redirect_uri=https://evil.example", "?x=y&redirect_uri=", "?redirect%5Furi=x", "?redirect_uri%5B%5D=x",
		"?redirect.uri=x", "?Redirect_URI=x", "?state=fixed", "?code_challenge=x", "?code_challenge_method=plain",
		"?code_verifier=x", "?request=x", "?request_uri=urn:x", "?a;state=x", "?%zz", "#frag", "#", "?x=y#frag",
	} {
		y := meet(t, discovery(oauthtest.Discovery{Set: map[string]any{"authorization_endpoint": "{issuer}/authorize" +
			tail}}), nil)
		_, err := y.c.Begin(t.Context())
		wants(t, err, "Invalid OAuth URLs. Please check: the authorization endpoint ")
		y = meet(t, oauthtest.Options{}, func(s *Server) {
			s.AuthorizationURL, s.TokenURL, s.ClientID = "https://as.example/a"+tail, "https://as.example/token", "x"
		})
		if _, err := y.c.Begin(t.Context()); err == nil {
			t.Errorf("%q of the row was taken", tail)
		}
	}
	y := meet(t, oauthtest.Options{}, func(s *Server) {
		s.AuthorizationURL = "https://as.example/a?client_id=evil&response_type=token&scope=all&resource=x&prompt=none&" +
			"access_type=offline"
		s.TokenURL, s.ClientID, s.Scopes, s.Resource = "https://as.example/token", "x", "one offline_access", "https://r.example"
	})
	f := y.begin()
	u, err := url.Parse(f.url)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"client_id": "x", "response_type": "code", "scope": "one offline_access",
		"resource": "https://r.example", "prompt": "consent", "access_type": "offline"} {
		if got := u.Query()[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q; want %q alone", name, got, want)
		}
	}
}

// TestConfiguredEndpoints has the row say all: nobody is asked, and who answers may say who they are.
func TestConfiguredEndpoints(t *testing.T) {
	for _, path := range []string{"", "/tenant"} {
		o := discovery(oauthtest.Discovery{Places: []oauthtest.MetadataPlace{}})
		o.IssuerPath = path
		o.Clients = []oauthtest.Client{{ID: "known", Redirects: []string{"http://127.0.0.1/callback"}}}
		y := meet(t, o, nil)
		y.again(func(s *Server) {
			s.AuthorizationURL, s.TokenURL, s.ClientID = y.p.URL(oauthtest.Authorize), y.p.URL(oauthtest.Token), "known"
		})
		y.signIn()
		y.in()
	}
	for _, address := range []string{"http://tokens.example/token", "file:///x"} {
		y := meet(t, oauthtest.Options{}, func(s *Server) {
			s.AuthorizationURL, s.TokenURL,
				s.ClientID = "https://as.example/a", address, "x"
		})
		if _, err := y.c.Begin(t.Context()); err == nil {
			t.Errorf("%s of the row was taken", address)
		}
	}
}

// TestSecondAuthServer has metadata whose first authorization server is away, or says nothing of itself.
func TestSecondAuthServer(t *testing.T) {
	away := httptest.NewServer(nil)
	away.Close()
	silent := httptest.NewServer(http.NotFoundHandler())
	defer silent.Close()
	for _, first := range []string{away.URL, silent.URL} {
		y := meet(t, discovery(oauthtest.Discovery{AuthorizationServers: []string{first, "{issuer}"}}), nil)
		y.signIn()
		y.in()
		if got := y.kept().AuthServer.Issuer; got != y.p.Issuer {
			t.Errorf("signed in at %s, want %s", got, y.p.Issuer)
		}
	}
	y := meet(t, discovery(oauthtest.Discovery{AuthorizationServers: []string{away.URL, away.URL + "/b"}}), nil)
	if _, err := y.c.Begin(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("with none that answers: %v", err)
	}
}

// testIssuerWithASlash has a trailing slash on one side only.
func testIssuerWithASlash(t *testing.T) {
	o := discovery(oauthtest.Discovery{Issuer: "{issuer}/"})
	o.Knobs.Authorization.Iss = "{issuer}/"
	y := meet(t, o, nil)
	y.signIn()
	y.in()
	y = meet(t, discovery(oauthtest.Discovery{AuthorizationServers: []string{"{issuer}/"}}), nil)
	y.signIn()
	y.in()
}

// testPagesForMetadata has a site that answers whatever is asked with a page: that is no metadata.
func testPagesForMetadata(t *testing.T) {
	o := discovery(oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.OIDCRoot}})
	o.OneOrigin, o.Knobs.Challenge.Form = true, oauthtest.ChallengeBare
	o.Knobs.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.Nothing: {Status: 200, Type: "text/html",
		Body: "<!doctype html>"}}
	y := meet(t, o, nil)
	y.signIn()
	y.in()
}

// TestMetadataAway has an authorization server that is away for now: that is no reason to give up.
func TestMetadataAway(t *testing.T) {
	for _, e := range []oauthtest.Endpoint{oauthtest.ResourceMetadata, oauthtest.ServerMetadata, oauthtest.Register} {
		for _, fault := range []oauthtest.Fault{{Status: 503}, {Drop: true}, {Status: 429}} {
			y := meet(t, oauthtest.Options{Knobs: oauthtest.Knobs{Faults: map[oauthtest.Endpoint]oauthtest.Fault{e: fault}}}, nil)
			_, err := y.call("whoami")
			if SignInRequired(err) != nil || transport.FaultCodeOf(err) != drawbridge.Transient || err == nil {
				t.Errorf("%s, %+v: %v, %v", e, fault, err, transport.FaultCodeOf(err))
			}
			wants(t, err, "prepare the sign-in")
			y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Faults = nil })
			y.later(unavailablePause)
			if !y.needed().HasURL() {
				t.Errorf("%s: nothing to visit", e)
			}
		}
	}
}

// TestOneDiscovery has many calls at once, and again: they are told of one address, which was found once.
func TestOneDiscovery(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	var mu sync.Mutex
	var all []string
	var work sync.WaitGroup
	for range 50 {
		work.Go(func() {
			_, err := y.call("whoami")
			mu.Lock()
			defer mu.Unlock()
			if n := SignInRequired(err); n != nil {
				all = append(all, n.URL)
			}
		})
	}
	work.Wait()
	for range 5 {
		all = append(all, y.needed().URL)
	}
	if slices.Sort(all); len(all) != 55 || all[0] == "" || all[0] != all[54] {
		t.Errorf("%d addresses, from %q to %q", len(all), all[0], all[len(all)-1])
	}
	for e, most := range map[oauthtest.Endpoint]int{oauthtest.ResourceMetadata: 1, oauthtest.ServerMetadata: 1,
		oauthtest.Register: 1, oauthtest.Nothing: 0} {
		if n := len(y.p.Requests(e)); n != most {
			t.Errorf("%d requests to %s", n, e)
		}
	}
	f := y.begin()
	if f.url != all[0] {
		t.Errorf("a person is shown another address")
	}
}

// TestNoOAuth has a server that wants a key in a header: a few requests find out that there is no signing in, once,
// and the words are about the headers.
func TestNoOAuth(t *testing.T) {
	for _, challenge := range []string{"", `ApiKey realm="x"`, `Basic realm="x"`, `Bearer`, `Bearer realm="api"`} {
		asked := 0
		var mu sync.Mutex
		srv := newServer(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			if r.URL.Path != "/mcp" {
				http.NotFound(w, r)
				return
			}
			if challenge != "" {
				w.Header().Set("WWW-Authenticate", challenge)
			}
			http.Error(w, `{"error":"missing API key"}`, http.StatusUnauthorized)
		})
		y := &party{t: t, p: nil, vault: newMemoryVault(), log: &logged{}}
		desk := NewManager(ManagerOptions{})
		t.Cleanup(desk.Close)
		y.c = desk.Credential(Server{ID: "keyed", URL: srv.URL + "/mcp"}, nil)
		var err error
		for range 10 {
			_, err = y.call("whoami")
		}
		n := SignInRequired(err)
		if n == nil || n.HasURL() || !strings.HasPrefix(n.Advice("keyed"), "check the headers of its row") {
			t.Errorf("%q: %v", challenge, err)
		}
		mu.Lock()
		if asked > 10+9 {
			t.Errorf("%q: asked %d times", challenge, asked)
		}
		mu.Unlock()
	}
}

// testKeptForAnother is that a credential is given to no other server than its own.
func testKeptForAnother(t *testing.T) {
	y := meet(t, oauthtest.Options{}, func(s *Server) { s.CredentialName = "shared" })
	y.signIn()
	mine := y.p.ResourceURL
	other := oauthtest.New(t, oauthtest.Options{})
	for name, s := range map[string]Server{
		"another origin": {ID: "protected", URL: other.ResourceURL, CredentialName: "shared"},
		"another path":   {ID: "protected", URL: mine + "/other", CredentialName: "shared"},
		"no address":     {ID: "protected", CredentialName: "shared", Issuer: other.Issuer},
		"the same by another": {ID: "protected", URL: strings.Replace(mine, "127.0.0.1", "localhost", 1),
			CredentialName: "shared"},
	} {
		c := y.desk.Credential(s, nil)
		token, err := c.Token(t.Context())
		if token != "" || err == nil || !strings.Contains(err.Error(), "belongs to another server") {
			t.Errorf("%s: token %v, %v", name, token != "", err)
		}
		if _, err := c.Begin(t.Context()); err == nil {
			t.Errorf("%s: begun", name)
		}
	}
	if c := y.desk.Credential(Server{ID: "renamed", URL: mine, CredentialName: "shared"}, nil); !c.signed() {
		t.Error("the same server under another name is not signed in")
	}
	if len(other.Requests()) != 0 {
		t.Error("the other server was asked")
	}
}

// TestPlaces has the order of the places.
func TestPlaces(t *testing.T) {
	for issuer, want := range map[string][]string{
		"https://a.example": {"https://a.example/.well-known/oauth-authorization-server",
			"https://a.example/.well-known/openid-configuration"},
		"https://a.example/": {"https://a.example/.well-known/oauth-authorization-server",
			"https://a.example/.well-known/openid-configuration"},
		"https://a.example/x/y": {"https://a.example/.well-known/oauth-authorization-server/x/y",
			"https://a.example/.well-known/openid-configuration/x/y",
			"https://a.example/x/y/.well-known/openid-configuration"},
	} {
		if diff := cmp.Diff(want, metadataURLs(issuer)); diff != "" {
			t.Error(diff)
		}
	}
}
