package drawbridge

import (
	"context"
	"fmt"
	"time"
)

// A CredentialStatus describes, for people, the credential for a server that requires a sign-in. It contains no secret.
type CredentialStatus struct {
	Server ServerID `json:"server"`
	// Name is the name the credential is stored under.
	Name string `json:"name"`
	// SignedIn is set if there is a token. Expires is the end of its validity, zero if unknown. AutoRenews is set if
	// the token is renewed without a person.
	SignedIn   bool      `json:"signed_in"`
	Expires    time.Time `json:"expires,omitzero"`
	AutoRenews bool      `json:"renews,omitempty"`
	// Issuer is the scheme and host of the token's issuer; Scopes are the rights of the token.
	Issuer string   `json:"issuer,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	// URL is the address where a sign-in that has begun continues; empty if none has.
	URL string `json:"url,omitempty"`
	// Problem is the reason why a sign-in has ended.
	Problem string `json:"trouble,omitempty"`
}

// A PendingSignIn is a sign-in that waits for a person.
type PendingSignIn interface {
	// SignInAddress returns the address where the person signs in, and the issuer's scheme and host. The code is the
	// text to enter there when signing in on another device, else empty.
	SignInAddress() (url, code, issuer string)

	// Wait returns when the sign-in has ended: nil if the person signed in, else a sentence for them or the context's
	// error.
	Wait(ctx context.Context) error

	// CompleteWithURL completes the sign-in with the address the browser ended at, for browsers that cannot reach this
	// machine. The error is as for Wait.
	CompleteWithURL(ctx context.Context, text string) error

	// Elsewhere names the endpoints that are on another origin than the issuer's, for the person to see: "token
	// endpoint at https://tokens.example.com". It is empty if there are none.
	Elsewhere() string
}

// SignInEndpoints are two origins, each a scheme and host, that a sign-in leads to: Page is where the person signs in,
// and Token is where the proof of that is sent in exchange for tokens.
type SignInEndpoints struct {
	Page  string `json:"page"`
	Token string `json:"token"`
}

// An EndpointsNotAcceptedError is the error of a sign-in whose page is on another origin than its token endpoint. It
// may begin once the owner has accepted the two, since a hostile server can name the page of an honest service, and
// have the proof of the sign-in sent to itself.
type EndpointsNotAcceptedError struct {
	Server    ServerID
	Endpoints SignInEndpoints
	// Issuer is the scheme and host of the authorization server that named them.
	Issuer string
}

// Error names both origins, and the command that accepts them.
func (e *EndpointsNotAcceptedError) Error() string {
	return fmt.Sprintf("the page to sign in is at %s, and the result is sent to %s: if both belong to the service, "+
		"run drawbridge mcp auth %s --accept-endpoints %s,%s", e.Endpoints.Page, e.Endpoints.Token, e.Server,
		e.Endpoints.Page, e.Endpoints.Token)
}

// A SignInManager signs one principal in at one server.
type SignInManager interface {
	// BeginSignIn begins a sign-in: in a browser that returns to this machine, or on another device. Its outcome is
	// stored for all processes. The error is the reason why it could not begin: an EndpointsNotAcceptedError if the
	// owner must accept its endpoints first.
	BeginSignIn(ctx context.Context, device bool) (PendingSignIn, error)

	// AcceptEndpoints records that the owner accepts sign-ins at exactly these two origins, until the sign-out.
	AcceptEndpoints(ctx context.Context, e SignInEndpoints) error

	// CompleteWithURL completes a sign-in that this or another process began, with the address the browser ended at.
	CompleteWithURL(ctx context.Context, text string) error

	// SignOut removes the stored credential and revokes it if its issuer supports that; why is the reason if the
	// revocation failed. The error reports that the principal was not signed in, or that the credential was not
	// removed.
	SignOut(ctx context.Context) (why, err error)

	// Status returns the status of the credential without asking the server.
	Status() (CredentialStatus, error)
}
