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

// A SignInProvider returns the sign-in of a server; a gateway.SignInManager is one.
type SignInProvider interface {
	// ServerSignIn returns the sign-in of a server. The error is the reason why the server has none.
	ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error)
}

// SignInServers signs in at servers and mounts them; a running gateway.Gateway does.
type SignInServers interface {
	SignInProvider
	Mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error)
}

// A SignInPrompter guides a person through a sign-in.
type SignInPrompter interface {
	// ShowSignInURL shows where to sign in.
	ShowSignInURL(SignInPrompt)
	// ConfirmEndpoints asks whether a sign-in may lead to the two origins in asked. The error is asked itself if no
	// person can be asked, else as for AskRedirectURL.
	ConfirmEndpoints(ctx context.Context, asked *drawbridge.EndpointsNotAcceptedError) (bool, error)
	// AskRedirectURL waits for the address that the person's browser ended at. Wrong is the defect of the previous
	// address; nil the first time. The error is ctx's, or io.EOF or similar if the person stopped.
	AskRedirectURL(ctx context.Context, wrong error) (string, error)
}

// A SignInPrompt tells a person where to sign in.
type SignInPrompt struct {
	Server drawbridge.ServerID
	// URL is an http or https address. Code is the code to enter there, for a sign-in on another device.
	URL, Code string
	// Issuer is the scheme and host of the authorization server.
	Issuer string
	// Elsewhere names the endpoints that are on another origin than the issuer's.
	Elsewhere string
}

// A SignInRequest asks for a sign-in.
type SignInRequest struct {
	Server drawbridge.ServerID
	// Device requests a sign-in on another device.
	Device bool
	// Reauthenticate signs in again; the old credential stays until the new sign-in succeeds.
	Reauthenticate bool
	// RedirectURL completes a sign-in that was begun before: it is the address that the browser ended at.
	RedirectURL string
	// AcceptedEndpoints are two origins that the person accepts beforehand.
	AcceptedEndpoints drawbridge.SignInEndpoints
	// Timeout is how long the person may take; 0 is five minutes.
	Timeout time.Duration
}

// defaultSignInTimeout is how long a person may take to sign in (seed 001: the whole flow is bounded by five minutes).
const defaultSignInTimeout = 5 * time.Minute

// A SignInOutcome is the result of a sign-in.
type SignInOutcome string

// The outcomes.
const (
	SignedIn        SignInOutcome = "signed in"
	AlreadySignedIn SignInOutcome = "already signed in"
	// SignInNotNeeded is for a server that requires no authentication.
	SignInNotNeeded SignInOutcome = "not wanted"
)

// The sentences of sign-ins, as people know them (seed 001).
const (
	// SignInLaunchingText introduces a sign-in that the person did not request by name.
	SignInLaunchingText = "Server requires OAuth authentication. Launching authorization flow..."
	// SignInNotNeededText is the text for the outcome SignInNotNeeded.
	SignInNotNeededText = "Server connection succeeded without OAuth; reauthorization is not required."
	// ErrSignInCancelled is the error of a sign-in that the person stopped.
	ErrSignInCancelled = UnavailableError("Sign-in cancelled.")
)

// SignIn asks a person to sign in at a server that may be started, and waits until they have: here, in another
// process, or by pasting an address. The error is a sentence for them, or the context's. A stored credential stays
// after an error.
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
		if _, err := s.Mount(ctx, v.Server); !IsAuthFailure(err) {
			return AlreadySignedIn, nil
		}
		if before, err = access.Status(); err != nil {
			return "", err
		}
	}
	limit, cancel := context.WithTimeout(ctx, cmp.Or(v.Timeout, defaultSignInTimeout))
	defer cancel()
	flow, err := beginAcceptedSignIn(limit, access, v, u)
	if told, ok := errors.AsType[endpointsError](err); ok {
		return "", cmp.Or(signInTimeoutError(limit), told.error)
	}
	if err != nil {
		return r.diagnoseFailedSignIn(ctx, s, v, before.SignedIn, cmp.Or(signInTimeoutError(limit), err))
	}
	p := SignInPrompt{Server: v.Server}
	p.URL, p.Code, p.Issuer = flow.SignInAddress()
	p.Elsewhere = flow.Elsewhere()
	u.ShowSignInURL(p)
	if err := awaitSignIn(limit, access, flow, p, u, before.SignedIn); err != nil {
		return "", err
	}
	return SignedIn, nil
}

// An endpointsError is the error of a sign-in whose endpoints were not accepted.
type endpointsError struct{ error }

func (e endpointsError) Unwrap() error { return e.error }

// maxEndpointQuestions is how often a person is asked about endpoints: a device's page is known after its endpoint.
const maxEndpointQuestions = 2

// beginAcceptedSignIn begins a sign-in. If its page and its token endpoint are on two origins, it asks the person
// whether to accept both, unless the request already does.
func beginAcceptedSignIn(ctx context.Context, access drawbridge.SignInManager, v SignInRequest,
	u SignInPrompter) (drawbridge.PendingSignIn, error) {
	for questions := 0; ; questions++ {
		flow, err := access.BeginSignIn(ctx, v.Device)
		asked, ok := errors.AsType[*drawbridge.EndpointsNotAcceptedError](err)
		switch {
		case !ok:
			return flow, err
		case questions == maxEndpointQuestions:
			return nil, endpointsError{asked}
		}
		if asked.Endpoints != v.AcceptedEndpoints {
			yes, err := u.ConfirmEndpoints(ctx, asked)
			if err != nil {
				return nil, endpointsError{err}
			}
			if !yes {
				return nil, endpointsError{ErrSignInCancelled}
			}
		}
		if err := access.AcceptEndpoints(ctx, asked.Endpoints); err != nil {
			return nil, endpointsError{err}
		}
	}
}

// errSignInTimeout is as package signin has it (seed 001).
const errSignInTimeout = UnavailableError("OAuth flow timed out. Please try again.")

// signInTimeoutError returns the error for a person whose time ran out; nil before.
func signInTimeoutError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errSignInTimeout
	}
	return nil
}

// diagnoseFailedSignIn mounts a server whose sign-in could not be begun, to find out whether it needs one. For a
// person who is signed in, a successful mount does not prove that.
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
	case err != nil && !IsAuthFailure(err):
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

// signInPollInterval is the interval of checks whether another process has completed a sign-in.
const signInPollInterval = time.Second

// awaitSignIn waits for the first way in which the sign-in completes.
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

// completeWithPastedURL asks for addresses until one completes the sign-in or the sign-in ends.
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

// awaitSignedInElsewhere waits until another process has completed the sign-in. It returns false if ctx ends first.
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

// A SignOutResult is the result of a sign-out.
type SignOutResult struct {
	Server drawbridge.ServerID `json:"server"`
	// WasSignedIn reports whether a credential existed.
	WasSignedIn bool `json:"was_signed_in"`
	// Revoked reports that the issuer revoked the tokens; otherwise Why is the reason why they may still be valid.
	Revoked bool   `json:"revoked"`
	Why     string `json:"why,omitempty"`
}

// String returns one line for a person.
func (p SignOutResult) String() string {
	if !p.WasSignedIn {
		return fmt.Sprintf("You are not signed in at %q.", p.Server)
	}
	return fmt.Sprintf("✓ Signed out of %q", p.Server)
}

// SignOut revokes and removes the credential of a server, in any state of the server. A missing credential is not an
// error. The error is a UserError for a name that is not configured; any other means that nothing was removed.
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
