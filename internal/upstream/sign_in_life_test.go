//go:build unix

package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/oauth"
	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// vaultIn is a vault of files.
func vaultIn(t *testing.T, dir string) *secrets.Vault {
	t.Helper()
	v, err := secrets.OpenVault(dir, secrets.VaultOptions{NoKeychain: true})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// visit has a person sign in where a server's state says.
func (r *realFleet) visit(p *oauthtest.Provider, id drawbridge.ServerID) {
	r.t.Helper()
	if err := p.AllowSignIn(r.t.Context(), r.statusOf(id).SignIn); err != nil {
		r.t.Fatal(err)
	}
}

// await waits for a server's phase, and says how long that took.
func (r *realFleet) await(id drawbridge.ServerID, phase drawbridge.ServerPhase) time.Duration {
	r.t.Helper()
	began := time.Now()
	for r.statusOf(id).Phase != phase {
		if time.Since(began) > 20*time.Second {
			r.t.Fatalf("%+v", r.statusOf(id))
		}
		<-time.After(5 * time.Millisecond)
	}
	return time.Since(began)
}

// TestNoTrafficWhileSignInIsNeeded has a fleet that waits for a person: for hours nothing is dialled.
func TestNoTrafficWhileSignInIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.set(&oauth.SignInRequiredError{Server: "fake", URL: "https://as.example/authorize"})
		r := newRig(t, f, Options{}, func(row *config.Server) {
			row.Type, row.Command, row.URL = "http", "",
				"https://fake.example/mcp"
		})
		r.later(3 * time.Hour)
		if n := len(f.dialled()); n != 1 || r.phase() != drawbridge.NeedsSignIn {
			t.Errorf("dialled %d times, %s", n, r.phase())
		}
		for range 3 {
			r.fault(echo(caller(drawbridge.Legacy)))
			r.later(time.Minute)
		}
		if n := len(f.dialled()); n != 4 {
			t.Errorf("dialled %d times for three calls and the beginning", n)
		}
	})
}

// TestManyCallsOneDiscovery has fifty callers at once at a server that nobody has signed in at, and its state say the
// same address all along.
func TestManyCallsOneDiscovery(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{})
	r := runReal(t, Options{OnDemand: true}, protected(p))
	many := func() {
		var work sync.WaitGroup
		for i := range 50 {
			work.Go(func() {
				c := caller([]drawbridge.ProtocolEra{drawbridge.Legacy, drawbridge.Modern}[i%2])
				_, err := r.Do(t.Context(), "protected", whoami(c))
				if f := drawbridge.AsFault(err); f.Code != drawbridge.AuthFailure || !strings.Contains(f.Next,
					"sign in with drawbridge mcp auth protected, or open http") {
					t.Errorf("%v: %+v", err, f)
				}
			})
		}
		work.Wait()
	}
	many()
	address := r.statusOf("protected").SignIn
	for range 3 {
		many()
		if got := r.statusOf("protected").SignIn; got != address || got == "" {
			t.Errorf("the address changed from %q to %q", address, got)
		}
	}
	for _, e := range []oauthtest.Endpoint{oauthtest.ResourceMetadata, oauthtest.ServerMetadata, oauthtest.Register} {
		if n := len(p.Requests(e)); n != 1 {
			t.Errorf("%d requests to %s", n, e)
		}
	}
	r.visit(p, "protected")
	if _, err := r.Do(t.Context(), "protected", whoami(caller(drawbridge.Modern))); err != nil {
		t.Error(err)
	}
}

// TestHomeComesBack has what was granted end in the midst of a session, and a person sign in again by way of another
// process: the server is there again within two seconds, with nobody calling it.
func TestHomeComesBack(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		p := oauthtest.New(t, oauthtest.Options{Knobs: oauthtest.Knobs{Server: oauthtest.Server{Legacy: legacy}}})
		dir := t.TempDir()
		r := runReal(t, Options{Vault: vaultIn(t, dir)}, protected(p))
		r.await("protected", drawbridge.NeedsSignIn)
		r.visit(p, "protected")
		r.await("protected", drawbridge.Ready)
		p.RevokeAll()
		_, err := r.Do(t.Context(), "protected", whoami(caller(drawbridge.Modern)))
		if f := drawbridge.AsFault(err); err == nil || f.Code != drawbridge.AuthFailure || !strings.Contains(f.Next,
			"sign in with drawbridge mcp auth protected") {
			t.Errorf("%v: %+v", err, f)
		}
		r.await("protected", drawbridge.NeedsSignIn)
		other, err := NewFleet(t.Context(), []config.Server{protected(p)}, Options{Vault: vaultIn(t, dir),
			Principal: owner})
		if err != nil {
			t.Fatal(err)
		}
		access, err := other.Access("protected", owner)
		if err != nil {
			t.Fatal(err)
		}
		s, err := access.BeginSignIn(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		address, _, _ := s.SignInAddress()
		if err := p.AllowSignIn(t.Context(), address); err != nil {
			t.Fatal(err)
		}
		if took := r.await("protected", drawbridge.Ready); took > 2*time.Second {
			t.Errorf("after %v", took)
		}
		if _, err := r.Do(t.Context(), "protected", whoami(caller(drawbridge.Modern))); err != nil {
			t.Error(err)
		}
		other.pool.signIns.Close()
	}
}

