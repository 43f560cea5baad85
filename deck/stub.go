package deck

import (
	"context"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
)

// A Deck is the cards that can be called now. Its methods may be called from several goroutines.
type Deck struct{}

// New makes an empty deck.
func New(ctx context.Context, up Upstream, o Options) (*Deck, error) { return nil, nil }

// Configure ...
func (d *Deck) Configure(ctx context.Context, servers []Member) error { return nil }

// Enrol ...
func (d *Deck) Enrol(ctx context.Context, l drawbridge.Listing) error { return nil }

// Withdraw ...
func (d *Deck) Withdraw(ctx context.Context, id drawbridge.ServerID) error { return nil }

// Call ...
func (d *Deck) Call(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	return drawbridge.Result{}, nil
}

// Do ...
func (d *Deck) Do(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	return drawbridge.Result{}, nil
}

// List ...
func (d *Deck) List(ctx context.Context, caller drawbridge.Caller, method string) (List, error) {
	return List{}, nil
}

// Hint gives the caching hint of a list method or of "server/discover" for the caller.
func (d *Deck) Hint(caller drawbridge.Caller, method string) drawbridge.Hint {
	return drawbridge.Hint{}
}

// Find ...
func (d *Deck) Find(caller drawbridge.Caller, name drawbridge.CardName) (drawbridge.Spec, bool) {
	return drawbridge.Spec{}, false
}

// Cards ...
func (d *Deck) Cards(caller drawbridge.Caller) []drawbridge.Spec { return nil }

// Subscribe ...
func (d *Deck) Subscribe(ctx context.Context, caller drawbridge.Caller, uri string) error { return nil }

// Unsubscribe ...
func (d *Deck) Unsubscribe(ctx context.Context, caller drawbridge.Caller, uri string) error {
	return nil
}

// SetLevel ...
func (d *Deck) SetLevel(ctx context.Context, caller drawbridge.Caller, level string) error {
	return nil
}

// EndSession ...
func (d *Deck) EndSession(caller drawbridge.Caller) {}

// Instructions ...
func (d *Deck) Instructions(caller drawbridge.Caller) string { return "" }

// Capabilities ...
func (d *Deck) Capabilities(caller drawbridge.Caller) json.RawMessage { return nil }

// OnEvent ...
func (d *Deck) OnEvent(f func(Event)) (cancel func()) { return func() {} }

// Notice ...
func (d *Deck) Notice(n drawbridge.Notice) {}

// Members ...
func (d *Deck) Members() []MemberStatus { return nil }
