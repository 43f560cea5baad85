package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/callers"
	"github.com/drawbridge-mcp/drawbridge/bridge/remote"
	"github.com/drawbridge-mcp/drawbridge/bridge/signin"
)

// A Vault keeps credentials; see the methods' promises in package signin.
type Vault = signin.Vault

// SignIn begins a sign-in at a server for a principal: in a browser that comes back to this machine, or on another device. The
// error is for an unknown name, a server that is not signed in at, and what kept the sign-in from being begun.
func (f *Fleet) SignIn(ctx context.Context, id drawbridge.ServerID, principal string, device bool) (drawbridge.SignIn, error) {
	c, err := f.credential(id, principal)
	if err != nil {
		return nil, err
	}
	begin := c.Begin
	if device {
		begin = c.BeginDevice
	}
	flow, err := begin(ctx)
	if err != nil {
		return nil, err
	}
	return flow, nil
}

// PasteSignIn ends a sign-in that was begun here, or by another process, with the address that the browser ended at.
func (f *Fleet) PasteSignIn(ctx context.Context, id drawbridge.ServerID, principal, text string) error {
	c, err := f.credential(id, principal)
	if err != nil {
		return err
	}
	return c.Paste(ctx, text)
}

// SignOut removes what is kept of a server's sign-in, and revokes it. Why says why it could not be revoked, nil where it was.
// The error is for an unknown name, and signin.ErrNobody where nobody is signed in.
func (f *Fleet) SignOut(ctx context.Context, id drawbridge.ServerID, principal string) (why, err error) {
	c, err := f.credential(id, principal)
	if err != nil {
		return nil, err
	}
	_, why, err = c.Remove(ctx)
	return why, err
}

// SignedIn says how we stand with a server, without asking it. The error is for an unknown name, a server that is not signed in
// at, and what is kept and cannot be read.
func (f *Fleet) SignedIn(id drawbridge.ServerID, principal string) (drawbridge.Credential, error) {
	c, err := f.credential(id, principal)
	if err != nil {
		return drawbridge.Credential{}, err
	}
	return c.State()
}

// ErrNobody is wrapped where there is nothing to sign out of, ErrNoSignIn where a server's row keeps it from signing in.
var (
	ErrNobody   = signin.ErrNobody
	ErrNoSignIn = errors.New("its row says nothing of signing in, or has what to say to the server itself")
)

func (f *Fleet) credential(id drawbridge.ServerID, principal string) (*signin.Credential, error) {
	e, err := f.endpoint(id)
	if err != nil {
		return nil, err
	}
	if c := e.credential(principal); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("sign in at %s: %w", id, ErrNoSignIn)
}

func (e *endpoint) credential(principal string) *signin.Credential {
	server, ok := signin.FromRow(e.row, principal)
	if !ok {
		return nil
	}
	return e.pool.desk.Credential(server, e.auth)
}

// signer gives what puts a principal's token on requests; nil where there is none to be had.
func (e *endpoint) signer(principal string) remote.Signer {
	if c := e.credential(principal); c != nil {
		return c
	}
	return nil
}

// TokenVariable is the environment variable in which a stdio server that wants one is given its token (seed 001, section 3).
const TokenVariable = "OAUTH_ACCESS_TOKEN"

// tokenEnv adds the token to the environment of a stdio server whose row says that it wants one.
func (e *endpoint) tokenEnv(ctx context.Context, principal string, env []string) ([]string, error) {
	c := e.credential(principal)
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
	return append(env, TokenVariable+"="+token), nil
}

// signedIn is closed when somebody has signed in at the server as is needed, here or in another process, or ctx ends.
func (e *endpoint) signedIn(ctx context.Context, needed *signin.NeededError) <-chan struct{} {
	done := make(chan struct{})
	c := e.credential(e.pool.o.Principal)
	e.mu.Lock()
	defer e.mu.Unlock()
	if c == nil || !e.start(func() { defer close(done); _ = c.Await(ctx, needed) }) {
		return nil
	}
	return done
}

// signedInSince says whether what went wrong for want of a principal's sign-in may go well now.
func (e *endpoint) signedInSince(principal string, err error) bool {
	needed := signin.Needed(err)
	if needed == nil {
		return false
	}
	c := e.credential(principal)
	return c != nil && c.Done(needed)
}

// visitable says whether a call went wrong for want of a sign-in of its caller's own, to which they can take the user.
func (e *endpoint) visitable(call drawbridge.Call, err error) bool {
	needed := signin.Needed(err)
	return needed.Visitable() && callers.CanBeAsked(call.Caller) && signin.MayVisit(call) && e.credential(call.Caller.Principal).Owns(needed)
}

// mostVisits is how often the user is taken to sign in for one call: once, and again for more rights.
const mostVisits = 3

// persuade carries a call. Where the server wants somebody to sign in first, the caller is asked to take the user there, and
// the call goes on when they are back.
func (e *endpoint) persuade(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	result, err := e.carry(ctx, call)
	for visits := 0; visits < mostVisits && e.visitable(call, err); visits++ {
		if err := e.credential(call.Caller.Principal).Visit(ctx, call, signin.Needed(err), e.limit()); err != nil {
			return drawbridge.Result{}, signin.Direct(e.callFault(e.stepOf(call), err), e.row.ID, e.credential(call.Caller.Principal))
		}
		result, err = e.carry(ctx, call)
	}
	return result, err
}