// TestTokenIsRenewedInTheMidst has the token end in the midst of a session: nobody hears of it, and the session goes
// on.
func TestTokenIsRenewedInTheMidst(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		p := oauthtest.New(t, oauthtest.Options{Knobs: oauthtest.Knobs{Server: oauthtest.Server{Legacy: legacy}}})
		r := runReal(t, Options{}, protected(p))
		r.await("protected", drawbridge.NeedsSignIn)
		r.visit(p, "protected")
		r.await("protected", drawbridge.Ready)
		before := len(p.Calls("initialize")) + len(p.Calls("server/discover"))
		p.ExpireAccess()
		var work sync.WaitGroup
		for range 20 {
			work.Go(func() {
				if _, err := r.Do(t.Context(), "protected", whoami(caller(drawbridge.Modern))); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		if n := len(p.Calls("initialize")) + len(p.Calls("server/discover")) - before; n != 0 || p.Refreshes() != 1 {
			t.Errorf("legacy %v: greeted %d times more, %d refreshes", legacy, n, p.Refreshes())
		}
	}
}

// TestTokenServerAway has the server of tokens be away when a token is over, or was refused: a call is Transient, and
// the session is kept.
func TestTokenServerAway(t *testing.T) {
	for _, life := range []time.Duration{time.Second, time.Hour} {
		p := oauthtest.New(t, oauthtest.Options{Knobs: oauthtest.Knobs{Server: oauthtest.Server{Legacy: true},
			Tokens: oauthtest.Tokens{Life: life}}})
		r := runReal(t, Options{}, protected(p))
		r.await("protected", drawbridge.NeedsSignIn)
		r.visit(p, "protected")
		r.await("protected", drawbridge.Ready)
		before := len(p.Calls("initialize"))
		p.ChangeKnobs(func(k *oauthtest.Knobs) {
			k.Faults = map[oauthtest.Endpoint]oauthtest.Fault{oauthtest.Token: {Status: 503}}
		})
		p.ExpireAccess()
		<-time.After(1100 * time.Millisecond) // no life is shorter than a second
		for range 5 {
			_, err := r.Do(t.Context(), "protected", whoami(caller(drawbridge.Modern)))
			if f := drawbridge.AsFault(err); err == nil || f.Code != drawbridge.Transient || f.Ambiguous {
				t.Errorf("%v: %+v", err, f)
			}
		}
		if n := len(p.Calls("initialize")) - before; n != 0 || r.statusOf("protected").Phase != drawbridge.Ready {
			t.Errorf("greeted %d times more, %s", n, r.statusOf("protected").Phase)
		}
	}
}

// TestNotEnoughToBeListed has a server that wants more than was granted before it lists anything: a person is waited
// for, and the server is left alone meanwhile.
func TestNotEnoughToBeListed(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{Knobs: oauthtest.Knobs{Tokens: oauthtest.Tokens{Scope: "openid"}}})
	r := runReal(t, Options{}, protected(p))
	r.await("protected", drawbridge.NeedsSignIn)
	r.visit(p, "protected")
	for p.Counts().Tokens == 0 || r.statusOf("protected").Phase != drawbridge.NeedsSignIn ||
		!strings.Contains(r.statusOf("protected").Fault, "more rights") {
		<-time.After(5 * time.Millisecond)
	}
	before := len(p.Requests())
	<-time.After(300 * time.Millisecond) // enough for hundreds
	if n := len(p.Requests()) - before; n > 2 {
		t.Errorf("%d requests while a person is waited for", n)
	}
	p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Tokens.Scope = "" })
	r.visit(p, "protected")
	r.await("protected", drawbridge.Ready)
}

