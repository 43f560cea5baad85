package server

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	protocol "github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// needed is a Check of issuers alone.
type needed struct{ *Issuers }

func (needed) Required(context.Context) (bool, error) { return true, nil }

// A wallet is the OAuth handler of a client that gets a token when it is asked for one, from the issuer that the door
// names.
type wallet struct {
	t      *testing.T
	issuer *mcptest.TokenIssuer
	door   string
	// claims are changes of what the token says; token is what it got.
	claims map[string]any
	token  string
	// asked are the challenges that it met.
	asked []string
}

func (w *wallet) TokenSource(context.Context) (oauth2.TokenSource, error) {
	if w.token == "" {
		return nil, nil
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: w.token}), nil
}

// Authorize reads the challenge and the metadata as the SDK does, and gets a token for the resource that they name.
func (w *wallet) Authorize(ctx context.Context, _ *http.Request, resp *http.Response) error {
	defer resp.Body.Close()
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header["Www-Authenticate"])
	if err != nil || len(challenges) != 1 {
		w.t.Errorf("the challenge: %v, %v", challenges, err)
		return err
	}
	params := challenges[0].Params
	w.asked = append(w.asked, strings.TrimSpace(params["error"]+" "+params["scope"]))
	prm, err := oauthex.GetProtectedResourceMetadata(ctx, params["resource_metadata"], w.door, http.DefaultClient)
	if err != nil {
		w.t.Errorf("the metadata: %v", err)
		return err
	}
	if len(prm.AuthorizationServers) != 1 || prm.AuthorizationServers[0] != w.issuer.URL {
		w.t.Errorf("the issuers are %v", prm.AuthorizationServers)
	}
	w.token = w.issuer.Token(w.issuer.Claims(prm.Resource, w.claims))
	return nil
}

// TestOAuthWithTheSDK has the official client find out whom to ask for a token, and use everything with it.
func TestOAuthWithTheSDK(t *testing.T) {
	for _, version := range []string{protocol.Version20260728, protocol.Version20251125} {
		t.Run(version, func(t *testing.T) {
			issuer := mcptest.NewTokenIssuer(t, "/realms/a")
			issuers, err := NewIssuers(IssuerOptions{Issuers: []string{issuer.URL}})
			if err != nil {
				t.Fatal(err)
			}
			d := sdkDeck()
			principals := make(chan string, 100)
			do := d.do
			d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
				principals <- call.Caller.Principal
				return do(ctx, call)
			}
			s := newServer(t, d, Options{Authenticator: needed{issuers},
				Resource: Resource{Issuers: []string{issuer.URL}, Scopes: issuers.AcceptedScopes()}})
			door := serveWhole(t, s) + Path
			w := &wallet{t: t, issuer: issuer, door: door}
			transport := http.DefaultTransport.(*http.Transport).Clone()
			t.Cleanup(transport.CloseIdleConnections)
			c := newSDKClient()
			session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{
				Endpoint: door, HTTPClient: &http.Client{Transport: transport}, OAuthHandler: w,
			}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			answer := "nobody to ask"
			if version == protocol.Version20251125 {
				answer = "accept"
			}
			c.play(t, d, session, answer)
			if err := session.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if len(w.asked) != 1 || w.asked[0] != "mcp" {
				t.Errorf("it was asked for a token by %q", w.asked)
			}
			if got := <-principals; got != "ada@"+issuer.URL {
				t.Errorf("the principal is %s", got)
			}
		})
	}
}

// TestOA13InsufficientScope: a client whose token lacks the scope is told so once, by name, and no loop comes of it.
func TestOA13InsufficientScope(t *testing.T) {
	issuer := mcptest.NewTokenIssuer(t, "")
	issuers, err := NewIssuers(IssuerOptions{Issuers: []string{issuer.URL}})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, newFakeDeck(), Options{Authenticator: needed{issuers},
		Resource: Resource{Issuers: []string{issuer.URL}, Scopes: issuers.AcceptedScopes()}})
	door := serveWhole(t, s) + Path
	for scope, want := range map[string]int{"mcp": 200, "mcp:fake": 200, "openid": 403, "": 403, "*": 403, "mcp:*": 403,
		"mcp:fake*": 403} {
		r := with(modernRequest(t, door, discover), issuer.Token(issuer.Claims(door, map[string]any{"scope": scope})))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		challenge := resp.Header.Get("WWW-Authenticate")
		if resp.StatusCode != want || want == 403 && !strings.Contains(challenge, `error="insufficient_scope"`) ||
			want == 403 && !strings.HasSuffix(challenge, `scope="mcp"`) {
			t.Errorf("scope %q: status %d, %s", scope, resp.StatusCode, challenge)
		}
	}
	w := &wallet{t: t, issuer: issuer, door: door, claims: map[string]any{"scope": "openid"}}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	_, err = newSDKClient().Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: door, HTTPClient: &http.Client{Transport: transport}, OAuthHandler: w,
	}, nil)
	if err == nil || len(w.asked) == 0 || len(w.asked) > 4 {
		t.Errorf("connected with %v, after %q", err, w.asked)
	}
}

// TestOA5OtherDoors sends tokens for other doors to this one: what one door's clients hold is worth nothing at another.
func TestOA5OtherDoors(t *testing.T) {
	issuer := mcptest.NewTokenIssuer(t, "")
	issuers, err := NewIssuers(IssuerOptions{Issuers: []string{issuer.URL}})
	if err != nil {
		t.Fatal(err)
	}
	open := func() string {
		return serveWhole(t, newServer(t, newFakeDeck(), Options{Authenticator: needed{issuers},
			Resource: Resource{Issuers: []string{issuer.URL}, Scopes: issuers.AcceptedScopes()}})) + Path
	}
	one, other := open(), open()
	for _, tt := range []struct {
		door string
		aud  any
		want int
	}{
		{one, one, 200}, {other, other, 200}, {one, other, 401}, {other, one, 401}, {one, []string{one, other}, 200},
		{one, nil, 401},
		{one, strings.TrimSuffix(one, Path), 401}, {one, strings.Replace(one, "127.0.0.1", "localhost", 1), 401},
	} {
		r := with(modernRequest(t, tt.door, discover), issuer.Token(issuer.Claims("", map[string]any{"aud": tt.aud})))
		if status, body := send(t, r); status != tt.want {
			t.Errorf("%v at %s: %d %s", tt.aud, tt.door, status, body)
		}
	}
}
