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

// A SignInProvider returns the sign-in managers of servers. gateway.SignInManager implements it.
type SignInProvider interface {
	// ServerSignIn returns the object that signs the owner in at a server and out again. The error is the reason why
	// one cannot sign in at this server.
	ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error)
}

// A SignInServers can sign in at servers, and can start them. A running gateway.Gateway implements it.
type SignInServers interface {
	SignInProvider
	Mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error)
}

// A SignInPrompter shows the person how to sign in, and asks the questions of a sign-in.
type SignInPrompter interface {
	// ShowSignInURL shows the person the address of the page at which the person signs in.
	ShowSignInURL(SignInPrompt)
	// ConfirmEndpoints asks the person whether the sign-in may use endpoints on two different origins. asked contains
	// both; see drawbridge.EndpointsNotAcceptedError for the risk. If no person can be asked, it returns asked as the
	// error. Any other error has the same meaning as for AskRedirectURL.
	ConfirmEndpoints(ctx context.Context, asked *drawbridge.EndpointsNotAcceptedError) (bool, error)
	// AskRedirectURL waits until the person enters the address to which the browser was redirected after the sign-in.
	// The person does so if the browser cannot reach this machine. wrong is why the previous address was not accepted;
	// nil for the first address. The error is that of ctx, or an error such as io.EOF if the person cancelled.
	AskRedirectURL(ctx context.Context, wrong error) (string, error)
}

// A SignInPrompt contains the data that a person needs to sign in at a server.
type SignInPrompt struct {
	Server drawbridge.ServerID
	// URL is the http or https address of the page at which the person signs in. For a sign-in on another device, Code
	// is the code that the person enters on this page; otherwise it is empty.
	URL, Code string
	// Issuer is the scheme and host of the authorization server.
	Issuer string
	// Elsewhere names the endpoints of the sign-in whose origin differs from the issuer's origin; empty if there are
	// none.
	Elsewhere string
}

// A SignInRequest contains the parameters of SignIn.
type SignInRequest struct {
	Server drawbridge.ServerID
	// Device requests a sign-in with a code that the person enters in a browser on another device.
	Device bool
	// Reauthenticate requests a sign-in even if the person is already signed in. The old credential is used until the
	// new sign-in succeeds.
	Reauthenticate bool
	// RedirectURL, if set, is the address to which the browser was redirected after an earlier sign-in. Then SignIn
	// only completes that sign-in with the address.
	RedirectURL string
	// AcceptedEndpoints are the two origins of endpoints that the person has already accepted, so that SignIn need not
	// ask.
	AcceptedEndpoints drawbridge.SignInEndpoints
	// Timeout is how long SignIn waits until the person has signed in; 0 means five minutes.
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
	// SignInNotNeeded means that the sign-in could not be begun, and that the server was started without one.
	SignInNotNeeded SignInOutcome = "not wanted"
)

// The texts about sign-ins. Other programs use the same texts, which people may know, so they must not be changed.
const (
	// SignInLaunchingText is shown before a sign-in that the person did not request explicitly.
	SignInLaunchingText = "Server requires OAuth authentication. Launching authorization flow..."
	// SignInNotNeededText is shown for the outcome SignInNotNeeded.
	SignInNotNeededText = "Server connection succeeded without OAuth; reauthorization is not required."
	// ErrSignInCancelled is the error of a sign-in that the person cancelled.
	ErrSignInCancelled = UnavailableError("Sign-in cancelled.")
)

// SignIn signs a person in at a server, which must be startable. It shows the person the page at which to sign in, and
// waits until the sign-in is complete. A person who is already signed in need not sign in again, unless the server
// refuses the credential or v.Reauthenticate is set. The sign-in is completed by the browser, by an address that the
// person enters, or by another process. The error is a text for the person, or the error of ctx. After an error, a
// stored credential is unchanged.
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

// An endpointsError is the error of a sign-in that was not begun because of its endpoints. The person did not accept
// them or could not be asked.
type endpointsError struct{ error }

func (e endpointsError) Unwrap() error { return e.error }

// maxEndpointQuestions is how often one sign-in may ask the person to accept endpoints. A sign-in on another device may
// need two questions: one about the endpoint that issues the code, and one about the page, which the response names.
const maxEndpointQuestions = 2

// beginAcceptedSignIn begins a sign-in. If the sign-in page and the token endpoint have different origins, it asks the
// person to accept both, unless v.AcceptedEndpoints contains them. If the person does not accept them, the error is an
// endpointsError.
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

// errSignInTimeout is the error if the person did not complete the sign-in before the timeout. Package oauth uses the
// same text.
const errSignInTimeout = UnavailableError("OAuth flow timed out. Please try again.")

// signInTimeoutError returns errSignInTimeout if the deadline of ctx has passed, otherwise nil.
func signInTimeoutError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errSignInTimeout
	}
	return nil
}

// diagnoseFailedSignIn returns the result of SignIn if a sign-in could not be begun; why is the reason. It starts the
// server to find out whether the server needs a sign-in. If the server starts without a credential, the outcome is
// SignInNotNeeded. signed reports whether there is a credential; then a successful start does not prove that no sign-in
// is needed, and an error is returned.
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

// signInPollInterval is the time between two checks whether another process has completed the sign-in.
const signInPollInterval = time.Second

// awaitSignIn waits until the sign-in has succeeded or failed. It can be completed in three ways: by the browser, by an
// address that the person enters, or by another process. A sign-in with a code cannot be completed by an address.
// signed reports whether the person was signed in before; then a sign-in by another process is not detected.
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

// completeWithPastedURL asks the person for the address to which the browser was redirected, until an address completes
// the sign-in. It returns an error if the person cancels, or if an address is wrong and the sign-in has ended.
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
	// WasSignedIn reports whether a credential was stored, which was then removed.
	WasSignedIn bool `json:"was_signed_in"`
	// Revoked reports whether the issuer revoked the tokens of the credential. If not, Why is the reason, and the
	// tokens may still be valid although they are not stored any more.
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

// SignOut removes the stored credential for a server, and asks its issuer to revoke the tokens. The server may be in
// any phase. A missing credential is not an error. The error is a UserError for a name that is not configured. Any
// other error means that nothing was removed.
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
