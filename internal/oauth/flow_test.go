package oauth

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

func authorization(a oauthtest.Authorization) oauthtest.Options {
	return oauthtest.Options{Knobs: oauthtest.Knobs{Authorization: a}}
}

// testIssuerInAnswer is row OA-6: an answer that is from another issuer is not taken, and no code goes anywhere.
func testIssuerInAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		a    oauthtest.Authorization
		says string
	}{
		"the right one":           {oauthtest.Authorization{}, ""},
		"the right one, unasked":  {oauthtest.Authorization{IssUnadvertised: true}, ""},
		"none, and none promised": {oauthtest.Authorization{Iss: "-", IssUnadvertised: true}, ""},
		"none, and one promised": {oauthtest.Authorization{Iss: "-"},
			"the response does not name its issuer"},
		"another": {oauthtest.Authorization{Iss: "https://evil.example"},
			"from another issuer, https://evil.example"},
		"another, unasked": {oauthtest.Authorization{Iss: "https://evil.example",
			IssUnadvertised: true}, "from another issuer"},
		"a slash more":  {oauthtest.Authorization{Iss: "{issuer}/"}, "from another issuer"},
		"in upper case": {oauthtest.Authorization{Iss: "HTTP://{issuer}"}, "from another issuer"},
		"an error of another": {oauthtest.Authorization{Iss: "https://evil.example",
			Error: "access_denied"}, "from another issuer"},
		"an error without one, but promised": {oauthtest.Authorization{Iss: "-", Error: "access_denied"},
			"the response does not name its issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			y := meet(t, authorization(tt.a), nil)
			err := y.tryIn()
			if tt.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wants(t, err, tt.says)
			if n := len(y.p.Requests(oauthtest.Token)); n != 0 || y.c.signed() {
				t.Errorf("%d requests with the code, signed in: %v", n, y.c.signed())
			}
		})
	}
}

// testMixUp is row OA-6 with two providers: the one that the person is sent to sends them on to another, whose code
// then comes back. It is given to neither.
func testMixUp(t *testing.T) {
	honest := oauthtest.New(t,
		oauthtest.Options{Clients: []oauthtest.Client{{ID: "ours", Redirects: []string{"http://127.0.0.1/callback"}}}})
	honest.ChangeKnobs(func(k *oauthtest.Knobs) { k.Authorization.Indicator = "ignore" })
	y := meet(t, authorization(oauthtest.Authorization{Forward: honest.URL(oauthtest.Authorize),
		ForwardClient: "ours"}), nil)
	wants(t, y.tryIn(), "from another issuer, "+honest.Issuer)
	if a, b := len(y.p.Requests(oauthtest.Token)), len(honest.Requests(oauthtest.Token)); a+b != 0 {
		t.Errorf("the code went to the one %d times, to the other %d times", a, b)
	}
}

// testProof is row OA-4 from the client's side: each sign-in has a verifier of its own, which is seen at the token
// endpoint alone.
func testProof(t *testing.T) {
	for _, pkce := range []string{"", "optional"} {
		y := meet(t, authorization(oauthtest.Authorization{PKCE: pkce}), nil)
		seen := map[string]bool{}
		for range 2 {
			y.signIn()
		}
		for _, r := range y.p.Requests(oauthtest.Authorize) {
			q := r.Query
			if q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 ||
				seen[q.Get("code_challenge")] || q.Has("code_verifier") || len(q.Get("state")) < 22 {
				t.Errorf("%v", q)
			}
			seen[q.Get("code_challenge")] = true
		}
		for _, r := range y.p.Requests(oauthtest.Token) {
			if v := r.Form.Get("code_verifier"); len(v) < 43 || seen[v] {
				t.Errorf("%v", r.Form)
			}
		}
	}
}

// testCodeRefused has the code expire, and be used before.
func testCodeRefused(t *testing.T) {
	y := meet(t, authorization(oauthtest.Authorization{CodeLife: time.Nanosecond}), nil)
	wants(t, y.tryIn(), "OAuth authorization code is invalid or expired. Please try again.")
	if y.c.signed() {
		t.Error("signed in")
	}
	y = meet(t, oauthtest.Options{}, nil)
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
		k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.Token: {Status: 401, Type: "application/json",
			Body: `{"error":"invalid_client"}`}}
	})
	wants(t, y.tryIn(), "OAuth authorization failed. Please check your client credentials.")
	y = meet(t, oauthtest.Options{}, nil)
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
		k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.Token: {Drop: true}}
	})
	wants(t, y.tryIn(), "Could not connect to OAuth server. Please check the URLs and your network connection.")
	y = meet(t, oauthtest.Options{}, nil)
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
		k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.Token: {Status: 500, Type: "text/html",
			Body: "<h1>no</h1>"}}
	})
	wants(t, y.tryIn(), "OAuth authentication failed: Token exchange failed: status 500")
}

