package roster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
)

var (
	_ Signer = (*gateway.Gateway)(nil)
	_ Porter = (*gateway.Porter)(nil)
)

// A Porter lets people in and out: a gateway.Porter is one.
type Porter interface {
	// Access gives how the person comes to be let in. The error says why nobody signs in there.
	Access(id drawbridge.ServerID) (drawbridge.Access, error)
}

// A Signer signs in at servers, and mounts them: a running gateway.Gateway is one.
type Signer interface {
	Porter
	Mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error)
}

// An Usher shows a person the way.
type Usher interface {
	// Lead shows where to sign in.
	Lead(Place)
	// Bring waits for the address that the person's browser ended at. Wrong says what was wrong with the last one; nil the
	// first time. The error is ctx's, and io.EOF or the like where the person went away.
	Bring(ctx context.Context, wrong error) (string, error)
}

// A Place is where a person signs in.
type Place struct {
	Server drawbridge.ServerID
	// URL is an http or https address. Code is what is entered there, for a sign-in on another device.
	URL, Code string
	// Issuer is whom one signs in with, scheme and host.
	Issuer string
}

// A Visit says how a person wants to sign in.
type Visit struct {
	Server drawbridge.ServerID
	// Device is for a sign-in on another device.
	Device bool
	// Again signs in anew where somebody is signed in; what there is stays until the new sign-in worked.
	Again bool
	// Text ends a sign-in that was begun before: the address that the browser ended at.
	Text string
	// Limit is how long the person may take; 0 is five minutes.
	Limit time.Duration
}

// visitLimit is how long a person may take to sign in (seed 001: the whole flow is bounded by five minutes).
const visitLimit = 5 * time.Minute

// An Outcome is what became of a visit.
type Outcome string

// The outcomes.
const (
	SignedIn        Outcome = "signed in"
	AlreadySignedIn Outcome = "already signed in"
	// NotWanted is a server that answers everybody.
	NotWanted Outcome = "not wanted"
)

// The sentences of sign-ins, as people know them (seed 001).
const (
	// Launching is said before a sign-in that somebody did not ask for by name.
	Launching = "Server requires OAuth authentication. Launching authorization flow..."
	// NoNeed is what there is to say where NotWanted came out.
	NoNeed = "Server connection succeeded without OAuth; reauthorization is not required."
	// SignInCancelled is the error where the person went away.
	SignInCancelled = Off("Sign-in cancelled.")
)

// SignIn has a person sign in at a server that may be started, and waits until they have: here, in another process, or by
// bringing an address back. The error is a sentence for them, or the context's; nothing that was kept is lost then.
func (r *Roster) SignIn(ctx context.Context, s Signer, v Visit, u Usher) (Outcome, error) {
	access, err := s.Access(v.Server)
	if err != nil {
		return "", err
	}
	before, err := access.State()
	switch {
	case err != nil:
		return "", err
	case v.Text != "":
		return SignedIn, access.Paste(ctx, v.Text)
	case before.Signed && !v.Again:
		if _, err := s.Mount(ctx, v.Server); !unauthorized(err) {
			return AlreadySignedIn, nil
		}
		if before, err = access.State(); err != nil {
			return "", err
		}
	}
	limit, cancel := context.WithTimeout(ctx, cmp.Or(v.Limit, visitLimit))
	defer cancel()
	flow, err := access.SignIn(limit, v.Device)
	if err != nil {
		return r.unbegun(ctx, s, v, before.Signed, cmp.Or(timedOut(limit), err))
	}
	p := Place{Server: v.Server}
	p.URL, p.Code, p.Issuer = flow.Place()
	u.Lead(p)
	if err := await(limit, access, flow, p, u, before.Signed); err != nil {
		return "", err
	}
	return SignedIn, nil
}

// unauthorized says whether a server was not mounted since it wants to know who asks.
func unauthorized(err error) bool {
	return err != nil && drawbridge.AsFault(err).Code == drawbridge.AuthFailure
}

// errTimedOut is as package signin has it (seed 001).
const errTimedOut = Off("OAuth flow timed out. Please try again.")

// timedOut says that a person has no time left; nil where they have.
func timedOut(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errTimedOut
	}
	return nil
}

