package oauthtest_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

func TestMain(m *testing.M) {
	oauthtest.Run()
	os.Exit(m.Run())
}

const callback = "http://127.0.0.1:1/callback"

// signIn connects the SDK's client, which signs in by itself.
func signIn(t *testing.T, p *oauthtest.Provider) (*mcp.ClientSession, error) {
	t.Helper()
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "the SDK", RedirectURIs: []string{callback}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		RedirectURL: callback,
		Client:      p.HTTP(),
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult,
			error) {
			at, err := p.SignInRedirect(ctx, args.URL)
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
		options oauthtest.Options
	}{
		{"stateless", oauthtest.Options{}},
		{"stateful", oauthtest.Options{Knobs: oauthtest.Knobs{Server: oauthtest.Server{Legacy: true}}}},
		{"https", oauthtest.Options{TLS: true}},
		{"issuer with a path", oauthtest.Options{IssuerPath: "/tenant"}},
		{"resource metadata at the root", oauthtest.Options{Knobs: oauthtest.Knobs{
			Discovery: oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.PRMRoot, oauthtest.ASPath},
				Resource: "{origin}", SetPRM: map[string]any{"scopes_supported": nil}},
			Challenge: oauthtest.Challenge{Form: oauthtest.ChallengeBare},
		}}},
		{"resource metadata elsewhere",
			oauthtest.Options{Knobs: oauthtest.Knobs{Discovery: oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.PRMElsewhere, oauthtest.ASPath}}}}},
		{"OpenID inserted", oauthtest.Options{IssuerPath: "/tenant",
			Knobs: oauthtest.Knobs{Discovery: oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.PRMPath,
				oauthtest.OIDCInserted}}}}},
		{"OpenID appended", oauthtest.Options{IssuerPath: "/tenant",
			Knobs: oauthtest.Knobs{Discovery: oauthtest.Discovery{Places: []oauthtest.MetadataPlace{oauthtest.PRMPath,
				oauthtest.OIDCAppended}}}}},
		{"no metadata but the old endpoints", oauthtest.Options{OneOrigin: true, Knobs: oauthtest.Knobs{
			Discovery:     oauthtest.Discovery{Places: []oauthtest.MetadataPlace{}},
			Challenge:     oauthtest.Challenge{Form: oauthtest.ChallengeBare},
			Authorization: oauthtest.Authorization{Iss: "-"},
		}}},
		{"a page to press a button on",
			oauthtest.Options{Knobs: oauthtest.Knobs{Authorization: oauthtest.Authorization{Consent: true}}}},
		{"clients have secrets",
			oauthtest.Options{Knobs: oauthtest.Knobs{Registration: oauthtest.Registration{Secret: true}}}},
		{"RS256", oauthtest.Options{Knobs: oauthtest.Knobs{Tokens: oauthtest.Tokens{Alg: "RS256",
			AudienceList: true}}}},
		{"opaque tokens", oauthtest.Options{Knobs: oauthtest.Knobs{Tokens: oauthtest.Tokens{Opaque: true}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := oauthtest.New(t, tt.options)
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
			if diff := cmp.Diff(oauthtest.Counts{Registrations: 1, Authorizations: 1, Tokens: 1, Codes: 1,
				Challenges: 1}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTheSecretTool needs a further scope: the SDK's client asks for it once it hears of it.
func TestTheSecretTool(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{})
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
	p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Server.NeverEnough = true })
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "secret_tool"}); err == nil {
		t.Error("what is never enough was enough")
	}
}

// TestTheTokensOfOthersAreNoGood has the server refuse what has expired, was made by somebody else or is for another
// server.
func TestTheTokensOfOthersAreNoGood(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{Resources: []string{"https://other.example"}})
	issued := func(g oauthtest.Grant) string {
		text, err := p.Issue(g)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	minted, err := p.Mint(oauthtest.TokenSpec{})
	if err != nil {
		t.Fatal(err)
	}
	expired := issued(oauthtest.Grant{})
	p.ExpireAccess()
	good := issued(oauthtest.Grant{})
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
		{"for another resource", "Bearer " + issued(oauthtest.Grant{Audience: "https://other.example"}), 401},
		{"without the scope", "Bearer " + issued(oauthtest.Grant{Scope: []string{}}), 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequest(http.MethodPost, p.ResourceURL,
				strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+
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
