package oauth

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// A full vault takes no more when it is told so: the n-th Put from now on, and those behind it.
type full struct {
	Vault
	left int // below zero is no limit
}

func (f *full) Put(name string, value []byte) error {
	if f.left == 0 {
		return errors.New("no space left")
	}
	f.left--
	return f.Vault.Put(name, value)
}

// TestVaultIsFull has a disk that is full: before a renewal nothing is spent; behind it the process goes on with what
// it got.
func TestVaultIsFull(t *testing.T) {
	for left, refreshes := range map[int]int{0: 0, 1: 1} {
		y := meet(t, oauthtest.Options{}, nil)
		vault := &full{y.vault, -1}
		y.vault = vault
		y.again(nil)
		y.signIn()
		y.p.ExpireAccess()
		vault.left = left
		_, err := y.call("whoami")
		if (err == nil) != (left == 1) || y.p.Refreshes() != refreshes {
			t.Errorf("with %d writes left: %v, %d refreshes", left, err, y.p.Refreshes())
		}
		if left == 1 {
			y.in()
			if !strings.Contains(y.log.String(), "could not be stored") {
				t.Error("nobody was told")
			}
			continue
		}
		wants(t, err, "keep the credential: no space left")
		vault.left = -1
		y.in()
	}
	y := meet(t, oauthtest.Options{}, nil)
	y.vault = &full{y.vault, 0}
	y.again(nil)
	_, err := y.c.Begin(t.Context())
	wants(t, err, "keep the credential: no space left")
}

// TestDamagedRecord has the vault hold something else.
func TestDamagedRecord(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	for _, text := range []string{"", "{", "[]", "null", `{"for":7}`} {
		if err := y.vault.Put(y.c.name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		_, err := y.c.Token(t.Context())
		if wants(t, err, "the credential"); err != nil && !strings.Contains(err.Error(), "sign out and in again") &&
			text != "null" {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := y.c.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	y.signIn()
	y.in()
}

// TestTooManyBegun has more sign-ins begun than are kept open: those who wait for the oldest hear that it is over.
func TestTooManyBegun(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	first := y.begin()
	for i := range maxPending {
		y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Challenge.Scope = "mcp " + strings.Repeat("x", i+1) })
		y.again(nil)
		y.desk.callbacks = first.c.manager.callbacks
		y.begin()
	}
	f := first.c
	f.mu.Lock()
	f.lastChallenge = AuthChallenge{}
	f.mu.Unlock()
	if _, err := f.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.ended.done:
		wants(t, first.Wait(t.Context()), "OAuth flow timed out. Please try again.")
	case <-time.After(10 * time.Second):
		t.Error("who waits for the first waits on")
	}
	if n := len(f.manager.callbacks.waiting); n > maxPending+1 {
		t.Errorf("%d are waited for", n)
	}
}

// TestBegunIsNotSpent keeps a sign-in good while another is only begun, though that one had to make us known anew: the
// tokens are of the client that they were granted to.
func TestBegunIsNotSpent(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	y.signIn()
	was := y.kept().Client.ID
	y.again(nil) // the port that the client is known to come back to is the first desk's still
	f := y.begin()
	if strings.Contains(f.url, was) {
		t.Fatal("the client was not made known anew")
	}
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Challenge.Scope = "mcp more" })
	y.c.lastChallenge = AuthChallenge{}
	if more := y.begin(); more.url == f.url || clientIn(t, more.url) != clientIn(t, f.url) {
		t.Error("the client was made known twice")
	}
	y.p.ChangeKnobs(func(k *oauthtest.Knobs) { k.Challenge.Scope = "" })
	y.c.lastChallenge = AuthChallenge{}
	y.p.ExpireAccess()
	y.in()
	if again := y.begin(); again.url != f.url {
		t.Error("another sign-in was begun")
	}
	if err := y.p.AllowSignIn(t.Context(), f.url); err != nil {
		t.Fatal(err)
	}
	y.p.ExpireAccess()
	y.in()
}

// TestDisplacedIsNotSignedIn does not take a sign-in that others displaced for one that worked, where somebody is
// signed in from before.
func TestDisplacedIsNotSignedIn(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	y.signIn()
	y.later(time.Minute)
	f := y.begin()
	y.later(2 * pendingTimeout)
	if _, err := y.c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	wants(t, f.Wait(t.Context()), "OAuth flow timed out")
}

func clientIn(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("client_id")
}

// TestSignedOutMeanwhile has somebody sign out while another waits to come back: they hear that it is over.
func TestSignedOutMeanwhile(t *testing.T) {
	y := meet(t, oauthtest.Options{}, nil)
	f := y.begin()
	if _, _, err := y.c.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if y.desk.callbacks.expects(f.state) {
		t.Error("somebody is waited for who cannot come back")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	wants(t, f.Wait(ctx), "OAuth flow timed out")
	if ctx.Err() != nil {
		t.Error("who waits, waits on")
	}
}
