package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/oauth"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A Vault stores sign-in credentials; see package oauth.
type Vault = oauth.Vault

// Access returns the manager of a principal's sign-in at a server. It returns an error for an unknown server, and wraps
// ErrSignInNotConfigured for a server without a sign-in.
func (f *Fleet) Access(id drawbridge.ServerID, principal string) (drawbridge.SignInManager, error) {
	f.Release(id)
	e, err := f.serverByID(id)
	if err != nil {
		return nil, err
	}
	if c := e.credential(principal); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("sign in at %s: %w", id, ErrSignInNotConfigured)
}

// ErrNotSignedIn is wrapped by the error of a sign-out without a sign-in. ErrSignInNotConfigured is wrapped by an error
// if the server's row does not permit signing in.
var (
	ErrNotSignedIn         = oauth.ErrNotSignedIn
	ErrSignInNotConfigured = errors.New("its row has no sign-in settings, or sets the credential itself")
)

// callerAuth returns the oauth.CallerAuth of the server, which finds the server's credentials for each caller.
func (e *managedServer) callerAuth() oauth.CallerAuth {
	return oauth.CallerAuth{Row: e.config, Owner: e.pool.o.Principal, Manager: e.pool.signIns,
		ResolveAuth: e.resolveAuth, OnToken: e.redactor.addToken}
}

// credential returns the credential of a principal, or nil if the row does not permit signing in.
func (e *managedServer) credential(principal string) *oauth.Credential {
	return e.callerAuth().Credential(principal)
}

// tokenSource returns the token source of a principal, or nil if the row does not permit signing in.
func (e *managedServer) tokenSource(principal string) transport.TokenSource {
	if c := e.credential(principal); c != nil {
		return e.redactor.wrapTokenSource(c)
	}
	return nil
}

// TokenVariable is the environment variable that passes a token to a stdio server.
const TokenVariable = oauth.TokenVariable

// awaitSignIn returns a channel that is closed when the user has signed in again after the error needed, or when ctx
// ends. The user may sign in through another process. awaitSignIn returns nil if a sign-in is not possible.
func (e *managedServer) awaitSignIn(ctx context.Context, needed *oauth.SignInRequiredError) <-chan struct{} {
	done := make(chan struct{})
	c := e.credential(e.pool.o.Principal)
	if c == nil || !e.workers.start(func() { defer close(done); _ = c.WaitForNewToken(ctx, needed) }) {
		return nil
	}
	return done
}

// signedInSince reports whether err reports a missing sign-in and the principal has signed in since that error.
func (e *managedServer) signedInSince(principal string, err error) bool {
	needed := oauth.SignInRequired(err)
	c := e.credential(principal)
	return needed != nil && c != nil && c.HasNewerToken(needed)
}

// needsUserSignIn reports whether a call failed because of a missing sign-in, and the caller can ask the user to sign
// in.
func (e *managedServer) needsUserSignIn(call drawbridge.Call, err error) bool {
	return e.pool.clients.canBeAsked(call.Caller) && e.callerAuth().CanAskToSignIn(call, err)
}

// maxSignInVisits is how many times the user is asked to sign in for one call. A second sign-in may be necessary for
// more scopes.
const maxSignInVisits = 3

// callWithSignIn makes a call. If the server requires a sign-in, callWithSignIn asks the caller to open the sign-in
// page for the user. After the sign-in it repeats the call.
func (e *managedServer) callWithSignIn(ctx context.Context, f *Fleet, call drawbridge.Call) (drawbridge.Result, error) {
	result, err := e.callWithRetry(ctx, f, call)
	for visits := 0; visits < maxSignInVisits && e.needsUserSignIn(call, err); visits++ {
		if err := e.credential(call.Caller.Principal).AskToSignIn(ctx, call, oauth.SignInRequired(err),
			e.callTimeout()); err != nil {
			return drawbridge.Result{}, e.callFault(e.describeCall(call), err)
		}
		result, err = e.callWithRetry(ctx, f, call)
	}
	return result, err
}
