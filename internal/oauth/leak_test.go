package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// An ear collects what leaves the package, and what must not be in it.
type ear struct {
	t       *testing.T
	heard   strings.Builder
	secrets map[string]string // by what they are
	code    string            // the last code that came back
}

// hear takes an error or a value in every form in which one is printed.
func (e *ear) hear(values ...any) {
	for _, v := range values {
		for _, form := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			fmt.Fprintf(&e.heard, form+"\n", v)
		}
		if err, ok := v.(error); ok {
			for inner := err; inner != nil; inner = errors.Unwrap(inner) {
				fmt.Fprintf(&e.heard, "%v\n%+v\n%#v\n", inner, inner, inner)
			}
			continue
		}
		if text, err := json.Marshal(v); err == nil {
			e.heard.Write(text)
		}
	}
}

// mind adds what is secret in a record.
func (e *ear) mind(r credentialRecord) {
	for what, text := range map[string]string{"access token": r.Access, "refresh token": r.Refresh,
		"client secret": r.Client.Secret} {
		if text != "" {
			e.secrets[what+" "+text[len(text)-4:]] = text
		}
	}
	for _, p := range r.Pending {
		e.secrets["verifier "+p.Verifier[:4]] = p.Verifier
	}
}

const canary = "canary-client-secret"

// party has a party, and hears what it says of itself when the act is over.
func (e *ear) party(o oauthtest.Options, change func(*Server), act func(y *party)) {
	y := meet(e.t, o, change)
	e.code = ""
	act(y)
	e.mind(y.kept())
	s, err := y.c.Status()
	e.hear(s, err, y.c, y.desk, y.c.server, struct{ inside any }{y.c}, struct{ inside Server }{y.c.server},
		[]*Manager{y.desk})
	e.heard.WriteString(y.log.String())
}

// known is a party with a client that has a secret.
func (e *ear) known(act func(y *party)) {
	o := oauthtest.Options{Clients: []oauthtest.Client{{ID: "known", Secret: canary,
		Redirects: []string{"http://127.0.0.1/callback"}}}}
	e.party(o, func(s *Server) { s.ClientID, s.ClientSecret = "known", drawbridge.NewSecret(canary) }, act)
}

func (e *ear) callback(y *party) string {
	back := y.follow(y.begin())
	e.mind(y.kept())
	_, code, _ := strings.Cut(back, "code=")
	e.code, _, _ = strings.Cut(code, "&")
	e.secrets["code "+e.code[:8]] = e.code
	return back
}

// echo has the provider say all it knows in the place of an answer.
func (e *ear) echo(y *party, at oauthtest.Endpoint, status int, kind string) {
	r := y.kept()
	text := strings.Join([]string{r.Access, r.Refresh, r.Client.Secret, canary, e.code}, " ")
	for _, p := range r.Pending {
		text += " " + p.Verifier
	}
	body, _ := json.Marshal(map[string]string{"error": "invalid_grant", "error_description": text, "error_uri": text})
	switch kind {
	case "text/html":
		body = []byte(text)
	case "application/x-www-form-urlencoded":
		body = []byte("error=invalid_grant&error_description=" + url.QueryEscape(text))
	}
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
		k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{at: {Status: status, Type: kind, Body: string(body)}}
	})
}

// echoes has the provider repeat everything, at each endpoint.
func (e *ear) echoes(status int, kind string) {
	e.known(func(y *party) {
		back := e.callback(y)
		e.echo(y, oauthtest.Token, status, kind)
		err := y.c.CompleteWithURL(e.t.Context(), back)
		e.hear(err, explainFailure(err))
	})
	e.known(func(y *party) {
		y.signIn()
		y.p.ExpireAccess()
		e.mind(y.kept())
		e.echo(y, oauthtest.Token, status, kind)
		_, err := y.call("whoami")
		e.hear(err)
		_, err = y.c.Token(e.t.Context())
		e.hear(err)
	})
	e.known(func(y *party) {
		y.signIn()
		e.mind(y.kept())
		e.echo(y, oauthtest.Revoke, status, kind)
		_, why, err := y.c.Remove(e.t.Context())
		e.hear(why, err)
	})
}

// flows has what a person is shown, and what becomes of it without a network.
func (e *ear) flows() {
	e.known(func(y *party) { // the network's errors repeat addresses
		back := e.callback(y)
		y.p.Close()
		e.hear(y.c.CompleteWithURL(e.t.Context(), back))
		_, err := y.c.BeginDevice(e.t.Context())
		e.hear(err)
	})
	e.known(func(y *party) {
		f, err := y.c.Begin(e.t.Context())
		e.mind(y.kept())
		f.url = "" // is for people
		e.hear(f, *f, err)
		f, err = y.c.BeginDevice(e.t.Context())
		e.hear(f, *f, err)
		ctx, cancel := context.WithTimeout(e.t.Context(), time.Nanosecond)
		defer cancel()
		e.hear(f.Wait(ctx))
	})
	e.party(registration(oauthtest.Registration{Secret: true}), nil, func(y *party) { y.signIn() })
	e.known(func(y *party) {
		y.c.resolveAuth = func(context.Context) (config.Auth, error) {
			return config.Auth{ClientID: "known", ClientSecret: canary}, nil
		}
		y.signIn()
		e.mind(y.kept())
		y.p.RevokeAll()
		e.hear(y.needed().Err, y.needed().Advice("x"))
	})
}

// testNoSecretLeaves is row OA-12: a token, a code, a verifier and a client's secret are in no error, no log line, no
// state, and no value however it is printed, whatever goes wrong, and whatever the server repeats.
func testNoSecretLeaves(t *testing.T) {
	e := &ear{t: t, secrets: map[string]string{"the row's secret": canary}}
	for _, status := range []int{200, 400, 401, 500} {
		for _, kind := range []string{"application/json", "text/html", "application/x-www-form-urlencoded"} {
			e.echoes(status, kind)
		}
	}
	e.flows()
	heard := e.heard.String()
	if len(e.secrets) < 20 || len(heard) < 10_000 || !strings.Contains(heard, drawbridge.Redacted) ||
		!strings.Contains(heard, "was not renewed") {
		t.Fatalf("%d secrets, %d bytes heard", len(e.secrets), len(heard))
	}
	for what, text := range e.secrets {
		if i := strings.Index(heard, text); i >= 0 {
			t.Errorf("the %s is in %q", what, heard[max(0, i-200):i])
		}
	}
}

// TestOneSecretInAnother has a token begin as another does: nothing of it is left over.
func TestOneSecretInAnother(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	if err := y.c.lockAndSave(credentialRecord{ServerKey: y.c.server.identityKey(), Access: "opaque",
		Refresh: "opaque-and-more"}); err != nil {
		t.Fatal(err)
	}
	if got := y.c.secretRedactor(nil, clientIdentity{})("no opaque-and-more"); got != "no "+drawbridge.Redacted {
		t.Error(got)
	}
}
