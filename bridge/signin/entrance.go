package signin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// An Entrance is how callers come to be let in by the server of a row.
type Entrance struct {
	Row config.Server
	// Owner is the principal that sits here.
	Owner string
	Desk  *Desk
	// Find finds what the row's auth refers to.
	Find func(context.Context) (config.Auth, error)
	// Note is told each token that is handed to the server.
	Note func(token string)
}

// Credential gives what the server is spoken to with for a principal; nil where its row keeps it from signing in.
func (e Entrance) Credential(principal string) *Credential {
	server, ok := FromRow(e.Row, principal, e.Owner)
	if !ok {
		return nil
	}
	return e.Desk.Credential(server, e.Find)
}

// Principal gives whom a caller is to the server: where callers have credentials of their own, one who was vouched for by a token
// is another with each token, since each may allow something else.
func (e Entrance) Principal(c drawbridge.Caller) string {
	if e.Row.Credentials != config.PerCaller || c.Proof.IsZero() {
		return c.Principal
	}
	sum := sha256.Sum256([]byte(c.Proof.Reveal()))
	return c.Principal + "#" + hex.EncodeToString(sum[:8])
}

// Vouch has the token by which a caller has proved who they are at hand, should the server want to know.
func (e Entrance) Vouch(c drawbridge.Caller) {
	if e.Row.Credentials == config.PerCaller && !c.Proof.IsZero() {
		if credential := e.Credential(e.Principal(c)); credential != nil {
			credential.Vouch(c.Proof)
		}
	}
}

// Forget drops the credential of a principal who is vouched for and gone.
func (e Entrance) Forget(principal string) {
	if server, ok := FromRow(e.Row, principal, e.Owner); ok {
		e.Desk.forget(server)
	}
}

// Visitable says whether a call went wrong for want of a sign-in to which its caller, who sits here, can take the user: here is
// where one comes back to.
func (e Entrance) Visitable(call drawbridge.Call, err error) bool {
	return call.Caller.Principal == e.Owner && Needed(err).Visitable() && mayVisit(call)
}

// Discreet keeps from callers from elsewhere where a credential of the owner's is signed in for: whoever went there would sign
// everybody in as themselves.
func (e Entrance) Discreet(c drawbridge.Caller, err error) error {
	if Needed(err) == nil || c.Principal == e.Owner {
		return err
	}
	f := *drawbridge.AsFault(err)
	f.Next = "ask whoever runs Drawbridge to sign in at " + string(e.Row.ID)
	if e.Row.Credentials == config.PerCaller {
		f.Next = "use a token that its authorization server takes in exchange"
	}
	return &f
}

// TokenVariable is the environment variable in which a stdio server that wants one is given its token (seed 001, section 3).
const TokenVariable = "OAUTH_ACCESS_TOKEN"

// Environ adds the token to the environment of a stdio server whose row says that it wants one.
func (e Entrance) Environ(ctx context.Context, principal string, env []string) ([]string, error) {
	c := e.Credential(principal)
	if c == nil {
		return env, nil
	}
	token, err := c.Token(ctx)
	if err == nil && token == "" {
		token, err = c.Demand(ctx)
	}
	if err != nil {
		return nil, err
	}
	e.Note(token)
	return append(env, TokenVariable+"="+token), nil
}
