package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

func registration(r oauthtest.Registration) oauthtest.Options {
	return oauthtest.Options{Knobs: oauthtest.Knobs{Registration: r}}
}

// testRegistration is row OA-14 from the client's side: who we are to an authorization server.
func testRegistration(t *testing.T) {
	t.Run("once for all attempts", func(t *testing.T) {
		y := meet(t, oauthtest.Options{}, nil)
		for range 3 {
			y.begin()
			y.needed()
		}
		y.signIn()
		y.later(24 * time.Hour)
		y.p.RevokeAll()
		y.needed()
		y.signIn()
		if n := y.p.Registrations(); n != 1 {
			t.Errorf("%d registrations", n)
		}
	})
	t.Run("what it says of us", func(t *testing.T) {
		y := meet(t, oauthtest.Options{}, nil)
		y.signIn()
		var said map[string]any
		if err := json.Unmarshal(y.p.Requests(oauthtest.Register)[0].Body, &said); err != nil {
			t.Fatal(err)
		}
		if said["client_name"] != "Drawbridge" || said["application_type"] != "native" ||
			said["token_endpoint_auth_method"] != "none" {
			t.Errorf("%v", said)
		}
	})
	t.Run("with a secret", func(t *testing.T) {
		for _, methods := range [][]string{nil, {"client_secret_basic"}, {"client_secret_post"}, {"client_secret_post",
			"client_secret_basic"}} {
			y := meet(t, registration(oauthtest.Registration{Secret: true, Methods: methods}), nil)
			y.signIn()
			y.p.ExpireAccess()
			y.in()
			if c := y.p.Counts(); c.Refusals != 0 || c.Refreshes != 1 {
				t.Errorf("%v: %+v", methods, c)
			}
		}
	})
	t.Run("a secret that expires", func(t *testing.T) {
		y := meet(t, registration(oauthtest.Registration{Secret: true, SecretLife: time.Hour}), nil)
		y.signIn()
		y.begin()
		if n := y.p.Registrations(); n != 1 {
			t.Errorf("%d registrations while it is good", n)
		}
		y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Skew = 2 * time.Hour })
		y.later(2 * time.Hour)
		wants(t, y.needed(), "MCP OAuth refresh failed: 401 invalid_client")
		y.signIn()
		y.in()
		if n := y.p.Registrations(); n != 2 {
			t.Errorf("%d registrations", n)
		}
	})
	t.Run("forgotten by the provider", func(t *testing.T) {
		y := meet(t, oauthtest.Options{}, nil)
		y.signIn()
		y.p.ForgetClients()
		y.p.ExpireAccess()
		y.needed()
		y.signIn()
		y.in()
	})
	t.Run("refused", registrationRefused)
}

func registrationRefused(t *testing.T) {
	t.Run("absent", func(t *testing.T) {
		y := meet(t, registration(oauthtest.Registration{Absent: true}), nil)
		n := y.needed()
		wants(t, n, "OAuth provider requires client_id")
		if n.HasURL() {
			t.Error("there is an address")
		}
	})
	t.Run("needs a token", func(t *testing.T) {
		y := meet(t, registration(oauthtest.Registration{InitialToken: "x"}), nil)
		wants(t, y.needed(), "OAuth provider requires client_id: it does not register us (status 401)")
	})
	t.Run("rejects the redirect", func(t *testing.T) {
		y := meet(t, registration(oauthtest.Registration{RejectRedirects: []string{"127.0.0.1", "localhost"}}), nil)
		wants(t, y.needed(), "register as a client: invalid_redirect_uri")
	})
	t.Run("knows no way for us to prove ourselves", func(t *testing.T) {
		y := meet(t, registration(oauthtest.Registration{Methods: []string{"private_key_jwt"}}), nil)
		wants(t, y.needed(), "OAuth provider requires client_id")
	})
	for name, body := range map[string]string{
		"empty":                  `{}`,
		"no JSON":                `<html>`,
		"a number for the id":    `{"client_id":7}`,
		"an array":               `[]`,
		"a redirect to a script": ``,
	} {
		t.Run("an answer that is none: "+name, func(t *testing.T) {
			y := meet(t, oauthtest.Options{Knobs: oauthtest.Knobs{Faults: map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.Register: {Status: 201, Type: "application/json", Body: body}}}}, nil)
			wants(t, y.needed(), "register as a client: the authorization server's response has no client_id")
		})
	}
	t.Run("an answer of other types", func(t *testing.T) {
		const body = `{"client_id":"known","client_secret_expires_at":"0","jwks":{"keys":[]},"contacts":"x","redirect_uris":"x","grant_types":null}`
		o := oauthtest.Options{Clients: []oauthtest.Client{{ID: "known",
			Redirects: []string{"http://127.0.0.1/callback"}}}}
		o.Knobs.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.Register: {Status: 200,
			Type: "application/json", Body: body}}
		y := meet(t, o, nil)
		y.signIn()
		y.in()
	})
}

// testClientDocument is a client that describes itself by a document.
func testClientDocument(t *testing.T) {
	const at = "https://drawbridge.example/client.json"
	o := registration(oauthtest.Registration{Documents: true})
	o.Documents = map[string]json.RawMessage{at: json.RawMessage(`{"client_id":"` + at +
		`","client_name":"D","redirect_uris":["http://127.0.0.1/callback","http://localhost/callback"]}`)}
	y := meet(t, o, func(s *Server) { s.ClientMetadataURL = at })
	y.signIn()
	y.p.ExpireAccess()
	y.in()
	if got := y.p.Requests(oauthtest.Authorize)[0].Query.Get("client_id"); got != at || y.p.Registrations() != 0 {
		t.Errorf("client %q, %d registrations", got, y.p.Registrations())
	}
	y = meet(t, oauthtest.Options{}, func(s *Server) { s.ClientMetadataURL = at }) // who takes no documents registers
	y.signIn()
	if y.p.Registrations() != 1 {
		t.Errorf("%d registrations", y.p.Registrations())
	}
}

