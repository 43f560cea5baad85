package signin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Needed gives the sign-in that an error is about; nil where it is about none.
func Needed(err error) *NeededError {
	if needed, ok := errors.AsType[*NeededError](err); ok {
		return needed
	}
	return nil
}

// Visitable says whether there is an address to sign in at. It may be called with nil.
func (n *NeededError) Visitable() bool { return n != nil && n.URL != "" }

// Bars says whether nothing at all can be had of the server before somebody has signed in; more rights for one call are no
// such thing. It may be called with nil.
func (n *NeededError) Bars() bool { return n != nil && len(n.Scopes) == 0 }

// Next says what a person does about a server that wants to know who asks. It may be called with nil.
func (n *NeededError) Next(id drawbridge.ServerID) string {
	switch {
	case n.Visitable():
		return "sign in with drawbridge mcp auth " + string(id)
	case n != nil && len(n.Scopes) > 0:
		return "ask whoever runs the server for these rights"
	case n != nil:
		return `check the headers of its row, or say in its "auth" how to sign in`
	}
	return "check the headers of its row"
}

// NextOpen is Next with the address, for those who asked: it is not for logs.
func (n *NeededError) NextOpen(id drawbridge.ServerID) string {
	if n.Visitable() {
		return n.Next(id) + ", or open " + n.URL
	}
	return n.Next(id)
}

// mayVisit says whether a caller can take its user to a page.
func mayVisit(call drawbridge.Call) bool {
	return call.Peer != nil && wire.MayAsk(call.Caller.Capabilities, wire.MethodElicitation, []byte(`{"mode":"url"}`))
}

// Visit has the caller of a call take the user to where they sign in, and waits until they have, at most for so long.
func (c *Credential) Visit(ctx context.Context, call drawbridge.Call, needed *NeededError, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	without := func(why string) error {
		return &NeededError{Server: needed.Server, URL: needed.URL, Scopes: needed.Scopes, Err: errors.New(why), used: needed.used}
	}
	id := rand.Text()
	params := wire.Apply(nil,
		wire.Put(wire.Quote("url"), "mode"), wire.Put(wire.Quote(id), "elicitationId"), wire.Put(wire.Quote(needed.URL), "url"),
		wire.Put(wire.Quote(fmt.Sprintf("Sign in to use the server %q.", needed.Server)), "message"))
	answer, err := call.Peer.Ask(ctx, wire.MethodElicitation, params)
	switch {
	case err != nil:
		return without("the client did not take the user there")
	case wire.GetText(answer, "action") != "accept":
		return without("the user declined")
	}
	if c.Changed(ctx, needed) != nil {
		return without("nobody had signed in when the call's time was over")
	}
	// The page may be closed now; a client that does not want to know loses nothing.
	_ = call.Peer.Notify(ctx, wire.NoteElicitComplete, wire.Apply(nil, wire.Put(wire.Quote(id), "elicitationId")))
	return nil
}
