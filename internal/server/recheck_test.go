package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A visitor has one of everything open that can be open: a session with its stream and a call, a listener, and a
// stateless call.
type visitor struct {
	t       *testing.T
	session string
	// bodies are what is open, by what it is.
	bodies map[string]io.ReadCloser
	// calls has the contexts of the calls, as they began.
	calls map[string]context.Context
}

func visitAs(t *testing.T, url string, d *fakeDeck, token string) *visitor {
	t.Helper()
	v := &visitor{t: t, bodies: map[string]io.ReadCloser{}, calls: map[string]context.Context{}}
	began := make(chan context.Context)
	d.do = func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		if err := call.Peer.Notify(ctx, mcp.NoteProgress, json.RawMessage(`{}`)); err != nil {
			t.Errorf("notify: %v", err)
		}
		began <- ctx
		<-ctx.Done()
		return drawbridge.Result{}, ctx.Err()
	}
	open := func(what string, r *http.Request) {
		t.Helper()
		resp, err := http.DefaultClient.Do(with(r, token))
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %v, %v", what, resp, err)
		}
		if id := resp.Header.Get(mcp.HeaderSession); id != "" {
			v.session = id
		}
		v.bodies[what] = resp.Body
		t.Cleanup(func() { resp.Body.Close() })
	}
	of := func(method, body string) *http.Request {
		r := httpRequest(t, method, url, body)
		r.Header.Set(mcp.HeaderSession, v.session)
		return r
	}
	begin := httpRequest(t, http.MethodPost, url,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`)
	open("initialize", begin)
	open("stream", of(http.MethodGet, ""))
	open("listener",
		modernRequest(t, url,
			`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`))
	open("call of the session",
		of(http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"plain"}}`))
	v.calls["call of the session"] = <-began
	open("stateless call",
		modernRequest(t, url, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"plain",`+meta+`}}`))
	v.calls["stateless call"] = <-began
	return v
}

// ends waits until these are over.
func (v *visitor) ends(names ...string) {
	v.t.Helper()
	for _, name := range names {
		if ctx := v.calls[name]; ctx != nil {
			<-ctx.Done()
		}
		_, _ = io.Copy(io.Discard, v.bodies[name]) // returns when it is over, and hangs where it is not
	}
}

// lives checks that calls go on.
func (v *visitor) lives(names ...string) {
	v.t.Helper()
	for _, name := range names {
		if v.calls[name].Err() != nil {
			v.t.Errorf("the %s is over", name)
		}
	}
}

// TestOA20Logout: when a token is taken back, sessions, streams and calls of it end.
func TestOA20Logout(t *testing.T) {
	d, check := newFakeDeck(), newRegister()
	s := newServer(t, d, Options{Authenticator: check})
	url := serveOn(t, s)
	v := visitAs(t, url, d, "ada-1")
	s.RecheckCallers(t.Context())
	v.lives("call of the session", "stateless call")
	check.set("ada-1", drawbridge.Caller{})
	s.RecheckCallers(t.Context())
	v.ends("stream", "listener", "call of the session", "stateless call")
	r := with(httpRequest(t, http.MethodPost, url, `{"jsonrpc":"2.0","id":4,"method":"ping"}`), "ada-2")
	r.Header.Set(mcp.HeaderSession, v.session)
	if status, _ := send(t, r); status != 404 {
		t.Errorf("the session is there: %d", status)
	}
	if noted := d.noted(); len(noted) == 0 || noted[len(noted)-1] != "end session" {
		t.Errorf("the deck heard %v", noted)
	}
}

// TestFreshToken: a session goes on by the token that its client came with last; what is of no session by its own.
func TestFreshToken(t *testing.T) {
	d, check := newFakeDeck(), newRegister()
	s := newServer(t, d, Options{Authenticator: check})
	url := serveOn(t, s)
	v := visitAs(t, url, d, "ada-1")
	r := with(httpRequest(t, http.MethodPost, url, `{"jsonrpc":"2.0","id":4,"method":"ping"}`), "ada-2")
	r.Header.Set(mcp.HeaderSession, v.session)
	if status, _ := send(t, r); status != 200 {
		t.Fatal(status)
	}
	check.set("ada-1", drawbridge.Caller{})
	s.RecheckCallers(t.Context())
	v.ends("listener", "stateless call")
	v.lives("call of the session")
	check.set("ada-2", drawbridge.Caller{})
	s.RecheckCallers(t.Context())
	v.ends("stream", "call of the session")
}

// TestFewerRights: what was begun with a right that its caller has no more ends, and the session goes on with fewer.
func TestFewerRights(t *testing.T) {
	d, check := newFakeDeck(), newRegister()
	s := newServer(t, d, Options{Authenticator: check})
	url := serveOn(t, s)
	v := visitAs(t, url, d, "ada-1")
	check.set("ada-1", somebody("ada", "mcp:*", "ada-1"))
	s.RecheckCallers(t.Context())
	v.lives("call of the session", "stateless call")
	check.set("ada-1", somebody("ada", "mcp:other", "ada-1"))
	s.RecheckCallers(t.Context())
	v.ends("stream", "listener", "call of the session", "stateless call")
	r := with(httpRequest(t, http.MethodPost, url, `{"jsonrpc":"2.0","id":4,"method":"ping"}`), "ada-1")
	r.Header.Set(mcp.HeaderSession, v.session)
	if status, _ := send(t, r); status != 200 {
		t.Errorf("the session is gone: %d", status)
	}
}

// A slowCheck knows some tokens at once, and gets no answer about the others before the question ends.
type slowCheck struct{ *register }

func (c slowCheck) Authenticate(ctx context.Context, token, resource string) (drawbridge.Caller, error) {
	caller, err := c.register.Authenticate(ctx, token, resource)
	if err != nil && ctx.Err() == nil {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return drawbridge.Caller{}, &drawbridge.Fault{Code: drawbridge.Transient, Step: "there is no answer"}
	}
	return caller, err
}

// TestRecheckWhileAnIssuerIsAway: that some tokens cannot be looked at keeps nobody from looking at the others.
func TestRecheckWhileAnIssuerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, newFakeDeck(), Options{Authenticator: slowCheck{newRegister()}})
		began := time.Now()
		visit := func(token string) *authenticatedRequest {
			v := &authenticatedRequest{caller: somebody("ada", "mcp:fake", token), token: drawbridge.NewSecret(token),
				verifiedAt: began}
			_, leave := s.ongoing.track(v, httpRequest(t, http.MethodGet, "http://127.0.0.1/mcp", ""))
			t.Cleanup(leave)
			return v
		}
		known := visit("ada-1")
		for i := range 8 {
			visit("away-" + string(rune('a'+i)))
		}
		for time.Since(began) < recheckGrace {
			s.RecheckCallers(t.Context())
		}
		synctest.Wait()
		if known.life.Err() != nil {
			t.Error("somebody who is known was sent away")
		}
		if known.verifiedAt.Equal(began) {
			t.Error("nobody looked at a token that is known")
		}
	})
}

// A hookedCheck does something before it answers.
type hookedCheck struct {
	*register
	before func()
}

func (c *hookedCheck) Authenticate(ctx context.Context, token, resource string) (drawbridge.Caller, error) {
	if c.before != nil {
		c.before()
	}
	return c.register.Authenticate(ctx, token, resource)
}

// TestFreshTokenMeanwhile: a session whose client came with a fresh token while the old one was looked at is judged by
// that.
func TestFreshTokenMeanwhile(t *testing.T) {
	d, check := newFakeDeck(), &hookedCheck{register: newRegister()}
	s := newServer(t, d, Options{Authenticator: check})
	url := serveOn(t, s)
	v := visitAs(t, url, d, "ada-1")
	check.set("ada-1", drawbridge.Caller{})
	check.before = func() {
		check.before = nil
		r := with(httpRequest(t, http.MethodPost, url, `{"jsonrpc":"2.0","id":4,"method":"ping"}`), "ada-2")
		r.Header.Set(mcp.HeaderSession, v.session)
		if status, _ := send(t, r); status != 200 {
			t.Errorf("the fresh token: %d", status)
		}
	}
	s.RecheckCallers(t.Context())
	v.ends("listener", "stateless call")
	v.lives("call of the session")
}

// TestJudge has what becomes of a visit.
func TestJudge(t *testing.T) {
	now := time.Now()
	ada := somebody("ada", "mcp:fake", "x")
	fault := func(code drawbridge.FaultCode) error { return &drawbridge.Fault{Code: code} }
	for _, tt := range []struct {
		name        string
		caller      drawbridge.Caller
		err         error
		since       time.Duration
		over, ended bool
	}{
		{"good", ada, nil, time.Hour, false, false},
		{"more rights", somebody("ada", "*", "x"), nil, 0, false, false},
		{"fewer rights", somebody("ada", "mcp:fak", "x"), nil, 0, true, false},
		{"somebody else", somebody("eve", "*", "x"), nil, 0, true, true},
		{"taken back", drawbridge.Caller{}, fault(drawbridge.AuthFailure), 0, true, true},
		{"no rights", drawbridge.Caller{}, fault(drawbridge.PolicyBlocked), 0, true, true},
		{"not to be asked", drawbridge.Caller{}, fault(drawbridge.Transient), recheckGrace - 1, false, false},
		{"not to be asked for long", drawbridge.Caller{}, fault(drawbridge.Transient), recheckGrace, true, true},
		{"another error", drawbridge.Caller{}, errors.New("x"), 0, false, false},
	} {
		v := requestSnapshot{authenticatedRequest: &authenticatedRequest{caller: ada, verifiedAt: now.Add(-tt.since)}}
		if over, ended := v.judgeRecheck(tt.caller, tt.err, now); over != tt.over || ended != tt.ended {
			t.Errorf("%s: over %v, ended %v", tt.name, over, ended)
		}
	}
}

// TestTooManyRequestsOfOnePrincipal: one more than there may be is refused, until another one is over; another
// principal's is not, nor what answers a request that waits.
func TestTooManyRequestsOfOnePrincipal(t *testing.T) {
	d := newFakeDeck()
	started, release := make(chan struct{}), make(chan struct{})
	d.do = func(context.Context, drawbridge.Call) (drawbridge.Result, error) {
		started <- struct{}{}
		<-release
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}
	url := serveHTTP(t, d, Options{MaxInProgress: 1, Authenticator: newRegister()})
	as := func(token, body string) *http.Request {
		r := modernRequest(t, url, body)
		r.Header.Set("Authorization", "Bearer "+token)
		return r
	}
	const call = `{"id":1,"method":"tools/call","params":{"name":"plain",` + meta + `}}`
	var calls sync.WaitGroup
	for _, who := range []string{"ada-1", "eve-1"} {
		calls.Go(func() {
			if status, body := send(t, as(who, call)); status != 200 {
				t.Errorf("the call of %s is answered with %d, %s", who, status, body)
			}
		})
		<-started
	}
	want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Too many requests are in progress"}}`
	for _, body := range []string{`{"id":7,"method":"tools/call","params":{"name":"plain",` + meta + `}}`,
		`{"id":7,"method":"tools/list","params":{` + meta + `}}`} {
		if status, got := send(t, as("ada-2", body)); status != http.StatusTooManyRequests || got != want {
			t.Errorf("one too many is answered with %d, %s", status, got)
		}
	}
	batch := httpRequest(t, http.MethodPost, url, `[{"jsonrpc":"2.0","id":7,"method":"ping"}]`)
	batch.Header.Set("Authorization", "Bearer ada-2")
	if status, got := send(t, batch); status != http.StatusTooManyRequests || got != want {
		t.Errorf("a batch too many is answered with %d, %s", status, got)
	}
	if status, got := send(t, as("ada-2", `{"method":"notifications/cancelled","params":{"requestId":9,`+meta+
		`}}`)); status != http.StatusAccepted {
		t.Errorf("a notification beside them is answered with %d, %s", status, got)
	}
	close(release)
	calls.Wait()
	if status, got := send(t, as("ada-2", `{"id":7,"method":"tools/list","params":{`+meta+`}}`)); status != 200 {
		t.Errorf("when they are over one is answered with %d, %s", status, got)
	}
}
