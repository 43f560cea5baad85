package oauth

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

func tokens(k oauthtest.Tokens) oauthtest.Options {
	return oauthtest.Options{Knobs: oauthtest.Knobs{Tokens: k}}
}

// testExpiresIn has every form in which a server says how long a token is good, and that the next one's life is known
// too.
func testExpiresIn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		k     oauthtest.Tokens
		known bool
	}{
		{"a number", oauthtest.Tokens{}, true},
		{"a text", oauthtest.Tokens{ExpiresIn: oauthtest.ExpiresText}, true},
		{"a float", oauthtest.Tokens{ExpiresIn: oauthtest.ExpiresFloat}, true},
		{"in a form", oauthtest.Tokens{Form: true}, true},
		{"absent", oauthtest.Tokens{ExpiresIn: oauthtest.ExpiresAbsent}, false},
		{"null", oauthtest.Tokens{ExpiresIn: "null"}, false},
		{"nonsense", oauthtest.Tokens{ExpiresIn: `"soon"`}, false},
		{"an object", oauthtest.Tokens{ExpiresIn: `{}`}, false},
		{"below zero", oauthtest.Tokens{ExpiresIn: "-1"}, false},
		{"beyond all time", oauthtest.Tokens{ExpiresIn: "1e300"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y := meet(t, tokens(tt.k), nil)
			y.signIn()
			y.in()
			if got := !y.kept().Expires.IsZero(); got != tt.known {
				t.Errorf("the end is known: %v; want %v", got, tt.known)
			}
			y.p.ExpireAccess()
			y.in()
			if got := !y.kept().Expires.IsZero(); got != tt.known || y.p.Refreshes() != 1 {
				t.Errorf("after %d refreshes the end is known: %v; want %v", y.p.Refreshes(), got, tt.known)
			}
			if tt.known {
				y.later(time.Hour - 4*time.Minute)
				y.in()
				if n := y.p.Refreshes(); n != 2 {
					t.Errorf("%d refreshes before the end; want 2", n)
				}
			}
		})
	}
}

// testRotation has each way in which refresh tokens are given anew, or not.
func testRotation(t *testing.T) {
	for _, rotation := range []string{"", "same", "omit"} {
		y := meet(t, tokens(oauthtest.Tokens{Rotation: rotation}), nil)
		y.signIn()
		for range 3 {
			y.p.ExpireAccess()
			y.in()
		}
		if c := y.p.Counts(); c.Refreshes != 3 || c.Reuses != 0 {
			t.Errorf("rotation %q: %+v", rotation, c)
		}
	}
}

// testRefreshOnceForAll has many calls at once.
func testRefreshOnceForAll(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	y.signIn()
	y.p.ExpireAccess()
	var work sync.WaitGroup
	for range 100 {
		work.Go(y.in)
	}
	work.Wait()
	if c := y.p.Counts(); c.Refreshes != 1 || c.Reuses != 0 {
		t.Errorf("%+v", c)
	}
}

// testRefreshedInVain has a token endpoint that does not do it for now: what is kept stays, and calls go on afterwards.
func testRefreshedInVain(t *testing.T) {
	html := func(status int) oauthtest.Fault {
		return oauthtest.Fault{Status: status, Type: "text/html", Body: "<h1>Sorry</h1>"}
	}
	for name, fault := range map[string]oauthtest.Fault{
		"status 500":             html(500),
		"status 503":             html(503),
		"an error page with 200": html(200),
		"an error page with 400": html(400),
		"too many requests":      {Status: 429, Type: "application/json", Body: `{}`},
		"an error that says later": {Status: 400, Type: "application/json",
			Body: `{"error":"temporarily_unavailable"}`},
		"the same with the status 200": {Status: 200, Type: "application/json",
			Body: `{"error":"temporarily_unavailable"}`},
		"an error of the server's": {Status: 500, Type: "application/json", Body: `{"error":"server_error"}`},
		"an empty answer":          {Status: 200, Type: "application/json", Body: `{}`},
		"no JSON":                  {Status: 200, Type: "application/json", Body: `{`},
		"cut off":                  {Drop: true},
	} {
		t.Run(name, func(t *testing.T) {
			y := meet(t, oauthtest.Options{}, nil)
			y.signIn()
			y.p.ExpireAccess()
			y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
				k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.TokenByRefresh: fault}
			})
			_, err := y.call("whoami")
			if err == nil || transport.FaultCodeOf(err) != drawbridge.Transient || SignInRequired(err) != nil ||
				y.kept().Refresh == "" {
				t.Errorf("%v, code %v, kept %v", err, transport.FaultCodeOf(err), y.kept().Refresh != "")
			}
			wants(t, err, "renew the sign-in")
			for range 6 { // and for longer than that
				y.later(3 * time.Second)
				if _, err := y.call("whoami"); SignInRequired(err) != nil {
					t.Fatal(err)
				}
			}
			y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Faults = nil })
			y.later(time.Minute)
			y.in()
		})
	}
}

