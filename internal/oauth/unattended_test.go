package oauth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/google/go-cmp/cmp"
)

// A desk of issuers: an MCP server that sends its clients to one, and a company's identity provider. Both note the
// forms that their token endpoints get.
type issuers struct {
	server, issuer, idp string
	asked               []url.Values
	idpSays             string // what the identity provider answers; "" is its word
}

func newIssuers(t *testing.T) *issuers {
	i := &issuers{}
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	i.server, i.issuer, i.idp = web.URL+"/mcp", web.URL+"/as", web.URL+"/idp"
	answer := func(path, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, text)
		})
	}
	answer("/.well-known/oauth-protected-resource/mcp", fmt.Sprintf(`{"resource":%q,"authorization_servers":[%q]}`,
		i.server, i.issuer))
	answer("/.well-known/oauth-authorization-server/as", fmt.Sprintf(`{"issuer":%q,"authorization_endpoint":"%[1]s/a","token_endpoint":"%[1]s/token",
		"response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["client_secret_basic"]}`, i.issuer))
	answer("/idp/.well-known/openid-configuration", fmt.Sprintf(`{"issuer":%q,"token_endpoint":"%[1]s/token"}`, i.idp))
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/as/token", func(w http.ResponseWriter, r *http.Request) {
		i.note(r)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"access","token_type":"Bearer","expires_in":60}`)
	})
	mux.HandleFunc("/idp/token", func(w http.ResponseWriter, r *http.Request) {
		i.note(r)
		w.Header().Set("Content-Type", "application/json")
		if i.idpSays != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, i.idpSays)
			return
		}
		fmt.Fprint(w, `{"access_token":"word","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag","token_type":"N_A"}`)
	})
	return i
}

func (i *issuers) note(r *http.Request) {
	_ = r.ParseForm()
	if name, secret, ok := r.BasicAuth(); ok {
		r.PostForm.Set("basic", name+" "+secret)
	}
	i.asked = append(i.asked, r.PostForm)
}

// credential is that of a row with this auth.
func (i *issuers) credential(t *testing.T, auth config.Auth) *Credential {
	server, ok := ServerFromConfig(config.Server{ID: "s", URL: i.server, Auth: &auth}, "p", "p")
	if !ok {
		t.Fatal("nothing to sign in at")
	}
	desk := NewManager(ManagerOptions{})
	t.Cleanup(desk.Close)
	return desk.Credential(server, func(context.Context) (config.Auth, error) { return auth, nil })
}

// TestWithoutAPerson has the grants that need none, with what each sends to whom.
func TestWithoutAPerson(t *testing.T) {
	for name, test := range map[string]struct {
		auth config.Auth
		want func(*issuers) []url.Values
	}{
		"a client with a secret": {
			config.Auth{Type: "client_credentials", ClientID: "c", ClientSecret: "s", Scopes: []string{"a", "b"}},
			func(i *issuers) []url.Values {
				return []url.Values{{"grant_type": {"client_credentials"}, "scope": {"a b"}, "resource": {i.server},
					"basic": {"c s"}}}
			},
		},
		"a workload": {
			config.Auth{Type: "workload", ClientID: "c", IDToken: "i"},
			func(i *issuers) []url.Values {
				return []url.Values{{"grant_type": {jwtBearerGrant}, "assertion": {"i"}, "resource": {i.server},
					"client_id": {"c"}}}
			},
		},
		"an enterprise": {
			config.Auth{Type: "enterprise", ClientID: "c", ClientSecret: "s", IDPClientID: "ic", IDPClientSecret: "is",
				IDToken: "i", Scopes: []string{"a"}},
			func(i *issuers) []url.Values {
				return []url.Values{
					{
						"grant_type":           {tokenExchangeGrant},
						"requested_token_type": {"urn:ietf:params:oauth:token-type:id-jag"}, "audience": {i.issuer},
						"resource": {i.server}, "scope": {"a"}, "subject_token": {"i"}, "client_id": {"ic"},
						"client_secret": {"is"}, "code": {""},
						"subject_token_type": {"urn:ietf:params:oauth:token-type:id_token"},
					},
					{"grant_type": {jwtBearerGrant}, "assertion": {"word"}, "scope": {"a"}, "resource": {i.server},
						"basic": {"c s"}},
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuers(t)
			if test.auth.Type == "enterprise" {
				test.auth.IDPIssuer = i.idp
			}
			c := i.credential(t, test.auth)
			token, err := c.ReplaceToken(t.Context(), "", http.StatusUnauthorized, http.Header{}, nil)
			if err != nil || token != "access" {
				t.Fatalf("%q, %v", token, err)
			}
			if diff := cmp.Diff(test.want(i), i.asked); diff != "" {
				t.Error(diff)
			}
			if s, err := c.Status(); err != nil || !s.AutoRenews {
				t.Errorf("it is not said to renew itself: %+v, %v", s, err)
			}
			if again, err := c.Token(t.Context()); again != "access" || err != nil ||
				len(i.asked) != len(test.want(i)) {
				t.Errorf("the next request has %q, %v after %d questions", again, err, len(i.asked))
			}
			if _, err := c.BeginSignIn(t.Context(), false); !errors.Is(err, errUnattended) {
				t.Errorf("a sign-in was begun: %v", err)
			}
		})
	}
}

// TestAClientWithAKey has the proof of a client in the place of its secret.
func TestAClientWithAKey(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	i := newIssuers(t)
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	c := i.credential(t, config.Auth{Type: "client_credentials", ClientID: "c", PrivateKey: text})
	if _, err := c.ReplaceToken(t.Context(), "", http.StatusUnauthorized, http.Header{}, nil); err != nil {
		t.Fatal(err)
	}
	form := i.asked[0]
	if form.Get("client_assertion") == "" {
		t.Error("there is no proof")
	}
	form.Del("client_assertion")
	want := url.Values{
		"grant_type":            {"client_credentials"},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"client_id":             {"c"}, "resource": {i.server},
	}
	if diff := cmp.Diff(want, form); diff != "" {
		t.Error(diff)
	}
}

// TestWhyNotWithoutAPerson has what goes wrong, without what is secret.
func TestWhyNotWithoutAPerson(t *testing.T) {
	for why, test := range map[string]struct {
		auth config.Auth
		says string
		want string
	}{
		"no key": {
			config.Auth{Type: "client_credentials", PrivateKey: "s3cret"}, "", "the private key is not in PEM format",
		},
		"a broken key": {
			config.Auth{Type: "client_credentials",
				PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("s3cret")}))}, "",
			"it must be PKCS #8 without a passphrase",
		},
		"an identity that is over": {
			config.Auth{Type: "enterprise", IDPClientID: "ic", IDToken: "s3cret"},
			`{"error":"invalid_grant","error_description":"expired"}`,
			"the identity provider: invalid_grant: expired",
		},
		"an identity provider that repeats what it got": {
			config.Auth{Type: "enterprise", IDPClientID: "ic", IDPClientSecret: "s3cret-too", IDToken: "s3cret"},
			`{"error":"invalid_grant","error_description":"s3cret of s3cret-too is over"}`, "invalid_grant: " +
				drawbridge.Redacted + " of " + drawbridge.Redacted + " is over",
		},
		"an identity provider that says nothing": {
			config.Auth{Type: "enterprise", IDPClientID: "ic", IDToken: "s3cret"}, `{}`,
			"the identity provider: status 400",
		},
		"none at all": {
			config.Auth{Type: "enterprise", IDPIssuer: "elsewhere", IDPClientID: "ic", IDToken: "s3cret"}, "",
			"the identity provider has no metadata",
		},
	} {
		t.Run(why, func(t *testing.T) {
			i := newIssuers(t)
			i.idpSays = test.says
			test.auth.ClientID = "c"
			if test.auth.IDPIssuer == "elsewhere" {
				test.auth.IDPIssuer = i.issuer + "/none"
			} else if test.auth.Type == "enterprise" {
				test.auth.IDPIssuer = i.idp
			}
			_, err := i.credential(t, test.auth).ReplaceToken(t.Context(), "", http.StatusUnauthorized,
				http.Header{}, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) ||
				strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "s3cret") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestAwayWithoutAPerson has an authorization server that is away be a matter of now where no person signs in.
func TestAwayWithoutAPerson(t *testing.T) {
	i := newIssuers(t)
	away := newServer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	for name, change := range map[string]func(*config.Auth){
		"client":   func(a *config.Auth) { a.Type, a.Issuer = "client_credentials", away.URL },
		"provider": func(a *config.Auth) { a.Type, a.IDPIssuer, a.IDToken = "enterprise", away.URL, "i" },
	} {
		auth := config.Auth{ClientID: "c", ClientSecret: "s"}
		change(&auth)
		_, err := i.credential(t, auth).ReplaceToken(t.Context(), "", http.StatusUnauthorized, http.Header{}, nil)
		if !IsTemporary(err) || SignInRequired(err) != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
