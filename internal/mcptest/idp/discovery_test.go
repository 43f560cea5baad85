package idp_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcptest/idp"
	"github.com/google/go-cmp/cmp"
)

// TestPlaces has each place have metadata where it is turned on, and nothing else anywhere.
func TestPlaces(t *testing.T) {
	paths := []string{ // on the origin of the issuer, then of the resource
		"i/.well-known/oauth-authorization-server", "i/.well-known/oauth-authorization-server/tenant",
		"i/.well-known/openid-configuration", "i/.well-known/openid-configuration/tenant", "i/tenant/.well-known/openid-configuration",
		"i/oauth/metadata", "i/.mcp/auth", "i/authorize", "i/.well-known/oauth-protected-resource",
		"r/.well-known/oauth-protected-resource", "r/.well-known/oauth-protected-resource/mcp", "r/about/resource.json",
		"r/.well-known/oauth-authorization-server", "r/oauth/metadata",
	}
	for _, tt := range []struct {
		name      string
		discovery idp.Discovery
		want      []string
	}{
		{"by itself", idp.Discovery{}, []string{"i/.well-known/oauth-authorization-server/tenant", "r/.well-known/oauth-protected-resource/mcp"}},
		{"none", idp.Discovery{Places: []idp.Place{}}, nil},
		{"roots", idp.Discovery{Places: []idp.Place{idp.PRMRoot, idp.ASRoot}}, []string{"i/.well-known/oauth-authorization-server", "r/.well-known/oauth-protected-resource"}},
		{"elsewhere", idp.Discovery{Places: []idp.Place{idp.PRMElsewhere}}, []string{"r/about/resource.json"}},
		{"OpenID inserted", idp.Discovery{Places: []idp.Place{idp.OIDCInserted}}, []string{"i/.well-known/openid-configuration/tenant"}},
		{"OpenID appended", idp.Discovery{Places: []idp.Place{idp.OIDCAppended}}, []string{"i/tenant/.well-known/openid-configuration"}},
		{"OpenID at the root", idp.Discovery{Places: []idp.Place{idp.OIDCRoot}}, []string{"i/.well-known/openid-configuration"}},
		{"odd ones", idp.Discovery{Places: []idp.Place{idp.OddMetadata, idp.OddMCPAuth, idp.OddAuthorize}}, []string{"i/.mcp/auth", "i/authorize", "i/oauth/metadata"}},
		{"on the resource", idp.Discovery{OnResource: true, Places: []idp.Place{idp.ASRoot, idp.OddMetadata}}, []string{
			"i/.well-known/oauth-authorization-server", "i/oauth/metadata", "r/.well-known/oauth-authorization-server", "r/oauth/metadata"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := idp.New(t, idp.Options{IssuerPath: "/tenant", Knobs: idp.Knobs{Discovery: tt.discovery}})
			origins := map[byte]string{'i': strings.TrimSuffix(p.Issuer, "/tenant"), 'r': strings.TrimSuffix(p.ResourceURL, "/mcp")}
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
		knobs idp.Knobs
		want  map[string]any
	}{
		{"honest", idp.Knobs{}, map[string]any{}},
		{"issuer with a slash", idp.Knobs{Discovery: idp.Discovery{Issuer: "{issuer}/"}}, map[string]any{"issuer": "{issuer}/"}},
		{"PKCE not told", idp.Knobs{Authorization: idp.Authorization{PKCE: "unadvertised"}}, map[string]any{"code_challenge_methods_supported": nil}},
		{"PKCE plain", idp.Knobs{Authorization: idp.Authorization{PKCE: "plain"}}, map[string]any{"code_challenge_methods_supported": []any{"plain"}}},
		{"iss not told", idp.Knobs{Authorization: idp.Authorization{IssUnadvertised: true}}, map[string]any{"authorization_response_iss_parameter_supported": nil}},
		{"no registration", idp.Knobs{Registration: idp.Registration{Absent: true}}, map[string]any{"registration_endpoint": nil}},
		{"documents", idp.Knobs{Registration: idp.Registration{Documents: true}}, map[string]any{"client_id_metadata_document_supported": true}},
		{"no devices", idp.Knobs{Device: idp.Device{Absent: true}}, map[string]any{"device_authorization_endpoint": nil}},
		{"a scripted URL", idp.Knobs{Discovery: idp.Discovery{Set: map[string]any{"authorization_endpoint": "javascript:alert(1)", "jwks_uri": nil}}},
			map[string]any{"authorization_endpoint": "javascript:alert(1)", "jwks_uri": nil}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := idp.New(t, idp.Options{})
			honest := get(t, p, p.URL(idp.ServerMetadata)).JSON
			p.Turn(func(k *idp.Knobs) { *k = tt.knobs })
			odd := get(t, p, p.URL(idp.ServerMetadata)).JSON
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
	p := idp.New(t, idp.Options{Knobs: idp.Knobs{Discovery: idp.Discovery{Padding: 10 << 20}}})
	if a := get(t, p, p.URL(idp.ServerMetadata)); len(a.Text) < 10<<20 || a.JSON["issuer"] != p.Issuer {
		t.Errorf("%d bytes from %v", len(a.Text), a.JSON["issuer"])
	}
	p.Turn(func(k *idp.Knobs) { k.Discovery.Redirect = "http://169.254.169.254/{issuer}" })
	if a := get(t, p, p.URL(idp.ServerMetadata)); a.Header.Get("Location") != "http://169.254.169.254/"+p.Issuer {
		t.Errorf("%d %s", a.Status, a.Header.Get("Location"))
	}
}

// TestChallenges is the 401 in each of its forms.
func TestChallenges(t *testing.T) {
	body := func(under string) idp.Challenge {
		return idp.Challenge{
			Form: idp.ChallengeBody, Under: under, AuthorizationKey: "authorizationUrl", TokenKey: "tokenUri",
			ClientIDKey: "public_client_id", ClientID: "public", ScopesKey: "scopes", ScopeList: true,
		}
	}
	const inner = `{"authorizationUrl":"{issuer}/authorize","public_client_id":"public","scopes":["mcp"],"tokenUri":"{issuer}/token"}`
	for _, tt := range []struct {
		name      string
		challenge idp.Challenge
		want      string // status, WWW-Authenticate, Mcp-Auth-Server, body
	}{
		{"standard", idp.Challenge{}, `401|Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp", scope="mcp"||{"error":"unauthorized"}`},
		{"no scope", idp.Challenge{Scope: "-"}, `401|Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp"||{"error":"unauthorized"}`},
		{"another scope", idp.Challenge{Scope: "a b"}, `401|Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp", scope="a b"||{"error":"unauthorized"}`},
		{"bare", idp.Challenge{Form: idp.ChallengeBare}, `401|Bearer||{"error":"unauthorized"}`},
		{"none, as 403", idp.Challenge{Form: idp.ChallengeNone, Status: 403}, `403|||{"error":"unauthorized"}`},
		{"pairs", idp.Challenge{Form: idp.ChallengePairs, AuthorizationKey: "realm"}, `401|Bearer realm="{issuer}/authorize", token_uri="{issuer}/token"||{"error":"unauthorized"}`},
		{"body", body(""), `401|||` + inner},
		{"body, one deep", body("oauth"), `401|||{"error":"unauthorized","oauth":` + inner + `}`},
		{"in the query", idp.Challenge{Form: idp.ChallengeBody, InQuery: true, ClientID: "public"},
			`401|||{"authorization_endpoint":"{issuer}/authorize?client_id=public\u0026scope=mcp","token_endpoint":"{issuer}/token"}`},
		{"a header", idp.Challenge{Form: idp.ChallengeAuthServer}, `401||{issuer}|{"error":"unauthorized"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := idp.New(t, idp.Options{Knobs: idp.Knobs{Challenge: tt.challenge}})
			a := get(t, p, p.ResourceURL)
			got := fmt.Sprintf("%d|%s|%s|%s", a.Status, a.Header.Get("WWW-Authenticate"), a.Header.Get("Mcp-Auth-Server"), a.Text)
			want := strings.NewReplacer("{issuer}", p.Issuer, "{origin}", strings.TrimSuffix(p.ResourceURL, "/mcp")).Replace(tt.want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLocalhost(t *testing.T) {
	p := idp.New(t, idp.Options{ResourceHost: "localhost", Knobs: idp.Knobs{Discovery: idp.Discovery{Places: []idp.Place{idp.PRMPath}}}})
	if !strings.HasPrefix(p.Issuer, "http://127.0.0.1:") || !strings.HasPrefix(p.ResourceURL, "http://localhost:") {
		t.Errorf("issuer %s, resource %s", p.Issuer, p.ResourceURL)
	}
	for _, at := range []string{p.URL(idp.ResourceMetadata), strings.Replace(p.URL(idp.ResourceMetadata), "localhost", "127.0.0.1", 1)} {
		if a := get(t, p, at); a.JSON["resource"] != p.ResourceURL {
			t.Errorf("%s: %d %s", at, a.Status, a.Text)
		}
	}
}

// TestMixUp has one provider claim another's endpoint: the browser ends with a code of the honest one.
func TestMixUp(t *testing.T) {
	honest := idp.New(t, registered(idp.Knobs{}))
	liar := idp.New(t, registered(idp.Knobs{Authorization: idp.Authorization{Forward: honest.URL(idp.Authorize), ForwardClient: "public"}}))
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