// TestKeyInAHeader has a server that wants a key: a few requests show that there is no signing in, and the words are
// about the headers of the row.
func TestKeyInAHeader(t *testing.T) {
	for _, challenge := range []string{"", `ApiKey realm="x"`, "Bearer"} {
		var asked atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if r.URL.Path != "/mcp" {
				http.NotFound(w, r)
				return
			}
			if challenge != "" {
				w.Header().Set("WWW-Authenticate", challenge)
			}
			http.Error(w, "no key", http.StatusUnauthorized)
		}))
		t.Cleanup(srv.Close)
		r := runReal(t, Options{OnDemand: true}, urlRow("keyed", "http", srv.URL+"/mcp"))
		for range 5 {
			_, err := r.Do(t.Context(), "keyed", whoami(caller(drawbridge.Modern)))
			f := drawbridge.AsFault(err)
			if f.Code != drawbridge.AuthFailure || !strings.HasPrefix(f.Next, "check the headers of its row") {
				t.Errorf("%q: %v, %+v", challenge, err, f)
			}
		}
		if n := asked.Load(); n > 9+5 || r.statusOf("keyed").SignIn != "" {
			t.Errorf("%q: %d requests, %+v", challenge, n, r.statusOf("keyed"))
		}
	}
}

// TestTokenOfAStdioServer gives a process the token that its row says it wants, and the next process the next one.
func TestTokenOfAStdioServer(t *testing.T) {
	p := oauthtest.New(t,
		oauthtest.Options{Clients: []oauthtest.Client{{ID: "known", Redirects: []string{"http://127.0.0.1/callback"}}}})
	row := stdioRow(t, "everything")
	row.ID, row.Hash = "tokened", "tokened"
	row.Auth = &config.Auth{Issuer: p.Issuer, ClientID: "known", Resource: p.ResourceURL}
	r := runReal(t, Options{OnDemand: true}, row)
	if _, err := r.Mount(t.Context(), "tokened"); err == nil || len(r.statusOf("tokened").PIDs) != 0 {
		t.Fatalf("%v, %+v", err, r.statusOf("tokened"))
	}
	r.visit(p, "tokened")
	token := func() string {
		r.mount("tokened")
		return environOf(t, r.statusOf("tokened").PIDs[0])[TokenVariable]
	}
	first := token()
	if first == "" {
		t.Fatal("there is no token")
	}
	p.ExpireAccess()
	c := r.pool.signIns.Credential(credentialOf(t, row), nil)
	if got, err := c.ReplaceToken(t.Context(), first, http.StatusUnauthorized, nil, nil); err != nil || got == first {
		t.Fatal(err)
	}
	e, err := r.serverByID("tokened")
	if err != nil {
		t.Fatal(err)
	}
	e.sessions.primarySession().markLost(fmt.Errorf("for the test"))
	for r.statusOf("tokened").Phase == drawbridge.Ready {
		<-time.After(5 * time.Millisecond)
	}
	if second := token(); second == first || second == "" {
		t.Error("the next process got the same token")
	}
}

func credentialOf(t *testing.T, row config.Server) oauth.Server {
	t.Helper()
	s, ok := oauth.ServerFromConfig(row, owner, owner)
	if !ok {
		t.Fatal("the row is not signed in at")
	}
	return s
}

// environOf reads the environment of a process.
func environOf(t *testing.T, pid int) map[string]string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Skip("there is no /proc")
	}
	all := map[string]string{}
	for _, pair := range strings.Split(string(data), "\x00") {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}

// TestNoTokenInAState has nothing secret in what a fleet tells of itself.
func TestNoTokenInAState(t *testing.T) {
	p := oauthtest.New(t, oauthtest.Options{Knobs: oauthtest.Knobs{Tokens: oauthtest.Tokens{Opaque: true}}})
	r := runReal(t, Options{}, protected(p))
	r.await("protected", drawbridge.NeedsSignIn)
	r.visit(p, "protected")
	r.await("protected", drawbridge.Ready)
	access, err := r.Access("protected", owner)
	if err != nil {
		t.Fatal(err)
	}
	c, err := access.Status()
	if err != nil || !c.SignedIn || !c.AutoRenews || c.Issuer != p.Issuer || c.URL != "" {
		t.Errorf("%+v, %v", c, err)
	}
	text, err := json.Marshal([]any{r.Status(), c})
	if err != nil || strings.Contains(string(text), "access-") || strings.Contains(string(text), "refresh-") {
		t.Errorf("%s, %v", text, err)
	}
	if why, err := access.SignOut(t.Context()); why != nil || err != nil {
		t.Errorf("%v, %v", why, err)
	}
	if _, err := access.SignOut(t.Context()); err == nil {
		t.Error("signed out twice")
	}
}
