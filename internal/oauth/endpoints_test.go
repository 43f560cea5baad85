package oauth

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// notAccepted checks that an error asks for a yes to exactly these two origins, and names both.
func notAccepted(t *testing.T, err error, page, token string) drawbridge.SignInEndpoints {
	t.Helper()
	asked, ok := errors.AsType[*drawbridge.EndpointsNotAcceptedError](err)
	if !ok {
		t.Fatalf("got %v; want it to ask for a yes", err)
	}
	want := drawbridge.SignInEndpoints{Page: originOf(page), Token: originOf(token)}
	if asked.Endpoints != want || !strings.Contains(err.Error(), want.Page) || !strings.Contains(err.Error(),
		want.Token) {
		t.Fatalf("asks for %+v in %q; want %+v", asked.Endpoints, err, want)
	}
	return asked.Endpoints
}

// originOf is the scheme and host of an address.
func originOf(address string) string { return hostOf(address) }

// named is an address of the provider under the other name of this machine, which is another origin.
func named(address string) string { return strings.Replace(address, "127.0.0.1", "localhost", 1) }

func (y *party) accept(e drawbridge.SignInEndpoints) {
	y.t.Helper()
	if err := y.c.AcceptEndpoints(y.t.Context(), e); err != nil {
		y.t.Fatal(err)
	}
}

// testMixUpWithoutIss is row OA-6 with an honest provider that does not name itself: a hostile one has its own token
// endpoint, and the honest one's page. Nothing begins before the person has said yes to the two.
func testMixUpWithoutIss(t *testing.T) {
	o := authorization(oauthtest.Authorization{Iss: "-", IssUnadvertised: true, Indicator: "ignore"})
	o.Clients = []oauthtest.Client{{ID: "ours", Redirects: []string{"http://127.0.0.1/callback"}}}
	honest := oauthtest.New(t, o)
	for name, promised := range map[string]bool{"an issuer promised": true, "none promised": false} {
		t.Run(name, func(t *testing.T) {
			hostile := discovery(oauthtest.Discovery{Set: map[string]any{
				"authorization_endpoint":                         honest.URL(oauthtest.Authorize),
				"authorization_response_iss_parameter_supported": promised,
			}})
			hostile.Knobs.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.Register: {Status: 201,
				Type: "application/json", Body: `{"client_id":"ours"}`}}
			y := meet(t, hostile, nil)
			_, err := y.c.BeginSignIn(t.Context(), false)
			notAccepted(t, err, honest.Issuer, y.p.Issuer)
			n := y.needed()
			notAccepted(t, n, honest.Issuer, y.p.Issuer)
			if n.HasURL() || !n.CanSignIn() || n.Advice("x") != "sign in with drawbridge mcp auth x" {
				t.Errorf("%v, %q", n, n.Advice("x"))
			}
			if s, err := y.c.Status(); err != nil || s.URL != "" {
				t.Errorf("%+v, %v", s, err)
			}
			if a, b := len(honest.Requests()), len(y.p.Requests(oauthtest.Token, oauthtest.Register)); a+b != 0 {
				t.Errorf("the honest one was asked %d times, the hostile one %d times", a, b)
			}
		})
	}
}

