package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// An CallerAuth is how callers come to be let in by the server of a row.
type CallerAuth struct {
	Row config.Server
	// Owner is the principal that sits here.
	Owner   string
	Manager *Manager
	// ResolveAuth finds what the row's auth refers to.
	ResolveAuth func(context.Context) (config.Auth, error)
	// OnToken is told each token that is handed to the server.
	OnToken func(token string)
}

// Credential gives what the server is spoken to with for a principal; nil where its row keeps it from signing in.
func (e CallerAuth) Credential(principal string) *Credential {
	server, ok := ServerFromConfig(e.Row, principal, e.Owner)
	if !ok {
		return nil
	}
	return e.Manager.Credential(server, e.ResolveAuth)
}

// PrincipalFor gives whom a caller is to the server: where callers have credentials of their own, one who was vouched
// for by a token is another with each token, since each may allow something else.
func (e CallerAuth) PrincipalFor(c drawbridge.Caller) string {
	if e.Row.Credentials != config.PerCallerCredentials || c.AccessToken.IsZero() {
		return c.Principal
	}
	sum := sha256.Sum256([]byte(c.AccessToken.Reveal()))
	return c.Principal + "#" + hex.EncodeToString(sum[:8])
}

// CacheCallerToken has the token by which a caller has proved who they are at hand, should the server want to know.
func (e CallerAuth) CacheCallerToken(c drawbridge.Caller) {
	if e.Row.Credentials == config.PerCallerCredentials && !c.AccessToken.IsZero() {
		if credential := e.Credential(e.PrincipalFor(c)); credential != nil {
			credential.SetCallerToken(c.AccessToken)
		}
	}
}

// ForgetCaller drops the credential of a principal who is vouched for and gone.
func (e CallerAuth) ForgetCaller(principal string) {
	if server, ok := ServerFromConfig(e.Row, principal, e.Owner); ok {
		e.Manager.dropCredential(server)
	}
}

// CanAskToSignIn says whether a call went wrong for want of a sign-in to which its caller, who sits here, can take the
// user: here is where one comes back to.
func (e CallerAuth) CanAskToSignIn(call drawbridge.Call, err error) bool {
	return call.Caller.Principal == e.Owner && SignInRequired(err).HasURL() && canOpenURL(call)
}

// RedactSignInURL keeps from callers from elsewhere where a credential of the owner's is signed in for: whoever went
// there would sign everybody in as themselves.
func (e CallerAuth) RedactSignInURL(c drawbridge.Caller, err error) error {
	if SignInRequired(err) == nil || c.Principal == e.Owner {
		return err
	}
	f := *drawbridge.AsFault(err)
	f.Next = "ask whoever runs Drawbridge to sign in at " + string(e.Row.ID)
	if e.Row.Credentials == config.PerCallerCredentials {
		f.Next = "use a token that its authorization server takes in exchange"
	}
	return &f
}

// TokenVariable is the environment variable in which a stdio server that wants one is given its token (seed 001,
// section 3).
const TokenVariable = "OAUTH_ACCESS_TOKEN"

// AddTokenVariable adds the token to the environment of a stdio server whose row says that it wants one.
func (e CallerAuth) AddTokenVariable(ctx context.Context, principal string, env []string) ([]string, error) {
	c := e.Credential(principal)
	if c == nil {
		return env, nil
	}
	token, err := c.Token(ctx)
	if err == nil && token == "" {
		token, err = c.RequireToken(ctx)
	}
	if err != nil {
		return nil, err
	}
	e.OnToken(token)
	return append(env, TokenVariable+"="+token), nil
}
