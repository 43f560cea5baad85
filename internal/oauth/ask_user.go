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

// SignInRequired returns the SignInRequiredError in err, or nil if there is none.
func SignInRequired(err error) *SignInRequiredError {
	if needed, ok := errors.AsType[*SignInRequiredError](err); ok {
		return needed
	}
	return nil
}

// HasURL reports whether n contains the address of a sign-in page. For a nil n, it returns false.
func (n *SignInRequiredError) HasURL() bool { return n != nil && n.URL != "" }

// CanSignIn reports whether a person can sign in. That is the case if n contains the address of a sign-in page, or if
// the person must first accept the endpoints (see drawbridge.EndpointsNotAcceptedError). For a nil n, it returns false.
func (n *SignInRequiredError) CanSignIn() bool {
	if n.HasURL() || n == nil {
		return n != nil
	}
	_, asked := errors.AsType[*drawbridge.EndpointsNotAcceptedError](n.Err)
	return asked
}

// Blocks reports whether the server refuses all requests until a person signs in. It returns false if the server only
// requires more scopes for one call, or if n is nil.
func (n *SignInRequiredError) Blocks() bool { return n != nil && len(n.Scopes) == 0 }

// Advice returns a phrase that tells people what to do next, such as "sign in with drawbridge mcp auth NAME". id is the
// server. n may be nil if no sign-in was tried.
func (n *SignInRequiredError) Advice(id drawbridge.ServerID) string {
	switch {
	case n.CanSignIn():
		return "sign in with drawbridge mcp auth " + string(id)
	case n != nil && n.MissingCredential != "":
		return fmt.Sprintf("sign in at the server with \"credential_id\": %q that has a url", n.MissingCredential)
	case n != nil && len(n.Scopes) > 0:
		return "ask the operator of the server for these rights"
	case n != nil:
		return `check the headers of its row, or describe in its "auth" how to sign in`
	}
	return "check the headers of its row"
}

// AdviceWithURL returns Advice followed by the sign-in address, for a person who asked for the address. The result must
// not be logged, because the address is secret.
func (n *SignInRequiredError) AdviceWithURL(id drawbridge.ServerID) string {
	if n.HasURL() {
		return n.Advice(id) + ", or open " + n.URL
	}
	return n.Advice(id)
}

// canOpenURL reports whether the client of a call can open a web page for its user (elicitation in URL mode).
func canOpenURL(call drawbridge.Call) bool {
	return call.Peer != nil && mcp.ClientAcceptsRequest(call.Caller.Capabilities, mcp.MethodElicitation,
		[]byte(`{"mode":"url"}`))
}

// signInMessage returns the text with which a client asks its user to sign in. elsewhere lists the endpoints whose
// origin differs from the issuer's; it may be empty (see authServer.elsewhere).
func signInMessage(id drawbridge.ServerID, elsewhere string) string {
	text := fmt.Sprintf("Sign in to use the server %q.", id)
	if elsewhere != "" {
		text += " Its issuer has its " + elsewhere + "."
	}
	return text
}

// AskToSignIn asks the client of a call to open the sign-in address for its user (elicitation in URL mode). It waits
// until the user has signed in, at most for limit. If the user does not sign in, it returns a *SignInRequiredError with
// the reason.
func (c *Credential) AskToSignIn(ctx context.Context, call drawbridge.Call, needed *SignInRequiredError,
	limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	without := func(why string) error {
		return &SignInRequiredError{Server: needed.Server, URL: needed.URL, Elsewhere: needed.Elsewhere,
			Scopes: needed.Scopes, Err: errors.New(why), usedToken: needed.usedToken}
	}
	id := rand.Text()
	params := rawjson.Apply(nil,
		rawjson.Put(rawjson.Quote("url"), "mode"), rawjson.Put(rawjson.Quote(id), "elicitationId"),
		rawjson.Put(rawjson.Quote(needed.URL), "url"),
		rawjson.Put(rawjson.Quote(signInMessage(needed.Server, needed.Elsewhere)), "message"))
	answer, err := call.Peer.Request(ctx, mcp.MethodElicitation, params)
	switch {
	case err != nil:
		return without("the client did not take the user there")
	case rawjson.GetString(answer, "action") != "accept":
		return without("the user declined")
	}
	if c.WaitForNewToken(ctx, needed) != nil {
		return without("the user had not signed in when the call timed out")
	}
	// With this notification the client can close the page. An error is ignored: the sign-in is complete without it.
	_ = call.Peer.Notify(ctx, mcp.NoteElicitComplete, rawjson.Apply(nil, rawjson.Put(rawjson.Quote(id),
		"elicitationId")))
	return nil
}
