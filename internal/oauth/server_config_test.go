package oauth

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// TestFromRow has what of a row is signed in at, and for whom.
func TestFromRow(t *testing.T) {
	const address = "https://x.example/mcp"
	both := drawbridge.SignInEndpoints{Page: "https://as", Token: "https://tokens"}
	for name, tt := range map[string]struct {
		row  config.Server
		want Server
		ok   bool
	}{
		"a server with an address": {config.Server{ID: "x", URL: address}, Server{ID: "x", URL: address}, true},
		"one that is told who asks": {
			config.Server{ID: "x", URL: address, Headers: []config.NameValue{{Name: "authorization",
				Value: "Basic eA=="}}}, Server{}, false,
		},
		"one with a key": {config.Server{ID: "x", URL: address, Auth: &config.Auth{Type: "apikey"}},
			Server{}, false},
		"one that nobody signs in at": {config.Server{ID: "x", URL: address, Auth: &config.Auth{Type: "none"}},
			Server{}, false},
		"a process": {config.Server{ID: "x", Command: "y"}, Server{}, false},
		"a process that wants a token": {config.Server{ID: "x", Command: "y", Auth: &config.Auth{Issuer: "https://as"}},
			Server{ID: "x", Issuer: "https://as"}, true},
		"a process of a project": {
			config.Server{ID: "x", Command: "y", Auth: &config.Auth{Issuer: "https://as"},
				Origin: config.Origin{Kind: config.OriginProject, Path: "/p"}},
			Server{ID: "x", Issuer: "https://as", Project: "/p", FromProject: true}, true,
		},
		"each caller's own": {config.Server{ID: "x", URL: address, Credentials: config.PerCallerCredentials},
			Server{ID: "x", URL: address, Principal: "me", Owner: "me"}, true},
		"somebody's by name": {config.Server{ID: "x", URL: address, Credentials: "work"}, Server{ID: "x", URL: address,
			CredentialName: "work"}, true},
		"two origins": {config.Server{ID: "x", URL: address, Auth: &config.Auth{AcceptEndpoints: both}},
			Server{ID: "x", URL: address, AcceptedEndpoints: both}, true},
		"two origins of a project": {config.Server{ID: "x", URL: address, Auth: &config.Auth{AcceptEndpoints: both},
			Origin: config.Origin{Kind: config.OriginProject, Path: "/p"}},
			Server{ID: "x", URL: address, AcceptedEndpoints: both, FromProject: true}, true},
		"for itself": {config.Server{ID: "x", URL: address, Auth: &config.Auth{Type: "client_credentials"}},
			Server{ID: "x", URL: address, Grant: ClientCredentialsGrant}, true},
		"no scopes at all": {config.Server{ID: "x", URL: address, Auth: &config.Auth{Scopes: []string{}}},
			Server{ID: "x", URL: address, NoScopes: true}, true},
		"some": {config.Server{ID: "x", URL: address, Auth: &config.Auth{Scopes: []string{"a", "b"}}},
			Server{ID: "x", URL: address, Scopes: "a b"}, true},
	} {
		got, ok := ServerFromConfig(tt.row, "me", "me")
		if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.ok {
			t.Errorf("%s: %v, %s", name, ok, diff)
		}
	}
}

// TestNoScopes asks for none where the row says so.
func TestNoScopes(t *testing.T) {
	y := meet(t, oauthtest.Options{}, func(s *Server) { s.NoScopes = true })
	y.signIn()
	y.in()
	if q := y.p.Requests(oauthtest.Authorize)[0].Query; q.Has("scope") {
		t.Errorf("asked for %q", q.Get("scope"))
	}
}

// TestState has what people are told of a credential.
func TestState(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	if s, err := y.c.Status(); err != nil || s.SignedIn || s.URL != "" {
		t.Errorf("%+v, %v", s, err)
	}
	f := y.begin()
	if s, err := y.c.Status(); err != nil || s.SignedIn || s.URL != f.url {
		t.Errorf("%+v, %v", s, err)
	}
	y.signIn()
	if s, err := y.c.Status(); err != nil || !s.SignedIn || !s.AutoRenews || s.Expires.IsZero() ||
		s.Issuer != y.p.Issuer || s.URL != "" || len(s.Scopes) == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	o := registration(oauthtest.Registration{Absent: true})
	o.Clients = []oauthtest.Client{{ID: "robot", Secret: "robot secret"}}
	y = meet(t, o, func(s *Server) {
		s.Grant, s.ClientID, s.ClientSecret = ClientCredentialsGrant, "robot", drawbridge.NewSecret("robot secret")
	})
	y.in()
	if s, err := y.c.Status(); err != nil || !s.SignedIn || !s.AutoRenews {
		t.Errorf("for itself: %+v, %v", s, err)
	}
}

// TestBegunByHand has a person begin a sign-in where calls had heard that there is none: calls hear of the address.
func TestBegunByHand(t *testing.T) {
	y := meet(t, registration(oauthtest.Registration{Absent: true}), nil)
	if y.needed().HasURL() {
		t.Fatal("there is an address")
	}
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Registration.Absent = false })
	f := y.begin()
	if n := y.needed(); n.URL != f.url {
		t.Errorf("calls hear %v", n)
	}
}

// TestAProjectsProcessIsAnother has a project call its process as a person calls one of theirs: it is given none of
// their tokens, by whatever name they are kept.
func TestAProjectsProcessIsAnother(t *testing.T) {
	for _, auth := range []config.Auth{{Issuer: "https://as", ClientID: "c"}, {Issuer: "https://as",
		CredentialID: "work"}} {
		row := config.Server{ID: "x", Command: "y", Auth: &auth}
		theirs, _ := ServerFromConfig(row, "me", "me")
		row.Origin = config.Origin{Kind: config.OriginProject, Path: "/p/.drawbridge/mcp.json"}
		brought, _ := ServerFromConfig(row, "me", "me")
		if theirs.identityKey() == brought.identityKey() {
			t.Errorf("%+v: both are %s", auth, theirs.identityKey())
		}
		d := NewManager(ManagerOptions{})
		t.Cleanup(d.Close)
		c := d.Credential(theirs, nil)
		if err := c.storeGrant(credentialRecord{ServerKey: theirs.identityKey()}, authServer{}, clientIdentity{},
			tokenResponse{access: "access"}, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Credential(brought, nil).Token(t.Context()); got != "" {
			t.Errorf("%+v: the project's process is given %q, %v", auth, got, err)
		}
	}
}
