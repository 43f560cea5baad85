package admin

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
	_ SignInServers  = (*gateway.Gateway)(nil)
	_ SignInProvider = (*gateway.SignInManager)(nil)
)

// A SignInProvider lets people in and out: a gateway.SignInManager is one.
type SignInProvider interface {
	// ServerSignIn gives how the person comes to be let in. The error says why nobody signs in there.
	ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error)
}

// A SignInServers signs in at servers, and mounts them: a running gateway.Gateway is one.
type SignInServers interface {
	SignInProvider
	Mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error)
}

// An SignInPrompter shows a person the way.
type SignInPrompter interface {
	// ShowSignInURL shows where to sign in.
	ShowSignInURL(SignInPrompt)
	// AskRedirectURL waits for the address that the person's browser ended at. Wrong says what was wrong with the last
	// one; nil the first time. The error is ctx's, and io.EOF or the like where the person went away.
	AskRedirectURL(ctx context.Context, wrong error) (string, error)
}

// A SignInPrompt is where a person signs in.
type SignInPrompt struct {
	Server drawbridge.ServerID
	// URL is an http or https address. Code is what is entered there, for a sign-in on another device.
	URL, Code string
	// Issuer is whom one signs in with, scheme and host.
	Issuer string
}

// A SignInRequest says how a person wants to sign in.
type SignInRequest struct {
	Server drawbridge.ServerID
	// Device is for a sign-in on another device.
	Device bool
	// Reauthenticate signs in anew where somebody is signed in; what there is stays until the new sign-in worked.
	Reauthenticate bool
	// RedirectURL ends a sign-in that was begun before: the address that the browser ended at.
	RedirectURL string
	// Timeout is how long the person may take; 0 is five minutes.
	Timeout time.Duration
}

// defaultSignInTimeout is how long a person may take to sign in (seed 001: the whole flow is bounded by five minutes).
const defaultSignInTimeout = 5 * time.Minute

// An SignInOutcome is what became of a visit.
type SignInOutcome string

// The outcomes.
const (
	SignedIn        SignInOutcome = "signed in"
	AlreadySignedIn SignInOutcome = "already signed in"
	// SignInNotNeeded is a server that answers everybody.
	SignInNotNeeded SignInOutcome = "not wanted"
)

// The sentences of sign-ins, as people know them (seed 001).
const (
	// SignInLaunchingText is said before a sign-in that somebody did not ask for by name.
	SignInLaunchingText = "Server requires OAuth authentication. Launching authorization flow..."
	// SignInNotNeededText is what there is to say where SignInNotNeeded came out.
	SignInNotNeededText = "Server connection succeeded without OAuth; reauthorization is not required."
	// ErrSignInCancelled is the error where the person went away.
	ErrSignInCancelled = UnavailableError("Sign-in cancelled.")
)

// SignIn has a person sign in at a server that may be started, and waits until they have: here, in another process, or
// by bringing an address back. The error is a sentence for them, or the context's; nothing that was kept is lost then.
func (r *Service) SignIn(ctx context.Context, s SignInServers, v SignInRequest,
	u SignInPrompter) (SignInOutcome, error) {
	access, err := s.ServerSignIn(v.Server)
	if err != nil {
		return "", err
	}
	before, err := access.Status()
	switch {
	case err != nil:
		return "", err
	case v.RedirectURL != "":
		return SignedIn, access.CompleteWithURL(ctx, v.RedirectURL)
	case before.SignedIn && !v.Reauthenticate:
		if _, err := s.Mount(ctx, v.Server); !isAuthFailure(err) {
			return AlreadySignedIn, nil
		}
		if before, err = access.Status(); err != nil {
			return "", err
		}
	}
	limit, cancel := context.WithTimeout(ctx, cmp.Or(v.Timeout, defaultSignInTimeout))
	defer cancel()
	flow, err := access.BeginSignIn(limit, v.Device)
	if err != nil {
		return r.diagnoseFailedSignIn(ctx, s, v, before.SignedIn, cmp.Or(signInTimeoutError(limit), err))
	}
	p := SignInPrompt{Server: v.Server}
	p.URL, p.Code, p.Issuer = flow.SignInAddress()
	u.ShowSignInURL(p)
	if err := awaitSignIn(limit, access, flow, p, u, before.SignedIn); err != nil {
		return "", err
	}
	return SignedIn, nil
}

// isAuthFailure says whether a server was not mounted since it wants to know who asks.
func isAuthFailure(err error) bool {
	return err != nil && drawbridge.AsFault(err).Code == drawbridge.AuthFailure
}

// errSignInTimeout is as package signin has it (seed 001).
const errSignInTimeout = UnavailableError("OAuth flow timed out. Please try again.")

// signInTimeoutError says that a person has no time left; nil where they have.
func signInTimeoutError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errSignInTimeout
	}
	return nil
}

