//go:build !nomcp

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
)

// cardsOf returns how many cards of a server are on the deck.
func cardsOf(g *Gateway, id drawbridge.ServerID) (n int) {
	for _, spec := range g.Deck().Cards(g.Owner()) {
		if spec.Server == id {
			n++
		}
	}
	return n
}

// until waits until the deck is so, which it tells when it changes.
func until(t *testing.T, g *Gateway, so func() bool) {
	t.Helper()
	changed := make(chan struct{}, 1)
	defer g.Deck().OnEvent(func(deck.Event) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	late := time.After(20 * time.Second)
	for !so() {
		select {
		case <-changed:
		case <-late:
			t.Fatal("the deck did not become so")
		}
	}
}

// TestAQuarantinedServerLeavesTheDeck follows one through the end of its process and back: its cards are gone at once,
// stay gone for the next process and under another name, and are there again when a person says so.
func TestAQuarantinedServerLeavesTheDeck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	bad, good := row(t, "bad", "everything"), row(t, "good", "legacy")
	g := open(t, Config{Store: path, Servers: []config.Server{bad, good}})
	loaded(t, g)
	all := cardsOf(g, "bad")
	if all == 0 || cardsOf(g, "good") == 0 {
		t.Fatal("there is nothing to take away")
	}
	g.serverTrust.AddEvents("bad", trust.Event{Kind: trust.TextSanitised, Count: 3, Why: "tool echo"})
	until(t, g, func() bool { return cardsOf(g, "bad") == 0 })
	_, err := g.Deck().Call(t.Context(), drawbridge.Call{Caller: g.Owner(),
		Params: json.RawMessage(`{"name":"bad__echo","arguments":{"text":"x"}}`)})
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.NotFound {
		t.Errorf("a call of what is not there: %v", err)
	}
	if cardsOf(g, "good") == 0 {
		t.Error("the other server's cards are gone too")
	}
	if s := g.Status()[0]; s.Phase != drawbridge.Quarantined || s.Trust.Score > 0.3 || !s.Trust.Quarantined ||
		s.Trust.Until.IsZero() || s.Trust.Level != "sandboxed" || s.Cards != 0 {
		t.Errorf("its status is %+v, %+v", s, s.Trust)
	}
	closeIt(t, g)

	bad.ID, bad.MaxTools = "renamed", 500
	g = open(t, Config{Store: path, Servers: []config.Server{bad, good}})
	loaded(t, g)
	if n := cardsOf(g, "renamed"); n > 0 {
		t.Errorf("%d cards are back after a restart, under another name", n)
	}
	book, err := ReadTrustRecords(t.Context(), g.shared.db, config.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	before, reasons := book.Lookup(bad)
	if !before.Quarantined || len(reasons) != 1 || reasons[0].Why != "tool echo" {
		t.Errorf("the store has %+v, %+v", before, reasons)
	}
	if err := book.Reset(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, g, func() bool { return cardsOf(g, "renamed") == all })
	if s := g.Status()[0]; s.Phase == drawbridge.Quarantined || s.Trust.Score != 1 {
		t.Errorf("its status is %+v, %+v", s, s.Trust)
	}
}

// TestCallsMoveTrust sees how the end of a call counts, and which does not.
func TestCallsMoveTrust(t *testing.T) {
	g := openOnly(t, Config{Servers: []config.Server{row(t, "s", "legacy"), row(t, "s2", "legacy", "y"),
		row(t, "other", "legacy", "x")}})
	for _, id := range []drawbridge.ServerID{"s", "s2"} {
		g.serverTrust.AddEvents(id, trust.Event{Kind: trust.DefinitionChanged, Count: 2})
	}
	fault := func(kind drawbridge.FaultKind, code drawbridge.FaultCode) error {
		return &drawbridge.Fault{Kind: kind, Code: code, Step: "call echo on s"}
	}
	for _, tt := range []struct {
		name string
		id   drawbridge.ServerID
		err  error
		by   float64
	}{
		{"answered", "s", nil, 0.005},
		{"a timeout", "s", fault(drawbridge.BridgeFault, drawbridge.Transient), -0.02},
		{"an error of the server's", "s2", fault(drawbridge.BridgeFault, drawbridge.ServerError), -0.02},
		{"bad arguments", "s", fault(drawbridge.BridgeFault, drawbridge.InvalidInput), 0},
		{"no such tool", "s", fault(drawbridge.BridgeFault, drawbridge.NotFound), 0},
		{"too many", "s", fault(drawbridge.BridgeFault, drawbridge.RateLimited), 0},
		{"not allowed", "s", fault(drawbridge.BridgeFault, drawbridge.PolicyBlocked), 0},
		{"not signed in", "s", fault(drawbridge.BridgeFault, drawbridge.AuthFailure), 0},
		{"our own store", "s", fault(drawbridge.Backend, drawbridge.ServerError), 0},
	} {
		score := func() float64 { return g.serverTrust.Lookup(tt.id).Score }
		before := score()
		g.serverTrust.CallEnded(tt.id, drawbridge.Call{Method: "tools/call",
			Params: json.RawMessage(`{"name":"echo"}`)},
			drawbridge.Result{}, tt.err)
		// The clock goes on: what comes back in that time is far less than the least that counts.
		if by := score() - before; by < tt.by-0.001 || by > tt.by+0.001 {
			t.Errorf("%s: the score moves by %.4f, want %.4f", tt.name, by, tt.by)
		}
	}
	if got := g.serverTrust.Lookup("other").Score; got != 1 {
		t.Errorf("the other server's score is %v", got)
	}
}

// TestCallsThatFailTogetherCountOnce: a server that dies once has all of its calls fail.
func TestCallsThatFailTogetherCountOnce(t *testing.T) {
	g := openOnly(t, Config{Servers: []config.Server{row(t, "s", "legacy")}})
	for range 40 {
		g.serverTrust.CallEnded("s", drawbridge.Call{Method: "tools/call", Params: json.RawMessage(`{"name":"echo"}`)},
			drawbridge.Result{},
			&drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: "call echo on s"})
	}
	if got := g.serverTrust.Lookup("s").Score; got > 0.981 || got < 0.9 { // a few moments may have passed
		t.Errorf("the score is %v", got)
	}
}