// testRefreshRefused has a refresh token that is no longer good: it is said why, and who can help.
func testRefreshRefused(t *testing.T) {
	for name, turn := range map[string]func(*oauthtest.Knobs){
		"invalid_grant": func(k *oauthtest.Knobs) { k.Tokens.Error = "invalid_grant" },
		"with the status 200": func(k *oauthtest.Knobs) {
			k.Tokens.Error, k.Tokens.Errors200 = "bad_refresh_token",
				true
		},
		"in a form with 200": func(k *oauthtest.Knobs) {
			k.Tokens.Error, k.Tokens.Errors200, k.Tokens.Form = "invalid_grant", true, true
		},
		"the client is not known":  func(k *oauthtest.Knobs) { k.Tokens.Error = "invalid_client" },
		"a word of the provider's": func(k *oauthtest.Knobs) { k.Tokens.Error = "go_away" },
	} {
		t.Run(name, func(t *testing.T) {
			y := meet(t, oauthtest.Options{}, nil)
			y.signIn()
			y.p.ExpireAccess()
			y.p.ChangeKnobs(turn)
			n := y.needed()
			wants(t, n, "MCP OAuth refresh failed: ")
			if !n.HasURL() || !n.Blocks() || y.kept().Refresh != "" {
				t.Errorf("%+v", n)
			}
			s, err := y.c.Status()
			if err != nil || s.SignedIn || !strings.Contains(s.Problem, "MCP OAuth refresh failed") || s.URL != n.URL {
				t.Errorf("%+v, %v", s, err)
			}
			if got := y.needed(); got.URL != n.URL || got.Err == nil {
				t.Errorf("the next time: %+v", got)
			}
		})
	}
}

// testRefreshAnswerLost has the answer lost: the token may be spent, and the words for that are not those for one that
// is simply bad.
func testRefreshAnswerLost(t *testing.T) {
	for name, fault := range map[string]oauthtest.Fault{
		"cut off":    {After: true, Times: 1, Drop: true},
		"status 502": {After: true, Times: 1, Status: 502},
	} {
		t.Run(name, func(t *testing.T) {
			y := meet(t, oauthtest.Options{}, nil)
			y.signIn()
			y.p.ExpireAccess()
			y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
				k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.TokenByRefresh: fault}
			})
			if _, err := y.call("whoami"); transport.FaultCodeOf(err) != drawbridge.Transient || err == nil {
				t.Errorf("%v", err)
			}
			y.later(time.Minute)
			wants(t, y.needed(), "was interrupted")
		})
	}
}

// TestRefreshInTime has a server of tokens that is away while the token is still good: calls go on, it is asked now
// and then, and said once.
func TestRefreshInTime(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	y.signIn()
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
		k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.TokenByRefresh: {Status: 503}}
	})
	y.later(time.Hour - 4*time.Minute)
	asked := len(y.p.Requests(oauthtest.Token))
	for range 10 {
		y.in()
	}
	if n := len(y.p.Requests(oauthtest.Token)) - asked; n != 1 {
		t.Errorf("asked %d times", n)
	}
	if n := strings.Count(y.log.String(), "was not renewed"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Faults = nil })
	y.later(time.Minute)
	y.in()
	if n := y.p.Refreshes(); n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