// unbegun is for a sign-in that could not be begun: perhaps since there is no need of one. A server that lets in somebody who is
// signed in does not say so.
func (r *Roster) unbegun(ctx context.Context, s Signer, v Visit, signed bool, why error) (Outcome, error) {
	switch {
	case ctx.Err() != nil:
		return "", SignInCancelled
	case errors.Is(why, errTimedOut):
		return "", errTimedOut
	}
	_, err := s.Mount(ctx, v.Server)
	switch {
	case err == nil && !signed:
		return NotWanted, nil
	case err != nil && !unauthorized(err):
		return "", Off(fmt.Sprintf("Failed to connect to %q: %v", v.Server, err))
	}
	unknown := strings.Contains(why.Error(), "endpoints could not be discovered")
	if unknown && v.Again {
		return "", Off("Could not discover OAuth endpoints from server response. Name them in the row's \"auth\".")
	}
	if unknown {
		return "", Off(fmt.Sprintf("Authentication required for %q, but OAuth endpoints could not be discovered."+
			" Name them in the row's \"auth\", or give the server what it wants in \"headers\".", v.Server))
	}
	return "", Off(fmt.Sprintf("OAuth flow failed for %q: %s", v.Server, strings.TrimPrefix(why.Error(), "OAuth authentication failed: ")))
}

// lookAgain is how often it is looked whether another process has ended a sign-in.
const lookAgain = time.Second

// await waits for the first of the ways back that somebody takes.
func await(ctx context.Context, access drawbridge.Access, flow drawbridge.SignIn, p Place, u Usher, signed bool) error {
	back := make(chan error, 3)
	var ways sync.WaitGroup
	defer ways.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ways.Go(func() {
		err := flow.Wait(ctx)
		if errors.Is(err, context.Canceled) {
			err = SignInCancelled
		}
		back <- err
	})
	if p.Code == "" {
		ways.Go(func() {
			if err := bring(ctx, access, flow, p, u); ctx.Err() == nil {
				back <- err
			}
		})
	}
	if !signed {
		ways.Go(func() {
			if elsewhere(ctx, access) {
				back <- nil
			}
		})
	}
	return <-back
}

// bring takes what the person brings, until it is right or the sign-in is over.
func bring(ctx context.Context, access drawbridge.Access, flow drawbridge.SignIn, p Place, u Usher) error {
	var wrong error
	for {
		text, err := u.Bring(ctx, wrong)
		if err != nil {
			return SignInCancelled
		}
		if strings.TrimSpace(text) == "" {
			wrong = nil
			continue
		}
		if wrong = flow.Paste(ctx, text); wrong == nil {
			return nil
		}
		if now, err := access.State(); err != nil || now.URL != p.URL {
			return wrong // its state is spent
		}
	}
}

// elsewhere waits until another process has ended the sign-in; false where ctx ended first.
func elsewhere(ctx context.Context, access drawbridge.Access) bool {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
		if now, err := access.State(); err == nil && now.Signed {
			return true
		}
	}
}

// A Parting is what became of a sign-out.
type Parting struct {
	Server drawbridge.ServerID `json:"server"`
	// Was says whether there was anything to sign out of.
	Was bool `json:"was_signed_in"`
	// Revoked says that the issuer takes the tokens no more; Why says why it may.
	Revoked bool   `json:"revoked"`
	Why     string `json:"why,omitempty"`
}

// String gives one line for a person.
func (p Parting) String() string {
	if !p.Was {
		return fmt.Sprintf("Nobody is signed in at %q.", p.Server)
	}
	return fmt.Sprintf("✓ Signed out of %q", p.Server)
}

// SignOut removes what is kept of a server's sign-in, and has it revoked; that nobody is signed in is no error. The server may
// be in any state. The error is a Mistake for a name that is not configured, else says why nothing was removed.
func (r *Roster) SignOut(ctx context.Context, roll Roll, id drawbridge.ServerID, p Porter) (Parting, error) {
	if _, ok := roll.Lookup(id); !ok {
		return Parting{}, roll.notFound(id)
	}
	access, err := p.Access(id)
	if err != nil {
		return Parting{}, err
	}
	why, err := access.SignOut(ctx)
	switch {
	case errors.Is(err, gateway.ErrNobody):
		return Parting{Server: id}, nil
	case err != nil:
		return Parting{}, err
	}
	out := Parting{Server: id, Was: true, Revoked: why == nil}
	if why != nil {
		out.Why = why.Error()
	}
	return out, nil
}