// testAudience is row OA-5: a token for another resource is refused by the server, and the words say what to look at.
func testAudience(t *testing.T) {
	y := meet(t, tokens(oauthtest.Tokens{Audience: "https://elsewhere.example/mcp", NoRefresh: true}), nil)
	y.signIn()
	wants(t, y.needed(),
		"the server refuses each token that it is given: check that its row's \"auth\" has the right resource")
}

// testResourceIndicator has servers of tokens that want to hear what the token is for, do not care, and do not want to.
func testResourceIndicator(t *testing.T) {
	for _, indicator := range []string{"", "ignore"} {
		y := meet(t, authorization(oauthtest.Authorization{Indicator: indicator}), nil)
		y.signIn()
		y.p.ExpireAccess()
		y.in()
		var all []string
		for _, r := range y.p.Requests(oauthtest.Authorize) {
			all = append(all, r.Query["resource"]...)
		}
		for _, r := range y.p.Requests(oauthtest.Token) {
			all = append(all, r.Form["resource"]...)
		}
		if diff := cmp.Diff([]string{y.p.ResourceURL, y.p.ResourceURL, y.p.ResourceURL}, all); diff != "" {
			t.Error(diff)
		}
	}
	y := meet(t, authorization(oauthtest.Authorization{Indicator: "reject"}), nil)
	err := y.tryIn()
	wants(t, err, "invalid_request")
	wants(t, err, `"resource"`)
	y = meet(t, authorization(oauthtest.Authorization{Indicator: "reject"}), func(s *Server) { s.Resource = "none" })
	y.signIn()
	y.p.ExpireAccess()
	y.in()
	o := oauthtest.Options{Resources: []string{"urn:known"}}
	o.Knobs.Server.AnyAudience = true
	y = meet(t, o, func(s *Server) { s.Resource = "urn:known" })
	y.signIn()
	y.in()
	if got := y.p.Requests(oauthtest.Authorize)[0].Query["resource"]; !slices.Equal(got, []string{"urn:known"}) {
		t.Errorf("asked for %q", got)
	}
}

// testNothingLeftOfBefore has somebody else sign in at a server that gives no refresh token this time: the first
// person's is not used for the second.
func testNothingLeftOfBefore(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	y.signIn()
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.User, k.Tokens.NoRefresh = "bob", true })
	y.signIn()
	y.p.ExpireAccess()
	y.needed()
	if n := y.p.Refreshes(); n != 0 {
		t.Errorf("%d refreshes with what was another's", n)
	}
}

