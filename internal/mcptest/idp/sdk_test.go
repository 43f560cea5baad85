package idp_test

import (
	"context"
	"errors"
	"net/url"
	"os"
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
		{"resource metadata at the root", idp.Options{Knobs: idp.Knobs{Discovery: idp.Discovery{Places: []idp.Place{idp.PRMRoot, idp.ASPath}}, Challenge: idp.Challenge{Form: idp.ChallengeBare}}}},
		{"resource metadata elsewhere", idp.Options{Knobs: idp.Knobs{Discovery: idp.Discovery{Places: []idp.Place{idp.PRMElsewhere, idp.ASPath}}}}},
		{"OpenID inserted", idp.Options{IssuerPath: "/tenant", Knobs: idp.Knobs{Discovery: idp.Discovery{Places: []idp.Place{idp.PRMPath, idp.OIDCInserted}}}}},
		{"OpenID appended", idp.Options{IssuerPath: "/tenant", Knobs: idp.Knobs{Discovery: idp.Discovery{Places: []idp.Place{idp.PRMPath, idp.OIDCAppended}}}}},
		{"no metadata but the old endpoints", idp.Options{OneOrigin: true, Knobs: idp.Knobs{Discovery: idp.Discovery{Places: []idp.Place{}}, Challenge: idp.Challenge{Form: idp.ChallengeBare}}}},
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