// TestACallerWhoLeavesCostsNoTrust cancels a call before it is answered.
func TestACallerWhoLeavesCostsNoTrust(t *testing.T) {
	g := open(t, Config{Servers: []config.Server{row(t, "s", "legacy")}})
	loaded(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 5 {
		_, _ = g.Deck().Call(ctx, drawbridge.Call{Caller: g.Owner(),
			Params: json.RawMessage(`{"name":"s__echo","arguments":{"text":"x"}}`)})
	}
	if got := g.serverTrust.Lookup("s").Score; got != 1 {
		t.Errorf("the score is %v", got)
	}
}

// TestTrustCanBeTurnedOff sees that no one keeps an account then.
func TestTrustCanBeTurnedOff(t *testing.T) {
	no := false
	s := config.Settings{}
	s.Shield.Enabled = &no
	b, err := openTrustAccounts(t.Context(), Config{}, s, nil)
	if b != nil || err != nil {
		t.Errorf("there is a book: %v, %v", b, err)
	}
	g := &Gateway{serverTrust: vetting.NewServerTrust(nil)}
	g.serverTrust.AddEvents("s", trust.Event{Kind: trust.CallFailed})
	if got := g.serverTrust.Lookup("s"); got != nil {
		t.Errorf("somebody keeps an account: %v", got)
	}
	if b, err := ReadTrustRecords(t.Context(), nil, s); b != nil || err != nil {
		t.Errorf("it can be read: %v, %v", b, err)
	}
}

// TestAQuarantinedServerSaysNothing has one log a line before and after.
func TestAQuarantinedServerSaysNothing(t *testing.T) {
	g := openOnly(t, Config{Servers: []config.Server{row(t, "bad", "legacy")}})
	heard := 0
	defer g.Deck().OnEvent(func(e deck.Event) {
		if e.Kind == deck.ServerNotified {
			heard++
		}
	})()
	line := drawbridge.ServerNotification{Server: "bad", Method: "notifications/message",
		Params: json.RawMessage(`{"level":"info","data":"x"}`)}
	g.forwardNotice(line)
	g.serverTrust.AddEvents("bad", trust.Event{Kind: trust.TextSanitised, Count: 3})
	g.forwardNotice(line)
	if heard != 1 {
		t.Errorf("%d lines were heard, want the first", heard)
	}
}
