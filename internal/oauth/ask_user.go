package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// SignInRequired gives the sign-in that an error is about; nil where it is about none.
func SignInRequired(err error) *SignInRequiredError {
	if needed, ok := errors.AsType[*SignInRequiredError](err); ok {
		return needed
	}
	return nil
}

// HasURL says whether there is an address to sign in at. It may be called with nil.
func (n *SignInRequiredError) HasURL() bool { return n != nil && n.URL != "" }

// Blocks says whether nothing at all can be had of the server before somebody has signed in; more rights for one call
// are no such thing. It may be called with nil.
func (n *SignInRequiredError) Blocks() bool { return n != nil && len(n.Scopes) == 0 }

// Advice says what a person does about a server that wants to know who asks. It may be called with nil.
func (n *SignInRequiredError) Advice(id drawbridge.ServerID) string {
	switch {
	case n.HasURL():
		return "sign in with drawbridge mcp auth " + string(id)
	case n != nil && len(n.Scopes) > 0:
		return "ask whoever runs the server for these rights"
	case n != nil:
		return `check the headers of its row, or say in its "auth" how to sign in`
	}
	return "check the headers of its row"
}

// AdviceWithURL is Next with the address, for those who asked: it is not for logs.
func (n *SignInRequiredError) AdviceWithURL(id drawbridge.ServerID) string {
	if n.HasURL() {
		return n.Advice(id) + ", or open " + n.URL
	}
	return n.Advice(id)
}

// canOpenURL says whether a caller can take its user to a page.
func canOpenURL(call drawbridge.Call) bool {
	return call.Peer != nil && mcp.ClientAcceptsRequest(call.Caller.Capabilities, mcp.MethodElicitation,
		[]byte(`{"mode":"url"}`))
}

// AskToSignIn has the caller of a call take the user to where they sign in, and waits until they have, at most for so
// long.
func (c *Credential) AskToSignIn(ctx context.Context, call drawbridge.Call, needed *SignInRequiredError,
	limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	without := func(why string) error {
		return &SignInRequiredError{Server: needed.Server, URL: needed.URL, Scopes: needed.Scopes, Err: errors.New(why),
			usedToken: needed.usedToken}
	}
	id := rand.Text()
	params := rawjson.Apply(nil,
		rawjson.Put(rawjson.Quote("url"), "mode"), rawjson.Put(rawjson.Quote(id), "elicitationId"),
		rawjson.Put(rawjson.Quote(needed.URL), "url"),
		rawjson.Put(rawjson.Quote(fmt.Sprintf("Sign in to use the server %q.", needed.Server)), "message"))
	answer, err := call.Peer.Request(ctx, mcp.MethodElicitation, params)
	switch {
	case err != nil:
		return without("the client did not take the user there")
	case rawjson.GetString(answer, "action") != "accept":
		return without("the user declined")
	}
	if c.WaitForNewToken(ctx, needed) != nil {
		return without("nobody had signed in when the call's time was over")
	}
	// The page may be closed now; a client that does not want to know loses nothing.
	_ = call.Peer.Notify(ctx, mcp.NoteElicitComplete, rawjson.Apply(nil, rawjson.Put(rawjson.Quote(id),
		"elicitationId")))
	return nil
}
