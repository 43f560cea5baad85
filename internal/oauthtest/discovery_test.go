package oauthtest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/google/go-cmp/cmp"
)

// TestPlaces has each place have metadata where it is turned on, and nothing else anywhere.
func TestPlaces(t *testing.T) {
	paths := []string{ // on the origin of the issuer, then of the resource
		"i/.well-known/oauth-authorization-server", "i/.well-known/oauth-authorization-server/tenant",
		"i/.well-known/openid-configuration", "i/.well-known/openid-configuration/tenant",
		"i/tenant/.well-known/openid-configuration",
		"i/oauth/metadata", "i/.mcp/auth", "i/authorize", "i/.well-known/oauth-protected-resource",
		"r/.well-known/oauth-protected-resource", "r/.well-known/oauth-protected-resource/mcp", "r/about/resource.json",
		"r/.well-known/oauth-authorization-server", "r/oauth/metadata",
	}
	for _, tt := range []struct {
		name      string
		discovery oauthtest.Discovery
		want      []string
	}{
		{"by itself", oauthtest.Discovery{}, []string{"i/.well-known/oauth-authorization-server/tenant",
			"r/.well-known/oauth-protected-resource/mcp"}},
		{"none", oauthtest.Discovery{Places: []oauthtest.MetadataPlace{}}, nil},
		{"roots", oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.PRMRoot, oauthtest.ASRoot}},
			[]string{"i/.well-known/oauth-authorization-server", "r/.well-known/oauth-protected-resource"}},
		{"elsewhere", oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.PRMElsewhere}},
			[]string{"r/about/resource.json"}},
		{"OpenID inserted", oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.OIDCInserted}},
			[]string{"i/.well-known/openid-configuration/tenant"}},
		{"OpenID appended", oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.OIDCAppended}},
			[]string{"i/tenant/.well-known/openid-configuration"}},
		{"OpenID at the root", oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.OIDCRoot}},
			[]string{"i/.well-known/openid-configuration"}},
		{"odd ones", oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.OddMetadata, oauthtest.OddMCPAuth,
			oauthtest.OddAuthorize}}, []string{"i/.mcp/auth", "i/authorize", "i/oauth/metadata"}},
		{"on the resource", oauthtest.Discovery{OnResource: true, Places: []oauthtest.MetadataPlace{oauthtest.ASRoot,
			oauthtest.OddMetadata}}, []string{
			"i/.well-known/oauth-authorization-server", "i/oauth/metadata", "r/.well-known/oauth-authorization-server",
			"r/oauth/metadata"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := oauthtest.New(t, oauthtest.Options{IssuerPath: "/tenant",
				Knobs: oauthtest.Knobs{Discovery: tt.discovery}})
			origins := map[byte]string{'i': strings.TrimSuffix(p.Issuer, "/tenant"),
				'r': strings.TrimSuffix(p.ResourceURL, "/mcp")}
			var got []string
			for _, path := range paths {
				a := get(t, p, origins[path[0]]+path[1:])
				if a.Status != http.StatusOK {
					continue
				}
				if a.JSON["issuer"] != p.Issuer && a.JSON["resource"] != p.ResourceURL {
					t.Errorf("%s has no metadata: %s", path, a.Text)
				}
				got = append(got, path)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMetadata is the document under its knobs: what is other than in the honest one, or gone.
func TestMetadata(t *testing.T) {
	for _, tt := range []struct {
		name  string
		knobs oauthtest.Knobs
		want  map[string]any
	}{
		{"honest", oauthtest.Knobs{}, map[string]any{}},
		{"issuer with a slash", oauthtest.Knobs{Discovery: oauthtest.Discovery{Issuer: "{issuer}/"}},
			map[string]any{"issuer": "{issuer}/"}},
		{"PKCE not told", oauthtest.Knobs{Authorization: oauthtest.Authorization{PKCE: "unadvertised"}},
			map[string]any{"code_challenge_methods_supported": nil}},
		{"PKCE plain", oauthtest.Knobs{Authorization: oauthtest.Authorization{PKCE: "plain"}},
			map[string]any{"code_challenge_methods_supported": []any{"plain"}}},
		{"iss not told", oauthtest.Knobs{Authorization: oauthtest.Authorization{IssUnadvertised: true}},
			map[string]any{"authorization_response_iss_parameter_supported": nil}},
		{"no registration", oauthtest.Knobs{Registration: oauthtest.Registration{Absent: true}},
			map[string]any{"registration_endpoint": nil}},
		{"documents", oauthtest.Knobs{Registration: oauthtest.Registration{Documents: true}},
			map[string]any{"client_id_metadata_document_supported": true}},
		{"no devices", oauthtest.Knobs{Device: oauthtest.Device{Absent: true}},
			map[string]any{"device_authorization_endpoint": nil}},
		{"a scripted URL",
			oauthtest.Knobs{Discovery: oauthtest.Discovery{Set: map[string]any{"authorization_endpoint": "javascript:alert(1)", "jwks_uri": nil}}},
			map[string]any{"authorization_endpoint": "javascript:alert(1)", "jwks_uri": nil}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := oauthtest.New(t, oauthtest.Options{})
			honest := get(t, p, p.URL(oauthtest.ServerMetadata)).JSON
			p.ChangeKnobs(func(k *oauthtest.Knobs) { *k = tt.knobs })
			odd := get(t, p, p.URL(oauthtest.ServerMetadata)).JSON
			got := map[string]any{}
			for name := range honest {
				if !cmp.Equal(honest[name], odd[name]) {
					got[name] = odd[name]
				}
			}
			for name := range odd {
				if _, ok := honest[name]; !ok {
					got[name] = odd[name]
				}
			}
			for name, value := range tt.want {
				if s, ok := value.(string); ok {
					tt.want[name] = strings.ReplaceAll(s, "{issuer}", p.Issuer)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBigAndRedirectedMetadata(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{Knobs: oauthtest.Knobs{Discovery: oauthtest.Discovery{Padding: 10 << 20}}})
	if a := get(t, p, p.URL(oauthtest.ServerMetadata)); len(a.Text) < 10<<20 || a.JSON["issuer"] != p.Issuer {
		t.Errorf("%d bytes from %v", len(a.Text), a.JSON["issuer"])
	}
	p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Discovery.Redirect = "http://169.254.169.254/{issuer}" })
	if a := get(t, p, p.URL(oauthtest.ServerMetadata)); a.Header.Get("Location") != "http://169.254.169.254/"+p.Issuer {
		t.Errorf("%d %s", a.Status, a.Header.Get("Location"))
	}
}

// TestChallenges is the 401 in each of its forms.
func TestChallenges(t *testing.T) {
	body := func(under string) oauthtest.Challenge {
		return oauthtest.Challenge{
			Form: oauthtest.ChallengeBody, Under: under, AuthorizationKey: "authorizationUrl", TokenKey: "tokenUri",
			ClientIDKey: "public_client_id", ClientID: "public", ScopesKey: "scopes", ScopeList: true,
		}
	}
	const inner = `{"authorizationUrl":"{issuer}/authorize","public_client_id":"public","scopes":["mcp"],"tokenUri":"{issuer}/token"}`
	for _, tt := range []struct {
		name      string
		challenge oauthtest.Challenge
		want      string // status, WWW-Authenticate, Mcp-Auth-Server, body
	}{
		{"standard", oauthtest.Challenge{},
			`401|Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp", scope="mcp"||{"error":"unauthorized"}`},
		{"no scope", oauthtest.Challenge{Scope: "-"},
			`401|Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp"||{"error":"unauthorized"}`},
		{"another scope", oauthtest.Challenge{Scope: "a b"},
			`401|Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp", scope="a b"||{"error":"unauthorized"}`},
		{"bare", oauthtest.Challenge{Form: oauthtest.ChallengeBare}, `401|Bearer||{"error":"unauthorized"}`},
		{"none, as 403", oauthtest.Challenge{Form: oauthtest.ChallengeNone, Status: 403},
			`403|||{"error":"unauthorized"}`},
		{"pairs", oauthtest.Challenge{Form: oauthtest.ChallengePairs, AuthorizationKey: "realm"},
			`401|Bearer realm="{issuer}/authorize", token_uri="{issuer}/token"||{"error":"unauthorized"}`},
		{"body", body(""), `401|||` + inner},
		{"body, one deep", body("oauth"), `401|||{"error":"unauthorized","oauth":` + inner + `}`},
		{"in the query", oauthtest.Challenge{Form: oauthtest.ChallengeBody, InQuery: true, ClientID: "public"},
			`401|||{"authorization_endpoint":"{issuer}/authorize?client_id=public\u0026scope=mcp","token_endpoint":"{issuer}/token"}`},
		{"a header", oauthtest.Challenge{Form: oauthtest.ChallengeAuthServer},
			`401||{issuer}|{"error":"unauthorized"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := oauthtest.New(t, oauthtest.Options{Knobs: oauthtest.Knobs{Challenge: tt.challenge}})
			a := get(t, p, p.ResourceURL)
			got := fmt.Sprintf("%d|%s|%s|%s", a.Status, a.Header.Get("WWW-Authenticate"),
				a.Header.Get("Mcp-Auth-Server"), a.Text)
			want := strings.NewReplacer("{issuer}", p.Issuer, "{origin}", strings.TrimSuffix(p.ResourceURL,
				"/mcp")).Replace(tt.want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLocalhost(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{ResourceHost: "localhost",
		Knobs: oauthtest.Knobs{Discovery: oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.PRMPath}}}})
	if !strings.HasPrefix(p.Issuer, "http://127.0.0.1:") || !strings.HasPrefix(p.ResourceURL, "http://localhost:") {
		t.Errorf("issuer %s, resource %s", p.Issuer, p.ResourceURL)
	}
	for _, at := range []string{p.URL(oauthtest.ResourceMetadata), strings.Replace(p.URL(oauthtest.ResourceMetadata),
		"localhost", "127.0.0.1", 1)} {
		if a := get(t, p, at); a.JSON["resource"] != p.ResourceURL {
			t.Errorf("%s: %d %s", at, a.Status, a.Text)
		}
	}
}

// TestMixUp has one provider claim another's endpoint: the browser ends with a code of the honest one.
func TestMixUp(t *testing.T) {
	honest := oauthtest.New(t, registered(oauthtest.Knobs{}))
	liar := oauthtest.New(t,
		registered(oauthtest.Knobs{Authorization: oauthtest.Authorization{Forward: honest.URL(oauthtest.Authorize),
			ForwardClient: "public"}}))
	q := question(honest)
	q.Set("client_id", "shop")
	got := authorized(t, liar, q)
	if got.Get("iss") != honest.Issuer {
		t.Errorf("iss = %s, want the honest provider's", got.Get("iss"))
	}
	if diff := cmp.Diff([]int{1, 0}, []int{honest.Authorizations(), liar.Authorizations()}); diff != "" {
		t.Error(diff)
	}
}
