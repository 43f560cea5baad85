package oauth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// ErrNotSignedIn is returned by SignOut if no sign-in is stored.
var ErrNotSignedIn = errors.New("not signed in")

// A SignInRequiredError is the error of a request that fails until a person has signed in or has changed the server's
// configuration.
type SignInRequiredError struct {
	Server drawbridge.ServerID
	// URL is the address to sign in at. It is empty if no sign-in could be prepared; Err is then the cause.
	URL string
	// Elsewhere lists the endpoints of the sign-in at URL whose origin differs from the issuer's (see
	// authServer.elsewhere).
	Elsewhere string
	// Scopes are the scopes that a response of the server with status 403 requires. They are empty if the server
	// refused the token itself, or received no token.
	Scopes []string
	// Err is the reason why the stored token cannot be used, or why no sign-in could be prepared; it may be nil.
	Err error
	// MissingCredential is set if the server uses the credential of another server (see Server.Borrowed), and that
	// credential has no valid sign-in. It is then the name of the credential.
	MissingCredential string
	// usedToken is the hash of the token that was refused.
	usedToken tokenHash
}

// A tokenHash identifies a token without revealing it.
type tokenHash [sha256.Size]byte

func hashToken(token string) tokenHash { return sha256.Sum256([]byte(token)) }

// Error returns a description of the missing sign-in. It omits the address, which must not be logged.
func (n *SignInRequiredError) Error() string {
	if n.MissingCredential != "" {
		text := fmt.Sprintf("the credential %q, named in \"auth\", has no valid sign-in", n.MissingCredential)
		if n.Err != nil {
			text += ": " + n.Err.Error()
		}
		return text
	}
	if !n.CanSignIn() && len(n.Scopes) == 0 && n.Err != nil {
		return "the server requires authentication, and no way to sign in was found: " + n.Err.Error()
	}
	text := "sign-in needed"
	if len(n.Scopes) > 0 {
		text += " for more rights (" + printable(strings.Join(n.Scopes, " ")) + ")"
	}
	if n.Err != nil {
		text += ": " + n.Err.Error()
	}
	return text
}

// borrowedError returns the error for beginning or ending a sign-in at a server that uses the credential of another
// server.
func borrowedError(s Server) error {
	return userErrorf("server %q only uses the credential %q: sign in and out at the server that it belongs to", s.ID,
		s.CredentialName)
}

// Unwrap returns the cause.
func (n *SignInRequiredError) Unwrap() error { return n.Err }

// FaultCode returns AuthFailure.
func (n *SignInRequiredError) FaultCode() drawbridge.FaultCode { return drawbridge.AuthFailure }

// The steps of a temporaryError.
const (
	stepRenew   = "renew the sign-in"
	stepPrepare = "prepare the sign-in"
)

// IsTemporary reports whether err means that a renewal, or the preparation of a sign-in, has failed for a temporary
// reason. The caller should then not retry with another transport or protocol version, because the retry would fail
// too.
func IsTemporary(err error) bool {
	_, later := errors.AsType[temporaryError](err)
	return later
}

// A temporaryError is a failure to renew or to prepare a sign-in for a temporary reason. The credential may still be
// valid, and a later attempt may succeed.
type temporaryError struct {
	step string
	err  error
}

func (l temporaryError) Error() string { return l.step + ": " + l.err.Error() + l.advice() }

func (l temporaryError) advice() string {
	if l.step == stepRenew {
		return "; it is retried: if it goes on failing, sign in again"
	}
	return "; it is retried"
}

// Unwrap returns the cause.
func (l temporaryError) Unwrap() error { return l.err }

// FaultCode returns Transient.
func (l temporaryError) FaultCode() drawbridge.FaultCode { return drawbridge.Transient }

// An oauthError is the error response of an authorization server.
type oauthError struct {
	status            int
	code, description string
}

func (r *oauthError) Error() string {
	text := printable(r.code)
	if r.description != "" {
		text += ": " + printable(r.description)
	}
	if text == "" {
		text = fmt.Sprintf("status %d", r.status)
	}
	return text
}

// isPermanent reports whether the authorization server would refuse the same request again.
func (r *oauthError) isPermanent() bool {
	switch r.code {
	case "invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
		"invalid_target", "access_denied", "expired_token", "bad_refresh_token":
		return true
	}
	return r.code != "" && r.status < 500 && r.code != "temporarily_unavailable" && r.code != "server_error" &&
		r.code != "slow_down"
}

// withoutURL returns err without the URL that net/http adds, since the URL may contain a secret.
func withoutURL(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}

// isNetworkError reports whether err is a failure of the network connection, such as a refused or an ended connection.
func isNetworkError(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// An unavailableError is the error of an authorization server that is temporarily unavailable.
type unavailableError struct{ error }

func (a unavailableError) Unwrap() error { return a.error }

// asUnavailable wraps a network error in an unavailableError, and returns other errors as they are.
func asUnavailable(err error) error {
	if errors.Is(err, safehttp.ErrNotPublic) || !isNetworkError(err) {
		return err
	}
	return unavailableError{err}
}

// isUnavailableStatus reports whether an HTTP status means that the server is temporarily unavailable.
func isUnavailableStatus(status int) bool {
	return status >= 500 && status != http.StatusNotImplemented || status == http.StatusTooManyRequests ||
		status == http.StatusRequestTimeout
}

// printable returns a text from a server in a form that may be shown to people: on one line, shortened, and without
// control characters.
func printable(s string) string {
	const most = 300
	return safetext.Line(safetext.Truncate(s, most, safetext.Bytes, "…"))
}

// signInError returns err as a sentence for the person who signs in.
func signInError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if asked, ok := errors.AsType[*drawbridge.EndpointsNotAcceptedError](err); ok {
		return asked
	}
	if told, ok := errors.AsType[userError](err); ok {
		return told
	}
	return userError(explainFailure(err))
}

// explainFailure returns the message that tells people why a sign-in failed.
func explainFailure(err error) string {
	got, refused := errors.AsType[*oauthError](err)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "OAuth flow timed out. Please try again."
	case refused && (got.code == "invalid_grant" || got.code == "expired_token"):
		return "OAuth authorization code is invalid or expired. Please try again. (" + got.Error() + ")"
	case refused && (got.status == 401 || got.status == 403 || got.code == "invalid_client" ||
		got.code == "unauthorized_client"):
		return "OAuth authorization failed. Please check your client credentials. (" + got.Error() + ")"
	case isNetworkError(err):
		return "Could not connect to OAuth server. Please check the URLs and your network connection. (" +
			withoutURL(err).Error() + ")"
	}
	return "OAuth authentication failed: " + err.Error()
}

// A userError is an error message for people. signInError returns it unchanged.
type userError string

func (s userError) Error() string { return string(s) }

// userErrorf is fmt.Errorf for messages that are meant for people. The result is not a userError: signInError adds an
// explanation of the wrapped error.
func userErrorf(format string, args ...any) error { return fmt.Errorf(format, args...) }
