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

// A SignInProvider returns the sign-in of a server. gateway.SignInManager implements it.
type SignInProvider interface {
	// ServerSignIn returns the sign-in of a server. The error is the reason why the server has no sign-in.
	ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error)
}

// SignInServers signs in at servers and starts them. A running gateway.Gateway implements it.
type SignInServers interface {
	SignInProvider
	Mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error)
}

// A SignInPrompter guides a person through a sign-in.
type SignInPrompter interface {
	// ShowSignInURL shows the address at which to sign in.
	ShowSignInURL(SignInPrompt)
	// ConfirmEndpoints asks the person whether a sign-in may use the two origins in asked. If no person can be asked, it
	// returns asked as the error. Other errors are those of AskRedirectURL.
	ConfirmEndpoints(ctx context.Context, asked *drawbridge.EndpointsNotAcceptedError) (bool, error)
	// AskRedirectURL waits until the person enters the address to which the browser was redirected. wrong is the defect of
	// the previous address; nil the first time. The error is that of ctx, or an error such as io.EOF if the person
	// cancelled.
	AskRedirectURL(ctx context.Context, wrong error) (string, error)
}

// A SignInPrompt has the data that a person needs to sign in.
type SignInPrompt struct {
	Server drawbridge.ServerID
	// URL is an http or https address. For a sign-in on another device, Code is the code to enter at this address.
	URL, Code string
	// Issuer is the scheme and host of the authorization server.
	Issuer string
	// Elsewhere names the endpoints whose origin differs from the issuer's origin.
	Elsewhere string
}

// A SignInRequest has the parameters of a sign-in.
type SignInRequest struct {
	Server drawbridge.ServerID
	// Device requests a sign-in on another device.
	Device bool
	// Reauthenticate signs in again. The old credential remains valid until the new sign-in succeeds.
	Reauthenticate bool
	// RedirectURL completes a sign-in that was begun before. It is the address to which the browser was redirected.
	RedirectURL string
	// AcceptedEndpoints are two origins that the person has already accepted.
	AcceptedEndpoints drawbridge.SignInEndpoints
	// Timeout is the time that the person has to sign in; 0 means five minutes.
	Timeout time.Duration
}

// defaultSignInTimeout is the time that a person has to sign in.
const defaultSignInTimeout = 5 * time.Minute

// A SignInOutcome is the result of a sign-in.
type SignInOutcome string

// The outcomes of a sign-in.
const (
	SignedIn        SignInOutcome = "signed in"
	AlreadySignedIn SignInOutcome = "already signed in"
	// SignInNotNeeded means that the server does not require authentication.
	SignInNotNeeded SignInOutcome = "not wanted"
)

// The texts about sign-ins. People may know them from other programs, so they do not change.
const (
	// SignInLaunchingText is the text before a sign-in that the person did not request explicitly.
	SignInLaunchingText = "Server requires OAuth authentication. Launching authorization flow..."
	// SignInNotNeededText is the text for the outcome SignInNotNeeded.
	SignInNotNeededText = "Server connection succeeded without OAuth; reauthorization is not required."
	// ErrSignInCancelled is the error of a sign-in that the person cancelled.
	ErrSignInCancelled = UnavailableError("Sign-in cancelled.")
)

// SignIn asks a person to sign in at a server that can be started, and waits until the sign-in is complete. The person
// may sign in here, in another process, or by pasting an address. The error is a text for the person, or the error of
// ctx. After an error, a stored credential is unchanged.
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

// An endpointsError is the error of a sign-in if the person did not accept its endpoints.
type endpointsError struct{ error }

func (e endpointsError) Unwrap() error { return e.error }

// maxEndpointQuestions is how often a person is asked about endpoints. On a device, the page becomes known after the
// endpoint.
const maxEndpointQuestions = 2

// beginAcceptedSignIn begins a sign-in. If the page and the token endpoint have different origins, it asks the person
// to accept both origins, unless the request already accepts them.
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

// errSignInTimeout is the error for a person who did not complete the sign-in in time. The text is the same as in
// package oauth.
const errSignInTimeout = UnavailableError("OAuth flow timed out. Please try again.")

// signInTimeoutError returns errSignInTimeout if the deadline of ctx has passed, otherwise nil.
func signInTimeoutError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errSignInTimeout
	}
	return nil
}

// diagnoseFailedSignIn starts a server whose sign-in could not be begun, to find out whether the server needs a
// sign-in. If the person is already signed in, a successful start does not prove that no sign-in is needed.
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

// signInPollInterval is the interval of the checks whether another process has completed a sign-in.
const signInPollInterval = time.Second

// awaitSignIn waits until the sign-in is completed in one of three ways: in the browser, by a pasted address, or in
// another process.
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

// completeWithPastedURL asks the person for addresses until an address completes the sign-in or the sign-in ends.
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
			return wrong // the pending sign-in has ended
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
	// Revoked reports whether the issuer revoked the tokens. Otherwise Why is the reason, and the tokens may still be
	// valid.
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
// error. The error is a UserError for a name that is not configured. Any other error means that nothing was removed.
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