// testScopes is row OA-13: what is asked for, and for how much more.
func testScopes(t *testing.T) {
	asked := func(y *party) []string {
		all := y.p.Requests(oauthtest.Authorize)
		scopes := strings.Fields(all[len(all)-1].Query.Get("scope"))
		return slices.DeleteFunc(scopes, func(s string) bool { return s == "offline_access" })
	}
	t.Run("of the challenge", func(t *testing.T) {
		y := meet(t, oauthtest.Options{}, nil)
		y.signIn()
		if got := asked(y); !slices.Equal(got, []string{"mcp"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("of the resource", func(t *testing.T) {
		y := meet(t, oauthtest.Options{Knobs: oauthtest.Knobs{Challenge: oauthtest.Challenge{Scope: "-"}}}, nil)
		y.signIn()
		if got := asked(y); !slices.Equal(got, []string{"mcp", "secret"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("of the row", func(t *testing.T) {
		y := meet(t, oauthtest.Options{}, func(s *Server) { s.Scopes = "mcp openid" })
		y.signIn()
		if got := asked(y); !slices.Equal(got, []string{"mcp", "openid"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("more for one tool", func(t *testing.T) {
		y := meet(t, oauthtest.Options{}, nil)
		y.signIn()
		_, err := y.call("secret_tool")
		n := SignInRequired(err)
		if !n.HasURL() || n.Blocks() || !slices.Equal(n.Scopes, []string{"mcp", "secret"}) {
			t.Fatalf("%+v, %v", n, err)
		}
		y.in() // the others are none the worse for it
		if err := y.p.AllowSignIn(t.Context(), n.URL); err != nil {
			t.Fatal(err)
		}
		if status, err := y.call("secret_tool"); err != nil || status == 403 {
			t.Errorf("%d, %v", status, err)
		}
		if got := y.kept().Scopes; !slices.Contains(got, "mcp") || !slices.Contains(got, "secret") {
			t.Errorf("%q", got)
		}
	})
	t.Run("never enough", scopesNeverEnough)
	t.Run("not granted", scopesNotGranted)
	t.Run("less at a refresh", func(t *testing.T) {
		y := meet(t, oauthtest.Options{}, func(s *Server) { s.Scopes = "mcp secret" })
		y.signIn()
		y.p.ExpireAccess()
		y.in()
		if q := y.p.Requests(oauthtest.Token)[1].Form; q.Has("scope") {
			t.Errorf("a refresh asks for %v", q)
		}
		if got := y.kept().Scopes; !slices.Equal(got, []string{"mcp", "secret"}) {
			t.Errorf("%q", got)
		}
	})
	t.Run("a 403 that is about something else", func(t *testing.T) {
		y := meet(t, oauthtest.Options{Knobs: oauthtest.Knobs{Challenge: oauthtest.Challenge{Form: oauthtest.ChallengeNone, Status: 403}}}, nil)
		if status, err := y.call("whoami"); status != 403 || err != nil {
			t.Errorf("%d, %v", status, err)
		}
		if n := len(y.p.Requests(oauthtest.ResourceMetadata, oauthtest.ServerMetadata, oauthtest.Nothing)); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

func scopesNeverEnough(t *testing.T) {
	y := meet(t, oauthtest.Options{Knobs: oauthtest.Knobs{Server: oauthtest.Server{NeverEnough: true}}}, nil)
	y.signIn()
	var n *SignInRequiredError
	visits := 0
	for ; visits < 10; visits++ {
		_, err := y.call("secret_tool")
		if n = SignInRequired(err); !n.HasURL() {
			break
		}
		if err := y.p.AllowSignIn(t.Context(), n.URL); err != nil {
			t.Fatal(err)
		}
	}
	if n == nil || visits > maxScopeRequests {
		t.Fatalf("%d visits, %v", visits, n)
	}
	wants(t, n, "the server wants them again each time they are granted")
	y.in()
}

// TestAgainAfterMoreRights has a person sign in anew at a server that said where in its first refusal alone.
func TestAgainAfterMoreRights(t *testing.T) {
	o := discovery(oauthtest.Discovery{Places: []oauthtest.MetadataPlace{}})
	o.Clients = []oauthtest.Client{{ID: "public", Redirects: []string{"http://127.0.0.1/callback"}}}
	o.Knobs.Challenge = oauthtest.Challenge{Form: oauthtest.ChallengeBody, ClientIDKey: "client_id", ClientID: "public",
		ScopesKey: "scope"}
	y := meet(t, o, nil)
	y.needed()
	y.signIn()
	if _, err := y.call("secret_tool"); !SignInRequired(err).HasURL() {
		t.Fatal(err)
	}
	y.signIn()
	y.in()
}

func scopesNotGranted(t *testing.T) {
	y := meet(t, tokens(oauthtest.Tokens{Scope: "mcp"}), nil)
	y.signIn()
	var n *SignInRequiredError
	for range 10 {
		_, err := y.call("secret_tool")
		if n = SignInRequired(err); !n.HasURL() {
			break
		}
		if err := y.p.AllowSignIn(t.Context(), n.URL); err != nil {
			t.Fatal(err)
		}
	}
	wants(t, n, "the authorization server does not grant them")
}

// testSignOut is row OA-20 from the client's side: what is kept is removed and revoked.
func testSignOut(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	y.signIn()
	revoked, why, err := y.c.Remove(t.Context())
	if !revoked || why != nil || err != nil {
		t.Errorf("%v, %v, %v", revoked, why, err)
	}
	if c := y.p.Counts(); c.Revocations != 1 {
		t.Errorf("%+v", c)
	}
	var kinds []string
	for _, r := range y.p.Requests(oauthtest.Revoke) {
		kinds = append(kinds, r.Form.Get("token_type_hint"))
	}
	if !slices.Equal(kinds, []string{"refresh_token", "access_token"}) {
		t.Errorf("%q", kinds)
	}
	if y.c.signed() {
		t.Error("still signed in")
	}
	if _, _, err := y.c.Remove(t.Context()); err != ErrNotSignedIn {
		t.Errorf("the second time: %v", err)
	}
	y.signIn()
	for name, tt := range map[string]struct {
		turn func(*oauthtest.Knobs)
		says string
	}{
		"away": {func(k *oauthtest.Knobs) {
			k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.Revoke: {Status: 503}}
		}, "status 503"},
		"cut off": {func(k *oauthtest.Knobs) {
			k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.Revoke: {Drop: true}}
		}, "revoke the refresh token: "},
		"no such path": {func(k *oauthtest.Knobs) { k.Discovery.Set = map[string]any{"revocation_endpoint": nil} },
			"cannot revoke tokens"},
	} {
		y := meet(t, oauthtest.Options{}, nil)
		y.p.ChangeKnobs(tt.turn)
		y.signIn()
		revoked, why, err := y.c.Remove(t.Context())
		if revoked || err != nil || y.c.signed() {
			t.Errorf("%s: %v, %v", name, revoked, err)
		}
		wants(t, why, tt.says)
	}
}

// testSignOutElsewhere has the person sign out while somebody else is on their way back: they come back to nothing.
func testSignOutElsewhere(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	callback := y.follow(y.begin())
	if _, _, err := y.c.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, _ := get(t, callback); status != 400 || y.c.signed() {
		t.Errorf("%d, signed in: %v", status, y.c.signed())
	}
}