// diagnoseFailedSignIn is for a sign-in that could not be begun: perhaps since there is no need of one. A server that
// lets in somebody who is signed in does not say so.
func (r *Service) diagnoseFailedSignIn(ctx context.Context, s SignInServers, v SignInRequest, signed bool,
	why error) (SignInOutcome, error) {
	switch {
	case ctx.Err() != nil:
		return "", ErrSignInCancelled
	case errors.Is(why, errSignInTimeout):
		return "", errSignInTimeout
	}
	_, err := s.Mount(ctx, v.Server)
	switch {
	case err == nil && !signed:
		return SignInNotNeeded, nil
	case err != nil && !isAuthFailure(err):
		return "", UnavailableError(fmt.Sprintf("Failed to connect to %q: %v", v.Server, err))
	}
	unknown := strings.Contains(why.Error(), "endpoints could not be discovered")
	if unknown && v.Reauthenticate {
		return "", UnavailableError(
			"Could not discover OAuth endpoints from server response. Name them in the row's \"auth\".")
	}
	if unknown {
		return "", UnavailableError(
			fmt.Sprintf("Authentication required for %q, but OAuth endpoints could not be discovered."+
				" Name them in the row's \"auth\", or give the server what it wants in \"headers\".", v.Server))
	}
	return "", UnavailableError(fmt.Sprintf("OAuth flow failed for %q: %s", v.Server, strings.TrimPrefix(why.Error(),
		"OAuth authentication failed: ")))
}

// signInPollInterval is how often it is looked whether another process has ended a sign-in.
const signInPollInterval = time.Second

// awaitSignIn waits for the first of the ways back that somebody takes.
func awaitSignIn(ctx context.Context, access drawbridge.SignInManager, flow drawbridge.PendingSignIn, p SignInPrompt,
	u SignInPrompter, signed bool) error {
	back := make(chan error, 3)
	var ways sync.WaitGroup
	defer ways.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ways.Go(func() {
		err := flow.Wait(ctx)
		if errors.Is(err, context.Canceled) {
			err = ErrSignInCancelled
		}
		back <- err
	})
	if p.Code == "" {
		ways.Go(func() {
			if err := completeWithPastedURL(ctx, access, flow, p, u); ctx.Err() == nil {
				back <- err
			}
		})
	}
	if !signed {
		ways.Go(func() {
			if awaitSignedInElsewhere(ctx, access) {
				back <- nil
			}
		})
	}
	return <-back
}

// completeWithPastedURL takes what the person brings, until it is right or the sign-in is over.
func completeWithPastedURL(ctx context.Context, access drawbridge.SignInManager, flow drawbridge.PendingSignIn,
	p SignInPrompt, u SignInPrompter) error {
	var wrong error
	for {
		text, err := u.AskRedirectURL(ctx, wrong)
		if err != nil {
			return ErrSignInCancelled
		}
		if strings.TrimSpace(text) == "" {
			wrong = nil
			continue
		}
		if wrong = flow.CompleteWithURL(ctx, text); wrong == nil {
			return nil
		}
		if now, err := access.Status(); err != nil || now.URL != p.URL {
			return wrong // its state is spent
		}
	}
}

// awaitSignedInElsewhere waits until another process has ended the sign-in; false where ctx ended first.
func awaitSignedInElsewhere(ctx context.Context, access drawbridge.SignInManager) bool {
	tick := time.NewTicker(signInPollInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
		if now, err := access.Status(); err == nil && now.SignedIn {
			return true
		}
	}
}

// A SignOutResult is what became of a sign-out.
type SignOutResult struct {
	Server drawbridge.ServerID `json:"server"`
	// WasSignedIn says whether there was anything to sign out of.
	WasSignedIn bool `json:"was_signed_in"`
	// Revoked says that the issuer takes the tokens no more; Why says why it may.
	Revoked bool   `json:"revoked"`
	Why     string `json:"why,omitempty"`
}

// String gives one line for a person.
func (p SignOutResult) String() string {
	if !p.WasSignedIn {
		return fmt.Sprintf("Nobody is signed in at %q.", p.Server)
	}
	return fmt.Sprintf("✓ Signed out of %q", p.Server)
}

// SignOut removes what is kept of a server's sign-in, and has it revoked; that nobody is signed in is no error. The
// server may be in any state. The error is a Mistake for a name that is not configured, else says why nothing was
// removed.
func (r *Service) SignOut(ctx context.Context, roll ServerList, id drawbridge.ServerID,
	p SignInProvider) (SignOutResult, error) {
	if _, ok := roll.Lookup(id); !ok {
		return SignOutResult{}, roll.notFoundError(id)
	}
	access, err := p.ServerSignIn(id)
	if err != nil {
		return SignOutResult{}, err
	}
	why, err := access.SignOut(ctx)
	switch {
	case errors.Is(err, gateway.ErrNotSignedIn):
		return SignOutResult{Server: id}, nil
	case err != nil:
		return SignOutResult{}, err
	}
	out := SignOutResult{Server: id, WasSignedIn: true, Revoked: why == nil}
	if why != nil {
		out.Why = why.Error()
	}
	return out, nil
}