// testTwoOrigins has an honest issuer whose token endpoint is on another origin than its page, as some have. One yes is
// enough, for the sign-ins that follow and the renewals too; it is for exactly these two origins.
func testTwoOrigins(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	token := named(y.p.URL(oauthtest.Token))
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Discovery.Set = map[string]any{"token_endpoint": token} })
	_, err := y.c.BeginSignIn(t.Context(), false)
	pair := notAccepted(t, err, y.p.Issuer, token)
	for _, other := range []drawbridge.SignInEndpoints{{Page: pair.Token, Token: pair.Page}, {Page: pair.Page},
		{Page: pair.Page, Token: pair.Token + "0"}} {
		y.accept(other)
		_, err := y.c.BeginSignIn(t.Context(), false)
		notAccepted(t, err, y.p.Issuer, token)
	}
	y.accept(pair)
	if f := y.begin(); f.Elsewhere() != "token endpoint at "+pair.Token {
		t.Errorf("%q", f.Elsewhere())
	}
	y.signIn()
	y.p.ExpireAccess()
	y.in()
	y.again(nil)
	y.signIn()
	if c := y.p.Counts(); c.Codes != 2 || c.Refreshes != 1 {
		t.Errorf("%+v", c)
	}
	evil := newServer(t, func(http.ResponseWriter, *http.Request) { t.Error("it was asked") })
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Discovery.Set = map[string]any{"token_endpoint": evil.URL + "/token"} })
	y.p.ExpireAccess()
	y.in() // the grant is renewed where it is from
	_, err = y.c.BeginSignIn(t.Context(), false)
	notAccepted(t, err, y.p.Issuer, evil.URL)
	y.in()
	if _, err := y.c.SignOut(t.Context()); err != nil {
		t.Fatal(err)
	}
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Discovery.Set = map[string]any{"token_endpoint": token} })
	_, err = y.c.BeginSignIn(t.Context(), false)
	notAccepted(t, err, y.p.Issuer, token)
}

// testEndpointsChangeInBetween has metadata lead elsewhere after a sign-in was prepared: the prepared one is not given
// for it, and none that was prepared without a yes is completed.
func testEndpointsChangeInBetween(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	f := y.begin()
	callback := y.follow(f)
	token := named(y.p.URL(oauthtest.Token))
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Discovery.Set = map[string]any{"token_endpoint": token} })
	_, err := y.c.BeginSignIn(t.Context(), false)
	notAccepted(t, err, y.p.Issuer, token)
	r := y.kept()
	for i := range r.Pending {
		r.Pending[i].AuthServer.Token = token // as an earlier version kept it
	}
	if err := y.c.lockAndSave(r); err != nil {
		t.Fatal(err)
	}
	if s, err := y.c.Status(); err != nil || s.URL != "" {
		t.Errorf("%+v, %v", s, err)
	}
	notAccepted(t, y.c.CompleteWithURL(t.Context(), callback), y.p.Issuer, token)
	if n := len(y.p.Requests(oauthtest.Token)); n != 0 || y.c.signed() {
		t.Errorf("%d requests with the code", n)
	}
}

// testOtherOriginThanIssuer has both endpoints on one origin that is not the issuer's: the person sees its name.
func testOtherOriginThanIssuer(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
		k.Discovery.Set = map[string]any{"authorization_endpoint": named(y.p.URL(oauthtest.Authorize)),
			"token_endpoint": named(y.p.URL(oauthtest.Token))}
	})
	f, at := y.begin(), originOf(named(y.p.Issuer))
	if want := "authorization endpoint at " + at + ", token endpoint at " + at; f.Elsewhere() != want {
		t.Errorf("%q; want %q", f.Elsewhere(), want)
	}
	n := y.needed()
	if !n.HasURL() || n.Elsewhere != f.Elsewhere() {
		t.Errorf("%+v", n)
	}
	if f := meet(t, oauthtest.Options{}, nil).begin(); f.Elsewhere() != "" {
		t.Errorf("%q", f.Elsewhere())
	}
}

// testEndpointsOfRow has the row say yes: by a member, or by naming both endpoints. A project's row cannot.
func testEndpointsOfRow(t *testing.T) {
	const page, token = "https://as.example", "https://tokens.example"
	for name, tt := range map[string]struct {
		change func(*Server)
		ok     bool
	}{
		"both endpoints": {func(s *Server) {}, true},
		"of a project":   {func(s *Server) { s.FromProject = true }, false},
		"the member of a project": {func(s *Server) {
			s.FromProject, s.AcceptedEndpoints = true, drawbridge.SignInEndpoints{Page: page, Token: token}
		}, false},
	} {
		y := meet(t, oauthtest.Options{}, func(s *Server) {
			s.AuthorizationURL, s.TokenURL, s.ClientID = page+"/a", token+"/token", "x"
			tt.change(s)
		})
		if _, err := y.c.BeginSignIn(t.Context(), false); tt.ok && err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !tt.ok {
			notAccepted(t, err, page, token)
		}
	}
	y := meet(t, oauthtest.Options{}, nil)
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
		k.Discovery.Set = map[string]any{"token_endpoint": named(y.p.URL(oauthtest.Token))}
	})
	y.again(func(s *Server) {
		s.AcceptedEndpoints = drawbridge.SignInEndpoints{Page: originOf(y.p.Issuer), Token: originOf(named(y.p.Issuer))}
	})
	y.signIn()
	y.in()
}

