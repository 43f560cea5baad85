package drawbridge

import (
	"context"
	"fmt"
	"time"
)

// A CredentialStatus describes, for people, the stored credential for a server that requires a sign-in. It contains no
// secret.
type CredentialStatus struct {
	Server ServerID `json:"server"`
	// Name is the name the credential is stored under.
	Name string `json:"name"`
	// SignedIn is set if a token is stored. Expires is the time when the token expires, zero if unknown. AutoRenews is
	// set if the token is renewed without a person.
	SignedIn   bool      `json:"signed_in"`
	Expires    time.Time `json:"expires,omitzero"`
	AutoRenews bool      `json:"renews,omitempty"`
	// Issuer is the scheme and host of the token's issuer; Scopes are the rights of the token.
	Issuer string   `json:"issuer,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	// URL is the address where a person continues a sign-in that has begun; empty if none has begun.
	URL string `json:"url,omitempty"`
	// Problem is the reason why a sign-in has ended.
	Problem string `json:"trouble,omitempty"`
}

// A PendingSignIn is a sign-in that waits for a person.
type PendingSignIn interface {
	// SignInAddress returns the address where the person signs in, and the scheme and host of the issuer. code is the
	// text that the person enters there when signing in on another device; it is empty otherwise.
	SignInAddress() (url, code, issuer string)

	// Wait waits until the sign-in has ended. It returns nil if the person signed in, else an error whose text is for
	// the person, or the context's error.
	Wait(ctx context.Context) error

	// CompleteWithURL completes the sign-in with text, the last address in the person's browser after signing in. It is
	// needed if the browser cannot reach this machine. The error is as for Wait.
	CompleteWithURL(ctx context.Context, text string) error

	// Elsewhere returns a text for the person that lists the endpoints of the sign-in whose origin differs from the
	// issuer's: "token endpoint at https://tokens.example.com". It returns "" if there are none.
	Elsewhere() string
}

// SignInEndpoints are the origins (scheme and host) of the two endpoints of a sign-in. Page is the origin of the page
// where the person signs in. Token is the origin of the endpoint that exchanges the authorization code for tokens.
type SignInEndpoints struct {
	Page  string `json:"page"`
	Token string `json:"token"`
}

// An EndpointsNotAcceptedError is returned if the sign-in page has another origin than the token endpoint, and the
// owner has not accepted both origins. Without this check a hostile server could name the page of an honest service and
// receive the authorization code at its own token endpoint.
type EndpointsNotAcceptedError struct {
	Server    ServerID
	Endpoints SignInEndpoints
	// Issuer is the scheme and host of the authorization server that named the endpoints.
	Issuer string
}

// Error returns a text with both origins and the command that accepts them.
func (e *EndpointsNotAcceptedError) Error() string {
	return fmt.Sprintf("the page to sign in is at %s, and the result is sent to %s: if both belong to the service, "+
		"run drawbridge mcp auth %s --accept-endpoints %s,%s", e.Endpoints.Page, e.Endpoints.Token, e.Server,
		e.Endpoints.Page, e.Endpoints.Token)
}

// A SignInManager signs one principal in to one server.
type SignInManager interface {
	// BeginSignIn begins a sign-in: in a browser on this machine, or, if device is set, on another device. The
	// resulting credential is stored for all processes. The error is the reason why the sign-in cannot begin. It is an
	// *EndpointsNotAcceptedError if the owner must accept the endpoints first.
	BeginSignIn(ctx context.Context, device bool) (PendingSignIn, error)

	// AcceptEndpoints stores that the owner accepts sign-ins at exactly these two origins. SignOut deletes the
	// acceptance.
	AcceptEndpoints(ctx context.Context, e SignInEndpoints) error

	// CompleteWithURL completes a sign-in that this or another process began. text is the last address in the person's
	// browser after signing in.
	CompleteWithURL(ctx context.Context, text string) error

	// SignOut removes the stored credential, and revokes it if its issuer supports that. why is the error of a failed
	// revocation. err reports that the principal was not signed in, or that the credential was not removed.
	SignOut(ctx context.Context) (why, err error)

	// Status returns the status of the credential without asking the server.
	Status() (CredentialStatus, error)
}
