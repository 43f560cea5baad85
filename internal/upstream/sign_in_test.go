//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/oauth"
	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

func protected(p *oauthtest.Provider) config.Server {
	return config.Server{ID: "protected", Type: "http", URL: p.ResourceURL, Enabled: true,
		Phase: drawbridge.Idle, Hash: "h"}
}

func whoami(c drawbridge.Caller) drawbridge.Call {
	return drawbridge.Call{Caller: c, Method: mcp.MethodToolsCall,
		Params: json.RawMessage(`{"name":"whoami","arguments":{}}`)}
}

// TestSigningIn goes the plain way: a server that wants to know who asks, its state, a person in a browser, and a call.
func TestSigningIn(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		p := oauthtest.New(t, oauthtest.Options{Knobs: oauthtest.Knobs{Server: oauthtest.Server{Legacy: legacy}}})
		r := runReal(t, Options{}, protected(p))
		_, err := r.Mount(t.Context(), "protected")
		s := r.statusOf("protected")
		f := drawbridge.AsFault(err)
		if f.Code != drawbridge.AuthFailure || s.Phase != drawbridge.NeedsSignIn || s.SignIn == "" ||
			strings.Contains(f.Error(), s.SignIn) {
			t.Fatalf("%v, %+v, %+v", err, f, s)
		}
		if err := p.AllowSignIn(t.Context(), s.SignIn); err != nil {
			t.Fatal(err)
		}
		result, err := r.Do(t.Context(), "protected", whoami(caller(drawbridge.Modern)))
		if err != nil || !strings.Contains(string(result.Raw), "sub") {
			t.Errorf("%s, %v", result.Raw, err)
		}
		if _, err := r.Mount(t.Context(), "protected"); err != nil {
			t.Error(err)
		}
		if s := r.statusOf("protected"); s.Phase != drawbridge.Ready || s.SignIn != "" {
			t.Errorf("%+v", s)
		}
	}
}

// A visitor is a client whose user does what they are asked to.
type visitor struct {
	p     *oauthtest.Provider
	told  []string
	asked []string
}

func (v *visitor) Notify(_ context.Context, method string, _ json.RawMessage) error {
	v.told = append(v.told, method)
	return nil
}

func (v *visitor) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method != mcp.MethodElicitation || rawjson.GetString(params, "mode") != "url" {
		return nil, errors.New("asked for something else")
	}
	v.asked = append(v.asked, rawjson.GetString(params, "message"))
	go func() { _ = v.p.AllowSignIn(context.WithoutCancel(ctx), rawjson.GetString(params, "url")) }()
	return json.RawMessage(`{"action":"accept"}`), nil
}

// TestACallThatSignsIn has a caller who can take the user to a page: the call waits, and goes on.
func TestACallThatSignsIn(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{})
	r := runReal(t, Options{OnDemand: true}, protected(p))
	v := &visitor{p: p}
	c := caller(drawbridge.Legacy)
	c.Session, c.Capabilities = "s", json.RawMessage(`{"elicitation":{"url":{}}}`)
	call := whoami(c)
	call.Peer = v
	result, err := r.Do(t.Context(), "protected", call)
	if err != nil || !strings.Contains(string(result.Raw), "sub") || len(v.asked) != 1 {
		t.Fatalf("%s, %v, asked %q, told %q", result.Raw, err, v.asked, v.told)
	}
	call.Params = json.RawMessage(`{"name":"secret_tool","arguments":{}}`)
	if result, err = r.Do(t.Context(), "protected", call); err != nil || len(v.asked) != 2 {
		t.Errorf("%s, %v, asked %q", result.Raw, err, v.asked)
	}
}

// TestCallersOfTheirOwn has a row whose callers have credentials of their own: the owner signs in; another caller's
// token is exchanged for one, and who has none is told so, and not where to sign in.
func TestCallersOfTheirOwn(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{Clients: []oauthtest.Client{{ID: "drawbridge", Secret: "client-secret",
		Redirects: []string{"http://127.0.0.1/callback"}}}})
	row := protected(p)
	row.Credentials, row.Auth = config.PerCallerCredentials, &config.Auth{ClientID: "drawbridge",
		ClientSecret: "client-secret"}
	r := runReal(t, Options{}, row)
	_, err := r.Mount(t.Context(), "protected")
	if err := p.AllowSignIn(t.Context(), oauth.SignInRequired(err).URL); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Mount(t.Context(), "protected"); err != nil {
		t.Fatal(err)
	}
	bob := drawbridge.Caller{Kind: drawbridge.External, Principal: "bob", Era: drawbridge.Modern,
		Protocol: mcp.Version20260728}
	_, err = r.Do(t.Context(), "protected", whoami(bob))
	f := drawbridge.AsFault(err)
	if f.Code != drawbridge.AuthFailure || strings.Contains(f.Error(), "http") ||
		!strings.Contains(f.Next, "exchange") {
		t.Errorf("without a token: %v", f)
	}
	token, err := p.Issue(oauthtest.Grant{Subject: "bob", Client: "drawbridge", Audience: "drawbridge",
		Scope: []string{"mcp"}})
	if err != nil {
		t.Fatal(err)
	}
	bob.AccessToken = drawbridge.NewSecret(token)
	result, err := r.Do(t.Context(), "protected", whoami(bob))
	if err != nil || !strings.Contains(string(result.Raw), `bob`) {
		t.Errorf("%s, %v", result.Raw, err)
	}
	for _, request := range p.Requests(oauthtest.MCP) {
		if strings.Contains(request.Header.Get("Authorization"), token) {
			t.Error("the caller's own token reached the server")
		}
	}
	result, err = r.Do(t.Context(), "protected", whoami(caller(drawbridge.Modern)))
	if err != nil || strings.Contains(string(result.Raw), `bob`) {
		t.Errorf("the owner is %s, %v", result.Raw, err)
	}
}

// TestMoreRightsAreWaitedFor has a server that wants more for its list than was granted: it is left alone until
// somebody has granted that.
func TestMoreRightsAreWaitedFor(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{})
	r := runReal(t, Options{}, protected(p))
	if _, err := r.Mount(t.Context(), "protected"); err == nil {
		t.Fatal("mounted without a sign-in")
	}
	first := r.statusOf("protected").SignIn
	p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Server.Scope = "more" })
	if err := p.AllowSignIn(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	s := r.statusOf("protected")
	for s.Phase != drawbridge.NeedsSignIn || s.SignIn == first || s.SignIn == "" {
		select {
		case <-time.After(5 * time.Millisecond):
			s = r.statusOf("protected")
		case <-t.Context().Done():
			t.Fatalf("%+v", s)
		}
	}
	gate := p.Hold(oauthtest.MCP, oauthtest.BeforeHandling)
	select {
	case <-gate.Arrived:
		t.Error("the server was asked again though nobody had granted more")
	case <-time.After(300 * time.Millisecond):
	}
	gate.Open()
	if err := p.AllowSignIn(t.Context(), s.SignIn); err != nil {
		t.Fatal(err)
	}
}
