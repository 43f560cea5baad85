package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/callers"
	"github.com/drawbridge-mcp/drawbridge/bridge/remote"
	"github.com/drawbridge-mcp/drawbridge/bridge/signin"
	"github.com/drawbridge-mcp/drawbridge/config"
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

func (e *endpoint) credential(principal string) *signin.Credential {
	server, ok := signin.FromRow(e.row, principal, e.pool.o.Principal)
	if !ok {
		return nil
	}
	return e.pool.desk.Credential(server, e.auth)
}

// vouched gives the principal on whose connection a call goes to the server: where callers have credentials of their own, one who
// was vouched for by a token has one for each, since another token may allow something else.
func (e *endpoint) vouched(c drawbridge.Caller) string {
	if e.row.Credentials != config.PerCaller || c.Proof.IsZero() {
		return c.Principal
	}
	sum := sha256.Sum256([]byte(c.Proof.Reveal()))
	return c.Principal + "#" + hex.EncodeToString(sum[:8])
}

// vouch has the token by which a call's caller has proved who they are at hand, should the server want to know.
func (e *endpoint) vouch(c drawbridge.Caller) {
	if e.row.Credentials == config.PerCaller && !c.Proof.IsZero() {
		if credential := e.credential(e.vouched(c)); credential != nil {
			credential.Vouch(c.Proof)
		}
	}
}

// forsake drops the credential that ends with a session.
func (e *endpoint) forsake(k key) {
	if server, ok := signin.FromRow(e.row, k.principal, e.pool.o.Principal); ok {
		e.pool.desk.Forget(server)
	}
}

// discreet keeps from callers from elsewhere where a credential of the owner's is signed in for: whoever went there would sign
// everybody in as themselves.
func (e *endpoint) discreet(c drawbridge.Caller, err error) error {
	if signin.Needed(err) == nil || c.Principal == e.pool.o.Principal {
		return err
	}
	f := *drawbridge.AsFault(err)
	f.Next = "ask whoever runs Drawbridge to sign in at " + string(e.row.ID)
	if e.row.Credentials == config.PerCaller {
		f.Next = "use a token that its authorization server takes in exchange"
	}
	return &f
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

// signedInSince says whether what went wrong for want of a sign-in would go well now.
func (e *endpoint) signedInSince(err error) bool {
	needed := signin.Needed(err)
	c := e.credential(e.pool.o.Principal)
	return needed != nil && c != nil && c.SignedSince(needed)
}

// visitable says whether a call went wrong for want of a sign-in to which its caller can take the user: who sits here, since
// that is where one comes back to.
func (e *endpoint) visitable(call drawbridge.Call, err error) bool {
	return call.Caller.Principal == e.pool.o.Principal && signin.Needed(err).Visitable() && callers.CanBeAsked(call.Caller) && signin.MayVisit(call)
}

// mostVisits is how often the user is taken to sign in for one call: once, and again for more rights.
const mostVisits = 3

// persuade carries a call. Where the server wants somebody to sign in first, the caller is asked to take the user there, and
// the call goes on when they are back.
func (e *endpoint) persuade(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	result, err := e.carry(ctx, call)
	for visits := 0; visits < mostVisits && e.visitable(call, err); visits++ {
		if err := e.credential(call.Caller.Principal).Visit(ctx, call, signin.Needed(err), e.limit()); err != nil {
			return drawbridge.Result{}, e.callFault(e.stepOf(call), err)
		}
		result, err = e.carry(ctx, call)
	}
	return result, err
}