// testExchangeAtTwoOrigins has a caller's token exchanged at an endpoint on another origin: it is sent there only after
// the owner has said yes, for itself or in the row.
func testExchangeAtTwoOrigins(t *testing.T) {
	y := meet(t, oauthtest.Options{Clients: []oauthtest.Client{{ID: "ours", Secret: "s3cret",
		Redirects: []string{"http://127.0.0.1/callback"}}}}, nil)
	token := named(y.p.URL(oauthtest.Token))
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Discovery.Set = map[string]any{"token_endpoint": token} })
	row := config.Server{ID: "protected", URL: y.p.ResourceURL, Credentials: config.PerCallerCredentials,
		Auth: &config.Auth{ClientID: "ours", ClientSecret: "s3cret", Scopes: []string{"mcp"}}}
	proof, err := y.p.Issue(oauthtest.Grant{Subject: "bob", Client: "ours", Audience: "ours", Scope: []string{"mcp"}})
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(context.Context) (config.Auth, error) { return *row.Auth, nil }
	ask := func(row config.Server) error {
		c := CallerAuth{Row: row, Owner: "me", Manager: y.desk, ResolveAuth: resolve}.Credential("bob")
		c.SetCallerToken(drawbridge.NewSecret(proof))
		_, err := c.ReplaceToken(t.Context(), "", http.StatusUnauthorized, http.Header{}, nil)
		return err
	}
	pair := notAccepted(t, ask(row), y.p.Issuer, token)
	if n := len(y.p.Requests(oauthtest.Token)); n != 0 {
		t.Errorf("%d requests with the caller's token", n)
	}
	accepting := row
	accepting.Auth = &config.Auth{ClientID: "ours", ClientSecret: "s3cret", Scopes: []string{"mcp"},
		AcceptEndpoints: pair}
	if err := ask(accepting); err != nil {
		t.Error(err)
	}
	owner := CallerAuth{Row: row, Owner: "me", Manager: y.desk, ResolveAuth: resolve}.Credential("me")
	if err := owner.AcceptEndpoints(t.Context(), pair); err != nil {
		t.Fatal(err)
	}
	if err := ask(row); err != nil {
		t.Error(err)
	}
}

// testDeviceOfAnother has a hostile provider lead a device's sign-in to another one: by the endpoint that issues codes,
// or by the page.
func testDeviceOfAnother(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
		k.Discovery.Set = map[string]any{"device_authorization_endpoint": named(y.p.URL(oauthtest.DeviceStart))}
	})
	_, err := y.c.BeginSignIn(t.Context(), true)
	notAccepted(t, err, named(y.p.Issuer), y.p.Issuer)
	if n := len(y.p.Requests(oauthtest.DeviceStart)); n != 0 {
		t.Errorf("%d requests for a code", n)
	}
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
		k.Discovery.Set = nil
		k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.DeviceStart: {Status: 200, Type: "application/json",
			Body: `{"device_code":"d","user_code":"u","verification_uri":"https://honest.example/device","interval":1}`}}
	})
	_, err = y.c.BeginSignIn(t.Context(), true)
	y.accept(notAccepted(t, err, "https://honest.example", y.p.Issuer))
	f, err := y.c.BeginSignIn(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if at := f.Elsewhere(); at != "page at https://honest.example" {
		t.Errorf("%q", at)
	}
}
