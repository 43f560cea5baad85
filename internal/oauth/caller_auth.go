package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// A CallerAuth returns the credentials that Drawbridge sends to one MCP server. The server's configuration determines
// whether all callers share one credential, or each caller has its own.
type CallerAuth struct {
	Row config.Server
	// Owner is the principal of the person who runs this Drawbridge and can sign in on this machine.
	Owner   string
	Manager *Manager
	// ResolveAuth returns the auth section of Row, with its references to variables and stored secrets replaced by the
	// values.
	ResolveAuth func(context.Context) (config.Auth, error)
	// OnToken is called with each token before it is sent to the server, so that the token can be redacted.
	OnToken func(token string)
}

// Credential returns the credential for the server. principal is the result of PrincipalFor for the caller. Credential
// returns nil if the server's configuration needs no sign-in.
func (e CallerAuth) Credential(principal string) *Credential {
	server, ok := ServerFromConfig(e.Row, principal, e.Owner)
	if !ok {
		return nil
	}
	return e.Manager.Credential(server, e.ResolveAuth)
}

// PrincipalFor returns the name under which a caller's credential is stored: the caller's principal. If each caller has
// its own credential, a hash of the caller's access token is appended. Two tokens of one caller may grant different
// rights, so they must not share a credential.
func (e CallerAuth) PrincipalFor(c drawbridge.Caller) string {
	if e.Row.Credentials != config.PerCallerCredentials || c.AccessToken.IsZero() {
		return c.Principal
	}
	sum := sha256.Sum256([]byte(c.AccessToken.Reveal()))
	return c.Principal + "#" + hex.EncodeToString(sum[:8])
}

// CacheCallerToken stores the access token of a caller in the caller's credential, if each caller has its own. When the
// server requires authentication, that token is exchanged for a token of the server.
func (e CallerAuth) CacheCallerToken(c drawbridge.Caller) {
	if e.Row.Credentials == config.PerCallerCredentials && !c.AccessToken.IsZero() {
		if credential := e.Credential(e.PrincipalFor(c)); credential != nil {
			credential.SetCallerToken(c.AccessToken)
		}
	}
}

// ForgetCaller deletes the credential of a remote caller that has disconnected. principal is the result of
// PrincipalFor.
func (e CallerAuth) ForgetCaller(principal string) {
	if server, ok := ServerFromConfig(e.Row, principal, e.Owner); ok {
		e.Manager.dropCredential(server)
	}
}

// CanAskToSignIn reports whether a call failed because a sign-in is required, and its client can open the sign-in page.
// It returns true only for the owner's clients: at the end of the sign-in, the browser must connect to this machine.
func (e CallerAuth) CanAskToSignIn(call drawbridge.Call, err error) bool {
	return call.Caller.Principal == e.Owner && SignInRequired(err).HasURL() && canOpenURL(call)
}

// RedactSignInURL removes the sign-in address from an error, unless the caller is the owner. If another caller signed
// in there, all callers would use the account of that caller.
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

// TokenVariable is the environment variable in which a stdio server receives its token, if the server's configuration
// contains a sign-in.
const TokenVariable = "OAUTH_ACCESS_TOKEN"

// AddTokenVariable returns env, the environment of a stdio server, with TokenVariable added. It returns env unchanged
// if the server's configuration contains no sign-in.
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
