package bridge

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/callers"
	"github.com/drawbridge-mcp/drawbridge/bridge/remote"
	"github.com/drawbridge-mcp/drawbridge/bridge/signin"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Vault keeps credentials; see the methods' promises in package signin.
type Vault = signin.Vault

// A SignIn is a sign-in that waits for a person, SignedIn how a credential stands.
type (
	SignIn   = signin.Flow
	SignedIn = signin.State
)

// perCaller is the member "credentials" of a row whose callers have one each.
const perCaller = "per-caller"

// credential gives what the server is spoken to with for a principal; nil where its row keeps it from signing in.
func (e *endpoint) credential(principal string) *signin.Credential {
	server, ok := serverOf(e.row)
	if !ok {
		return nil
	}
	if e.row.Credentials == perCaller {
		server.Principal = principal
	}
	return e.pool.desk.Credential(server)
}

// serverOf is a row as something to sign in at. It says false where the row has what to say to the server itself, or says
// that there is nothing to sign in at.
func serverOf(row config.Server) (signin.Server, bool) {
	authorized := slices.ContainsFunc(row.Headers, func(p config.Pair) bool { return strings.EqualFold(p.Name, "Authorization") })
	if authorized || row.URL == "" {
		return signin.Server{}, false
	}
	return signin.Server{ID: row.ID, URL: row.URL}, true
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

// neededIn gives the sign-in that an error is about; its zero value for none.
func neededIn(err error) neededSignIn {
	if needed, ok := errors.AsType[*signin.NeededError](err); ok {
		return neededSignIn{*needed}
	}
	return neededSignIn{}
}

type neededSignIn struct{ signin.NeededError }

// loses says whether a session is of no use before somebody has signed in. More rights for one call are no such thing.
func (n neededSignIn) loses() bool { return n.Server != "" && len(n.Scopes) == 0 }

// nextSignIn says what to do about a server that wants to know who asks.
func (e *endpoint) nextSignIn(err error) string {
	switch needed := neededIn(err); {
	case needed.URL != "":
		return fmt.Sprintf("sign in with drawbridge mcp auth %s, or open %s", e.row.ID, needed.URL)
	case needed.Server != "" && len(needed.Scopes) > 0:
		return "ask whoever runs the server for these rights"
	}
	return `check the headers of its row, or name its authorization server in "auth"`
}

// signedIn is closed when somebody has signed in at the server, here or in another process, or ctx ends.
func (e *endpoint) signedIn(ctx context.Context, principal string) <-chan struct{} {
	done := make(chan struct{})
	c := e.credential(principal)
	e.mu.Lock()
	defer e.mu.Unlock()
	if c == nil || !e.start(func() { defer close(done); _ = c.Changed(ctx, "") }) {
		return nil
	}
	return done
}

// mayVisit says whether the caller of a call can take the user to a page.
func mayVisit(call drawbridge.Call) bool {
	return call.Peer != nil && callers.CanBeAsked(call.Caller) &&
		wire.MayAsk(call.Caller.Capabilities, wire.MethodElicitation, []byte(`{"mode":"url"}`))
}

// mostVisits is how often the user is taken to sign in for one call: once, and again for more rights.
const mostVisits = 3

// persuade carries a call. Where the server wants somebody to sign in first, the caller is asked to take the user there, and
// the call goes on when they are back.
func (e *endpoint) persuade(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	result, err := e.carry(ctx, call)
	for range mostVisits {
		needed := neededIn(err)
		if needed.URL == "" || !mayVisit(call) {
			return result, err
		}
		if refusal := e.visit(ctx, call, needed); refusal != nil {
			return drawbridge.Result{}, refusal
		}
		result, err = e.carry(ctx, call)
	}
	return result, err
}

// visit has the caller take the user to the page where they sign in, and waits until they have.
func (e *endpoint) visit(ctx context.Context, call drawbridge.Call, needed neededSignIn) error {
	principal := call.Caller.Principal
	c := e.credential(principal)
	used, err := c.Token(ctx)
	if err != nil {
		return e.callFault(e.stepOf(call), err)
	}
	ctx, cancel := context.WithTimeout(ctx, e.limit())
	defer cancel()
	id := rand.Text()
	params := wire.Apply(nil,
		wire.Put([]byte(`"url"`), "mode"), wire.Put(wire.Quote(id), "elicitationId"), wire.Put(wire.Quote(needed.URL), "url"),
		wire.Put(wire.Quote(fmt.Sprintf("Sign in to use the server %q.", e.row.ID)), "message"),
		wire.Put(wire.Quote(string(e.row.ID)), "_meta", "drawbridge/server"))
	answer, err := call.Peer.Ask(ctx, wire.MethodElicitation, params)
	switch {
	case err != nil:
		return e.signInFault(call, &needed.NeededError, err)
	case wire.GetText(answer, "action") != "accept":
		return e.signInFault(call, &needed.NeededError, errors.New("the user declined"))
	}
	if err := c.Changed(ctx, used); err != nil {
		return e.signInFault(call, &needed.NeededError, errors.New("nobody had signed in before the call's time was over"))
	}
	e.mu.Lock()
	clear(e.failures) // what went wrong a moment ago was this
	e.mu.Unlock()
	_ = call.Peer.Notify(ctx, wire.NoteElicitComplete, wire.Apply(nil, wire.Put(wire.Quote(id), "elicitationId")))
	return nil
}

// signInFault is why a call waits for a sign-in no longer.
func (e *endpoint) signInFault(call drawbridge.Call, needed *signin.NeededError, why error) error {
	f := e.callFault(e.stepOf(call), &signin.NeededError{Server: needed.Server, URL: needed.URL, Scopes: needed.Scopes, Err: why})
	f.Code = cmp.Or(f.Code, drawbridge.AuthFailure)
	return f
}
