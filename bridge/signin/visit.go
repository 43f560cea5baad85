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

// nextOpen is Next with the address, for those who asked: it is not for logs.
func (n *NeededError) nextOpen(id drawbridge.ServerID) string {
	return n.Next(id) + ", or open " + n.URL
}

// Owns says whether a sign-in that is needed is one to this credential: whoever signs in for another is taken for them. The
// credential may be nil.
func (c *Credential) Owns(needed *NeededError) bool {
	return c != nil && needed != nil && c.name == needed.name
}

// Direct gives an error that a caller gets with what to do about it, where it is about a sign-in: the address for one to the
// caller's own credential, which may be nil, and never that for another's.
func Direct(err error, id drawbridge.ServerID, own *Credential) error {
	needed := Needed(err)
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || !needed.Visitable() {
		return err
	}
	told := *f
	if told.Next = "ask whoever runs the server here to " + needed.Next(id); own.Owns(needed) {
		told.Next = needed.nextOpen(id)
	}
	return &told
}

// MayVisit says whether a caller can take its user to a page.
func MayVisit(call drawbridge.Call) bool {
	return call.Peer != nil && wire.MayAsk(call.Caller.Capabilities, wire.MethodElicitation, []byte(`{"mode":"url"}`))
}

// Visit has the caller of a call take the user to where they sign in, and waits until they have, at most for so long.
func (c *Credential) Visit(ctx context.Context, call drawbridge.Call, needed *NeededError, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	without := func(why string) error {
		still := *needed
		still.Err = errors.New(why)
		return &still
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
	if c.Await(ctx, needed) != nil {
		return without("nobody had signed in when the call's time was over")
	}
	// The page may be closed now; a client that does not want to know loses nothing.
	_ = call.Peer.Notify(ctx, wire.NoteElicitComplete, wire.Apply(nil, wire.Put(wire.Quote(id), "elicitationId")))
	return nil
}