// testRefreshOutlivesItsCaller has the caller that wanted the token go away in the midst of it: the new one is kept.
func testRefreshOutlivesItsCaller(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	y.signIn()
	y.p.ExpireAccess()
	gate := y.p.Hold(oauthtest.TokenByRefresh, oauthtest.AfterHandling)
	ctx, cancel := withCancel(t)
	left := make(chan error, 1)
	go func() { _, err := ask(ctx, y.c, "whoami"); left <- err }()
	<-gate.Arrived
	cancel()
	if err := <-left; err == nil {
		t.Error("the caller that left was answered")
	}
	gate.Open()
	y.in()
	if c := y.p.Counts(); c.Refreshes != 1 || c.Reuses != 0 {
		t.Errorf("%+v", c)
	}
}

// testClocks has the provider's clock ahead and behind: a token's life is counted from when we got it.
func testClocks(t *testing.T) {
	for _, skew := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
		y := meet(t, oauthtest.Options{Knobs: oauthtest.Knobs{Skew: skew}}, nil)
		y.signIn()
		for range 3 {
			y.in()
		}
		if n := y.p.Refreshes(); n != 0 {
			t.Errorf("skew %v: %d refreshes", skew, n)
		}
		y.later(56 * time.Minute)
		y.in()
		if n := y.p.Refreshes(); n != 1 {
			t.Errorf("skew %v: %d refreshes near the end", skew, n)
		}
	}
}

// testRefusedForEver has a server that takes no token at all: renewing ends, and a person hears of it.
func testRefusedForEver(t *testing.T) {
	y := meet(t, tokens(oauthtest.Tokens{Audience: "https://elsewhere.example/mcp"}), nil)
	y.signIn()
	var err error
	for range 10 {
		if _, err = y.call("whoami"); SignInRequired(err) != nil {
			break
		}
	}
	if !SignInRequired(err).HasURL() || y.p.Refreshes() > maxRenewals {
		t.Errorf("%v after %d refreshes", err, y.p.Refreshes())
	}
	wants(t, err, "the server refuses each token")
}

// testOtherKindOfToken refuses tokens that are sent otherwise than as a bearer's, and lets the word be left out.
func testOtherKindOfToken(t *testing.T) {
	for _, tt := range []struct {
		k    oauthtest.Tokens
		good bool
	}{{oauthtest.Tokens{NoType: true}, true}, {oauthtest.Tokens{Type: "bEARER"}, true}, {oauthtest.Tokens{Type: "DPoP"},
		false}, {oauthtest.Tokens{Type: "mac"}, false}} {
		y := meet(t, tokens(tt.k), nil)
		err := y.tryIn()
		if (err == nil) != tt.good || y.c.signed() != tt.good {
			t.Errorf("%+v: %v, signed in: %v", tt.k, err, y.c.signed())
		}
		if !tt.good {
			wants(t, err, "tokens of an unsupported type")
		}
	}
	y := meet(t, oauthtest.Options{}, nil)
	y.signIn()
	y.p.ExpireAccess()
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Tokens.Type = "DPoP" })
	wants(t, y.needed(), "tokens of an unsupported type")
}

// TestSlow has a token endpoint that takes its time.
func TestSlow(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	y.signIn()
	y.p.ExpireAccess()
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) {
		k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.TokenByRefresh: {Slow: 300 * time.Millisecond}}
	})
	y.in()
	y.c.client = &http.Client{Timeout: 50 * time.Millisecond}
	y.p.ExpireAccess()
	_, err := y.call("whoami")
	if later := (temporaryError{}); !errors.As(err, &later) {
		t.Errorf("%v", err)
	}
}

// TestSecretIsChanged has the secret of a client that the row names changed, at the issuer and in the row: a renewal
// has the new one.
func TestSecretIsChanged(t *testing.T) {
	y := meet(t, oauthtest.Options{}, func(s *Server) {
		s.ClientID, s.ClientSecret = "ours",
			drawbridge.NewSecret("old-secret")
	})
	y.p.Register(oauthtest.Client{ID: "ours", Secret: "old-secret", Redirects: []string{"http://127.0.0.1/callback"}})
	y.signIn()
	y.p.Register(oauthtest.Client{ID: "ours", Secret: "new-secret", Redirects: []string{"http://127.0.0.1/callback"}})
	y.again(func(s *Server) { s.ClientID, s.ClientSecret = "ours", drawbridge.NewSecret("new-secret") })
	y.p.ExpireAccess()
	y.in()
}