// testKnownClient is a client that was registered before, public, or with a secret that it proves in one way or the
// other.
func testKnownClient(t *testing.T) {
	const secret = "s3cret/+ &%"
	for name, tt := range map[string]struct {
		method, secret string
		methods        []string
		places         []oauthtest.MetadataPlace
	}{
		"public":                   {"none", "", nil, nil},
		"basic":                    {"client_secret_basic", secret, []string{"client_secret_basic"}, nil},
		"post":                     {"client_secret_post", secret, []string{"client_secret_post"}, nil},
		"either":                   {"", secret, nil, nil},
		"post, which nobody said":  {"client_secret_post", secret, nil, []oauthtest.MetadataPlace{}},
		"basic, which nobody said": {"client_secret_basic", secret, nil, []oauthtest.MetadataPlace{}},
	} {
		t.Run(name, func(t *testing.T) {
			o := registration(oauthtest.Registration{Absent: true, Methods: tt.methods})
			o.Knobs.Discovery.Places, o.OneOrigin = tt.places, tt.places != nil
			o.Clients = []oauthtest.Client{{ID: "an id:/+", Secret: tt.secret, Method: tt.method,
				Redirects: []string{"http://127.0.0.1/callback"}}}
			y := meet(t, o, func(s *Server) {
				s.ClientID, s.ClientSecret = "an id:/+",
					drawbridge.NewSecret(tt.secret)
			})
			y.signIn()
			y.p.ExpireAccess()
			y.in()
			if _, why, err := y.c.Remove(t.Context()); err != nil || tt.places == nil && why != nil {
				t.Errorf("%v, %v", why, err)
			}
			for _, r := range y.p.Requests(oauthtest.Authorize) {
				if r.Query.Has("client_secret") {
					t.Error("the secret is in the address")
				}
			}
		})
	}
	y := meet(t, registration(oauthtest.Registration{Absent: true}), func(s *Server) { s.ClientID = "nobody" })
	if err := y.tryIn(); err == nil {
		t.Error("a client that nobody knows is signed in")
	}
}

// TestClientOfReference has the row name its client by something that is to be found.
func TestClientOfReference(t *testing.T) {
	o := registration(oauthtest.Registration{Absent: true})
	o.Clients = []oauthtest.Client{{ID: "found", Secret: "found secret",
		Redirects: []string{"http://127.0.0.1/callback"}}}
	y := meet(t, o, nil)
	s := Server{ID: "protected", URL: y.p.ResourceURL, ClientID: "${keychain:id}",
		ClientSecret: drawbridge.NewSecret("${keychain:secret}")}
	auth, broken := config.Auth{ClientID: "found", ClientSecret: "found secret"}, error(nil)
	y.c = y.desk.Credential(s, func(context.Context) (config.Auth, error) { return auth, broken })
	y.signIn()
	y.in()
	y.p.RevokeAll()
	broken = errors.New("the keychain is away")
	wants(t, y.needed(), "the keychain is away")
	broken, auth = nil, config.Auth{}
	if _, err := y.c.Begin(t.Context()); err == nil || !strings.Contains(err.Error(), "client_id") {
		t.Errorf("%v", err)
	}
}

// testItself is a client that speaks for itself (row OA-18).
func testItself(t *testing.T) {
	o := registration(oauthtest.Registration{Absent: true})
	o.Clients = []oauthtest.Client{{ID: "robot", Secret: "robot secret", Grants: []string{"client_credentials"}}}
	robot := func(s *Server) {
		s.Grant, s.ClientID, s.ClientSecret = ClientCredentialsGrant, "robot", drawbridge.NewSecret("robot secret")
	}
	y := meet(t, o, robot)
	for range 3 {
		y.in()
	}
	y.p.ExpireAccess()
	y.in()
	y.later(56 * time.Minute)
	y.in()
	if c := y.p.Counts(); c.Credentials != 3 || c.Authorizations != 0 {
		t.Errorf("%+v", c)
	}
	for _, r := range y.p.Requests(oauthtest.Token) {
		if r.Form.Get("resource") != y.p.ResourceURL || strings.Contains(r.Form.Get("scope"), "offline_access") {
			t.Errorf("%v", r.Form)
		}
	}
	y = meet(t, o, func(s *Server) { robot(s); s.ClientSecret = drawbridge.NewSecret("wrong") })
	n := y.needed()
	wants(t, n, "invalid_client")
	if n.HasURL() {
		t.Error("a person is sent somewhere")
	}
	y = meet(t, o, robot)
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Tokens.Audience = "https://elsewhere.example" })
	for range 10 {
		_, _ = y.call("whoami")
	}
	if c := y.p.Counts(); c.Credentials > maxRenewals+1 {
		t.Errorf("%+v", c)
	}
	wants(t, y.needed(), "the server refuses each token")
	y = meet(t, o, robot)
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
		k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.Token: {Status: 503}}
	})
	for range 10 {
		if _, err := y.call("whoami"); err == nil || SignInRequired(err) != nil {
			t.Errorf("%v", err)
		}
	}
	if n := len(y.p.Requests(oauthtest.Token)); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
