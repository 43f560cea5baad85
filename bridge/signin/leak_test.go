package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcptest/idp"
)

// An ear collects what leaves the package, and what must not be in it.
type ear struct {
	t       *testing.T
	heard   strings.Builder
	secrets map[string]string // by what they are
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
func (e *ear) mind(r record) {
	for what, text := range map[string]string{"access token": r.Access, "refresh token": r.Refresh, "client secret": r.Client.Secret} {
		if text != "" {
			e.secrets[what+" "+text[len(text)-4:]] = text
		}
	}
	for _, p := range r.Pending {
		e.secrets["verifier "+p.Verifier[:4]] = p.Verifier
	}
}

// testNoSecretLeaves is row OA-12: a token, a code, a verifier and a client's secret are in no error, no log line, no state,
// and no value however it is printed, whatever goes wrong, and whatever the server repeats.
func testNoSecretLeaves(t *testing.T) {
	const secret = "canary-client-secret"
	e := &ear{t: t, secrets: map[string]string{"the row's secret": secret}}
	o := idp.Options{Clients: []idp.Client{{ID: "known", Secret: secret, Redirects: []string{"http://127.0.0.1/callback"}}}}
	known := func(s *Server) { s.ClientID, s.ClientSecret = "known", drawbridge.NewSecret(secret) }
	var logs []*logged
	code := "" // the last one
	with := func(o idp.Options, change func(*Server), act func(y *party)) {
		y := meet(t, o, change)
		logs, code = append(logs, y.log), ""
		act(y)
		e.mind(y.kept())
		s, err := y.c.State()
		e.hear(s, err, y.c, y.desk, y.c.site, struct{ inside any }{y.c}, struct{ inside Server }{y.c.site}, []*Desk{y.desk})
	}
	callback := func(y *party) string {
		back := y.follow(y.begin())
		e.mind(y.kept())
		_, code, _ = strings.Cut(back, "code=")
		code, _, _ = strings.Cut(code, "&")
		e.secrets["code "+code[:8]] = code
		return back
	}
	// echo has the provider say back what it was asked.
	echo := func(y *party, at idp.Endpoint, status int, kind string) {
		r := y.kept()
		text := strings.Join([]string{r.Access, r.Refresh, r.Client.Secret, secret}, " ")
		for _, p := range r.Pending {
			text += " " + p.Verifier
		}
		for _, r := range y.p.Requests(idp.Token) {
			text += " " + r.Form.Get("code")
		}
		text += " " + code
		body, _ := json.Marshal(map[string]string{"error": "invalid_grant", "error_description": text, "error_uri": text})
		if kind != "application/json" {
			body = []byte(text)
		}
		y.p.Turn(func(k *idp.Knobs) {
			k.Faults = map[idp.Endpoint]idp.Fault{at: {Status: status, Type: kind, Body: string(body)}}
		})
	}
	for _, status := range []int{200, 400, 401, 500} {
		for _, kind := range []string{"application/json", "text/html", "application/x-www-form-urlencoded"} {
			with(o, known, func(y *party) {
				back := callback(y)
				echo(y, idp.Token, status, kind)
				err := y.c.Paste(t.Context(), back)
				e.hear(err, Explain(err))
			})
			with(o, known, func(y *party) {
				y.signIn()
				y.p.ExpireAccess()
				e.mind(y.kept())
				echo(y, idp.Token, status, kind)
				_, err := y.call("whoami")
				e.hear(err)
				_, err = y.c.Token(t.Context())
				e.hear(err)
				y.p.Turn(func(k *idp.Knobs) { k.Faults = nil })
				echo(y, idp.Revoke, status, kind)
				_, why, err := y.c.Remove(t.Context())
				e.hear(why, err)
			})
		}
	}
	with(o, known, func(y *party) { // the network, whose errors repeat addresses
		back := callback(y)
		y.p.Close()
		e.hear(y.c.Paste(t.Context(), back))
		_, err := y.c.BeginDevice(t.Context())
		e.hear(err)
	})
	with(o, known, func(y *party) {
		f, err := y.c.Begin(t.Context())
		e.mind(y.kept())
		f.url = "" // is for people
		e.hear(f, *f, err)
		f, err = y.c.BeginDevice(t.Context())
		for _, r := range y.p.Requests(idp.DeviceStart) {
			e.hear(r.Status)
		}
		e.hear(f, *f, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		e.hear(f.Wait(ctx))
	})
	with(idp.Options{Knobs: idp.Knobs{Registration: idp.Registration{Secret: true}}}, nil, func(y *party) { y.signIn() })
	found := config.Auth{ClientID: "known", ClientSecret: secret}
	with(o, known, func(y *party) {
		y.c.find = func(context.Context) (config.Auth, error) { return found, nil }
		y.signIn()
		e.mind(y.kept())
		y.p.RevokeAll()
		e.hear(y.needed().Err, y.needed().Next("x"))
	})
	for _, l := range logs {
		e.heard.WriteString(l.String())
	}
	heard := e.heard.String()
	if len(e.secrets) < 20 || len(heard) < 10_000 {
		t.Fatalf("%d secrets, %d bytes heard", len(e.secrets), len(heard))
	}
	for what, text := range e.secrets {
		if i := strings.Index(heard, text); i >= 0 {
			t.Errorf("the %s is in %q", what, heard[max(0, i-200):i])
		}
	}
}
