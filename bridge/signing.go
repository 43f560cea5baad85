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

// Access gives how a principal comes to be let in by a server. The error is for an unknown name, and ErrNoSignIn.
func (f *Fleet) Access(id drawbridge.ServerID, principal string) (drawbridge.Access, error) {
	e, err := f.endpoint(id)
	if err != nil {
		return nil, err
	}
	if c := e.credential(principal); c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("sign in at %s: %w", id, ErrNoSignIn)
}

// ErrNobody is wrapped where there is nothing to sign out of, ErrNoSignIn where a server's row keeps it from signing in.
var (
	ErrNobody   = signin.ErrNobody
	ErrNoSignIn = errors.New("its row says nothing of signing in, or has what to say to the server itself")
)

// entrance is how callers come to be let in by the server.
func (e *endpoint) entrance() signin.Entrance {
	return signin.Entrance{Row: e.row, Owner: e.pool.o.Principal, Desk: e.pool.desk, Find: e.auth, Note: e.veil.Note}
}

// credential gives what the server is spoken to with for a principal; nil where its row keeps it from signing in.
func (e *endpoint) credential(principal string) *signin.Credential {
	return e.entrance().Credential(principal)
}

// signer gives what puts a principal's token on requests; nil where there is none to be had.
func (e *endpoint) signer(principal string) remote.Signer {
	if c := e.credential(principal); c != nil {
		return e.veil.Signer(c)
	}
	return nil
}

// TokenVariable is the environment variable in which a stdio server that wants one is given its token.
const TokenVariable = signin.TokenVariable

// signedIn is closed when somebody has signed in as is needed, here or in another process, or ctx ends.
func (e *endpoint) signedIn(ctx context.Context, needed *signin.NeededError) <-chan struct{} {
	done := make(chan struct{})
	c := e.credential(e.pool.o.Principal)
	e.mu.Lock()
	defer e.mu.Unlock()
	if c == nil || !e.start(func() { defer close(done); _ = c.Changed(ctx, needed) }) {
		return nil
	}
	return done
}

// signedInSince says whether what went wrong for want of a principal's sign-in may go well now.
func (e *endpoint) signedInSince(principal string, err error) bool {
	needed := signin.Needed(err)
	c := e.credential(principal)
	return needed != nil && c != nil && c.SignedSince(needed)
}

// visitable says whether a call went wrong for want of a sign-in to which its caller can take the user.
func (e *endpoint) visitable(call drawbridge.Call, err error) bool {
	return callers.CanBeAsked(call.Caller) && e.entrance().Visitable(call, err)
}

// mostVisits is how often the user is taken to sign in for one call: once, and again for more rights.
const mostVisits = 3

// persuade carries a call. Where the server wants somebody to sign in first, the caller is asked to take the user there, and
// the call goes on when they are back.
func (e *endpoint) persuade(ctx context.Context, f *Fleet, call drawbridge.Call) (drawbridge.Result, error) {
	result, err := e.carry(ctx, f, call)
	for visits := 0; visits < mostVisits && e.visitable(call, err); visits++ {
		if err := e.credential(call.Caller.Principal).Visit(ctx, call, signin.Needed(err), e.limit()); err != nil {
			return drawbridge.Result{}, e.callFault(e.stepOf(call), err)
		}
		result, err = e.carry(ctx, f, call)
	}
	return result, err
}
