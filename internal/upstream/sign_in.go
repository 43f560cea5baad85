package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/oauth"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A Vault keeps credentials; see the methods' promises in package signin.
type Vault = oauth.Vault

// Access gives how a principal comes to be let in by a server. The error is for an unknown name, and
// ErrSignInNotConfigured.
func (f *Fleet) Access(id drawbridge.ServerID, principal string) (drawbridge.SignInManager, error) {
	e, err := f.serverByID(id)
	if err != nil {
		return nil, err
	}
	if c := e.credential(principal); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("sign in at %s: %w", id, ErrSignInNotConfigured)
}

// ErrNotSignedIn is wrapped where there is nothing to sign out of, ErrSignInNotConfigured where a server's row keeps
// it from signing in.
var (
	ErrNotSignedIn         = oauth.ErrNotSignedIn
	ErrSignInNotConfigured = errors.New("its row says nothing of signing in, or has what to say to the server itself")
)

// callerAuth is how callers come to be let in by the server.
func (e *managedServer) callerAuth() oauth.CallerAuth {
	return oauth.CallerAuth{Row: e.config, Owner: e.pool.o.Principal, Manager: e.pool.signIns,
		ResolveAuth: e.resolveAuth, OnToken: e.redactor.addToken}
}

// credential gives what the server is spoken to with for a principal; nil where its row keeps it from signing in.
func (e *managedServer) credential(principal string) *oauth.Credential {
	return e.callerAuth().Credential(principal)
}

// tokenSource gives what puts a principal's token on requests; nil where there is none to be had.
func (e *managedServer) tokenSource(principal string) transport.TokenSource {
	if c := e.credential(principal); c != nil {
		return e.redactor.wrapTokenSource(c)
	}
	return nil
}

// TokenVariable is the environment variable in which a stdio server that wants one is given its token.
const TokenVariable = oauth.TokenVariable

// awaitSignIn is closed when somebody has signed in as is needed, here or in another process, or ctx ends.
func (e *managedServer) awaitSignIn(ctx context.Context, needed *oauth.SignInRequiredError) <-chan struct{} {
	done := make(chan struct{})
	c := e.credential(e.pool.o.Principal)
	e.mu.Lock()
	defer e.mu.Unlock()
	if c == nil || !e.startWorker(func() { defer close(done); _ = c.WaitForNewToken(ctx, needed) }) {
		return nil
	}
	return done
}

// signedInSince says whether what went wrong for want of a principal's sign-in may go well now.
func (e *managedServer) signedInSince(principal string, err error) bool {
	needed := oauth.SignInRequired(err)
	c := e.credential(principal)
	return needed != nil && c != nil && c.HasNewerToken(needed)
}

// needsUserSignIn says whether a call went wrong for want of a sign-in to which its caller can take the user.
func (e *managedServer) needsUserSignIn(call drawbridge.Call, err error) bool {
	return e.pool.clients.canBeAsked(call.Caller) && e.callerAuth().CanAskToSignIn(call, err)
}

// maxSignInVisits is how often the user is taken to sign in for one call: once, and again for more rights.
const maxSignInVisits = 3

// callWithSignIn carries a call. Where the server wants somebody to sign in first, the caller is asked to take the
// user there, and the call goes on when they are back.
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
