package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// A CallerAuth finds the credentials with which the callers of one server are authenticated to it.
type CallerAuth struct {
	Row config.Server
	// Owner is the principal of the person who runs this Drawbridge and can sign in on this machine.
	Owner   string
	Manager *Manager
	// ResolveAuth returns the row's auth with its references resolved.
	ResolveAuth func(context.Context) (config.Auth, error)
	// OnToken is called with each token that is handed to the server.
	OnToken func(token string)
}

// Credential returns the credential of a principal for the server, or nil if its row rules signing in out.
func (e CallerAuth) Credential(principal string) *Credential {
	server, ok := ServerFromConfig(e.Row, principal, e.Owner)
	if !ok {
		return nil
	}
	return e.Manager.Credential(server, e.ResolveAuth)
}

// PrincipalFor returns the principal whose credential is used for a caller. Where each caller has a credential of its
// own, the principal includes a hash of the access token: each token may permit something else.
func (e CallerAuth) PrincipalFor(c drawbridge.Caller) string {
	if e.Row.Credentials != config.PerCallerCredentials || c.AccessToken.IsZero() {
		return c.Principal
	}
	sum := sha256.Sum256([]byte(c.AccessToken.Reveal()))
	return c.Principal + "#" + hex.EncodeToString(sum[:8])
}

// CacheCallerToken stores the access token of a caller, to be exchanged if the server requires authentication.
func (e CallerAuth) CacheCallerToken(c drawbridge.Caller) {
	if e.Row.Credentials == config.PerCallerCredentials && !c.AccessToken.IsZero() {
		if credential := e.Credential(e.PrincipalFor(c)); credential != nil {
			credential.SetCallerToken(c.AccessToken)
		}
	}
}

// ForgetCaller drops the credential of a caller with an access token who has left.
func (e CallerAuth) ForgetCaller(principal string) {
	if server, ok := ServerFromConfig(e.Row, principal, e.Owner); ok {
		e.Manager.dropCredential(server)
	}
}

// CanAskToSignIn reports whether a call failed for want of a sign-in that its client can take the user to. Only the
// owner's client can: the browser must return to this machine.
func (e CallerAuth) CanAskToSignIn(call drawbridge.Call, err error) bool {
	return call.Caller.Principal == e.Owner && SignInRequired(err).HasURL() && canOpenURL(call)
}

// RedactSignInURL removes the address to sign in at from an error for any caller but the owner. A caller who signed in
// there would sign in all others with their own account.
func (e CallerAuth) RedactSignInURL(c drawbridge.Caller, err error) error {
	if SignInRequired(err) == nil || c.Principal == e.Owner {
		return err
	}
	f := *drawbridge.AsFault(err)
	if _, asked := errors.AsType[*drawbridge.EndpointsNotAcceptedError](err); asked {
		f.Err = errors.New("sign-in needed") // only the owner can accept them
	}
	f.Next = "ask the operator of Drawbridge to sign in at " + string(e.Row.ID)
	if e.Row.Credentials == config.PerCallerCredentials {
		f.Next = "use an access token that the server's authorization server accepts in exchange"
	}
	return &f
}

// TokenVariable is the environment variable in which a stdio server receives its token, if its row asks for one (seed
// 001, section 3).
const TokenVariable = "OAUTH_ACCESS_TOKEN"

// AddTokenVariable adds the token to the environment of a stdio server if its row asks for one.
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
