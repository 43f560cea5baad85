package idp_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcptest/idp"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

func TestMain(m *testing.M) {
	idp.Run()
	os.Exit(m.Run())
}

const callback = "http://127.0.0.1:1/callback"

// signIn connects the SDK's client, which signs in by itself.
func signIn(t *testing.T, p *idp.Provider) (*mcp.ClientSession, error) {
	t.Helper()
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "the SDK", RedirectURIs: []string{callback}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		RedirectURL: callback,
		Client:      p.HTTP(),
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			at, err := p.Follow(ctx, args.URL)
			if err != nil {
				return nil, err
			}
			u, err := url.Parse(at)
			if err != nil {
				return nil, err
			}
			q := u.Query()
			if q.Has("error") {
				return nil, errors.New(q.Get("error"))
			}
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: p.ResourceURL, HTTPClient: p.HTTP(), OAuthHandler: handler, DisableStandaloneSSE: true,
	}, nil)
	if err == nil {
		t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

// TestTheSDKSignsIn has a client that we did not write sign in, in every honest form.
func TestTheSDKSignsIn(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options idp.Options
	}{
		{"stateless", idp.Options{}},
		{"stateful", idp.Options{Knobs: idp.Knobs{Server: idp.Server{Legacy: true}}}},
		{"https", idp.Options{TLS: true}},
		{"issuer with a path", idp.Options{IssuerPath: "/tenant"}},
		{"resource metadata at the root", idp.Options{Knobs: idp.Knobs{
			Discovery: idp.Discovery{Places: []idp.Place{idp.PRMRoot, idp.ASPath}, Resource: "{origin}", SetPRM: map[string]any{"scopes_supported": nil}},
			Challenge: idp.Challenge{Form: idp.ChallengeBare},
		}}},
		{"resource metadata elsewhere", idp.Options{Knobs: idp.Knobs{Discovery: idp.Discovery{Places: []idp.Place{idp.PRMElsewhere, idp.ASPath}}}}},
		{"OpenID inserted", idp.Options{IssuerPath: "/tenant", Knobs: idp.Knobs{Discovery: idp.Discovery{Places: []idp.Place{idp.PRMPath, idp.OIDCInserted}}}}},
		{"OpenID appended", idp.Options{IssuerPath: "/tenant", Knobs: idp.Knobs{Discovery: idp.Discovery{Places: []idp.Place{idp.PRMPath, idp.OIDCAppended}}}}},
		{"no metadata but the old endpoints", idp.Options{OneOrigin: true, Knobs: idp.Knobs{
			Discovery: idp.Discovery{Places: []idp.Place{}}, Challenge: idp.Challenge{Form: idp.ChallengeBare}, Authorization: idp.Authorization{Iss: "-"},
		}}},
		{"a page to press a button on", idp.Options{Knobs: idp.Knobs{Authorization: idp.Authorization{Consent: true}}}},
		{"clients have secrets", idp.Options{Knobs: idp.Knobs{Registration: idp.Registration{Secret: true}}}},
		{"RS256", idp.Options{Knobs: idp.Knobs{Tokens: idp.Tokens{Alg: "RS256", AudienceList: true}}}},
		{"opaque tokens", idp.Options{Knobs: idp.Knobs{Tokens: idp.Tokens{Opaque: true}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := idp.New(t, tt.options)
			session, err := signIn(t, p)
			if err != nil {
				t.Fatal(err)
			}
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"})
			if err != nil {
				t.Fatal(err)
			}
			client := p.Sessions()[0].Client
			want := map[string]any{"sub": "ada", "client_id": client, "scopes": []any{"mcp"}}
			if diff := cmp.Diff(want, result.StructuredContent); diff != "" {
				t.Error(diff)
			}
			got := p.Counts()
			if got.Calls < 2 {
				t.Errorf("calls = %d, want those of the session", got.Calls)
			}
			got.Calls = 0
			if diff := cmp.Diff(idp.Counts{Registrations: 1, Authorizations: 1, Tokens: 1, Codes: 1, Challenges: 1}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTheSecretTool needs a further scope: the SDK's client asks for it once it hears of it.
func TestTheSecretTool(t *testing.T) {
	p := idp.New(t, idp.Options{})
	session, err := signIn(t, p)
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "secret_tool"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]mcp.Content{&mcp.TextContent{Text: "the secret"}}, result.Content); diff != "" {
		t.Error(diff)
	}
	var scopes [][]string
	for _, s := range p.Sessions() {
		slices.Sort(s.Scope) // the SDK's client asks for the union in any order
		scopes = append(scopes, s.Scope)
	}
	if diff := cmp.Diff([][]string{{"mcp"}, {"mcp", "secret"}}, scopes); diff != "" {
		t.Error(diff)
	}
	p.Turn(func(k *idp.Knobs) { k.Server.NeverEnough = true })
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "secret_tool"}); err == nil {
		t.Error("what is never enough was enough")
	}
}

// TestTheTokensOfOthersAreNoGood has the server refuse what has expired, was made by somebody else or is for another server.
func TestTheTokensOfOthersAreNoGood(t *testing.T) {
	p := idp.New(t, idp.Options{Resources: []string{"https://other.example"}})
	issued := func(g idp.Grant) string {
		text, err := p.Issue(g)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	minted, err := p.Mint(idp.Mint{})
	if err != nil {
		t.Fatal(err)
	}
	expired := issued(idp.Grant{})
	p.ExpireAccess()
	good := issued(idp.Grant{})
	for _, tt := range []struct {
		name, header string
		status       int
	}{
		{"good", "Bearer " + good, 200},
		{"in small letters", "bearer " + good, 200},
		{"none", "", 401},
		{"another scheme", "Basic " + good, 401},
		{"expired", "Bearer " + expired, 401},
		{"not issued", "Bearer " + minted, 401},
		{"for another resource", "Bearer " + issued(idp.Grant{Audience: "https://other.example"}), 401},
		{"without the scope", "Bearer " + issued(idp.Grant{Scope: []string{}}), 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequest(http.MethodPost, p.ResourceURL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+
				`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("Content-Type", "application/json")
			if tt.header != "" {
				r.Header.Set("Authorization", tt.header)
			}
			if a := do(t, p, r); a.Status != tt.status {
				t.Errorf("status = %d, want %d: %s", a.Status, tt.status, a.Text)
			}
		})
	}
}
