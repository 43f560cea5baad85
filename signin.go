package drawbridge

import (
	"context"
	"time"
)

// A CredentialStatus is how we stand with a server that wants to know who asks, for people. There is no secret in it.
type CredentialStatus struct {
	Server ServerID `json:"server"`
	// Name is what it is kept under.
	Name string `json:"name"`
	// SignedIn says that there is a token; Expires is when it ends, zero where nobody knows; Renews that it renews
	// itself.
	SignedIn   bool      `json:"signed_in"`
	Expires    time.Time `json:"expires,omitzero"`
	AutoRenews bool      `json:"renews,omitempty"`
	// Issuer is who gave it, scheme and host; Scopes are the rights that it has.
	Issuer string   `json:"issuer,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	// URL is where a sign-in that was begun goes on; empty where none was.
	URL string `json:"url,omitempty"`
	// Problem says why nobody is signed in any more.
	Problem string `json:"trouble,omitempty"`
}

// A PendingSignIn is a sign-in that waits for a person.
type PendingSignIn interface {
	// SignInAddress gives the address where the person signs in, what they enter there where they do so on another
	// device, else nothing, and whom they sign in with: scheme and host.
	SignInAddress() (url, code, issuer string)

	// Wait waits until the person has signed in, or not: the error is a sentence for them, or the context's.
	Wait(ctx context.Context) error

	// CompleteWithURL takes the address that the browser ended at, where that could not reach us. The error is as for
	// Wait.
	CompleteWithURL(ctx context.Context, text string) error
}

// An SignInManager is how one principal comes to be let in by a server.
type SignInManager interface {
	// BeginSignIn begins a sign-in: in a browser that comes back to this machine, or on another device. What it comes
	// to is kept for every process of ours. The error says what kept it from being begun.
	BeginSignIn(ctx context.Context, device bool) (PendingSignIn, error)

	// CompleteWithURL ends a sign-in that was begun by this process or another with the address that the browser ended
	// at.
	CompleteWithURL(ctx context.Context, text string) error

	// SignOut removes what is kept, and revokes it where its issuer lets it; why says why not, nil where it was. The
	// error is for nobody signed in, and for what could not be removed.
	SignOut(ctx context.Context) (why, err error)

	// Status says how we stand with the server, without asking it.
	Status() (CredentialStatus, error)
}
