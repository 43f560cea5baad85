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

// ErrNotSignedIn is wrapped where there is nothing to sign out of.
var ErrNotSignedIn = errors.New("nobody is signed in")

// A SignInRequiredError says that a person has to sign in before the server answers.
type SignInRequiredError struct {
	Server drawbridge.ServerID
	// URL is where to; empty where a sign-in could not be prepared, of which Err says why.
	URL string
	// Scopes are those that the server wants beyond what it has granted; empty where it granted nothing.
	Scopes []string
	// Err says why what is kept does not do; it may be nil.
	Err error
	// usedToken tells the token that did not do from others.
	usedToken tokenHash
}

// A tokenHash tells a token from others, and does not give it away.
type tokenHash [sha256.Size]byte

func hashToken(token string) tokenHash { return sha256.Sum256([]byte(token)) }

// Error names what is needed, without the address: that is for those who show it.
func (n *SignInRequiredError) Error() string {
	if n.URL == "" && len(n.Scopes) == 0 && n.Err != nil {
		return "the server wants to know who asks, and no way to sign in was found: " + n.Err.Error()
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

// Unwrap gives the reason.
func (n *SignInRequiredError) Unwrap() error { return n.Err }

// FaultCode is AuthFailure.
func (n *SignInRequiredError) FaultCode() drawbridge.FaultCode { return drawbridge.AuthFailure }

// The steps that may go wrong for now.
const (
	stepRenew   = "renew the sign-in"
	stepPrepare = "prepare the sign-in"
)

// IsTemporary says whether an error is about a renewal, or the preparing of a sign-in, that went wrong for now: to ask
// the server in another way would not help.
func IsTemporary(err error) bool {
	_, later := errors.AsType[temporaryError](err)
	return later
}

// A temporaryError is something that went wrong for now: the credential may still be good, or a sign-in be prepared
// later.
type temporaryError struct {
	step string
	err  error
}

func (l temporaryError) Error() string { return l.step + ": " + l.err.Error() + l.advice() }

func (l temporaryError) advice() string {
	if l.step == stepRenew {
		return "; it is tried again, and where that does not help, sign in again"
	}
	return "; it is tried again"
}

// Unwrap gives the reason.
func (l temporaryError) Unwrap() error { return l.err }

// FaultCode is Transient.
func (l temporaryError) FaultCode() drawbridge.FaultCode { return drawbridge.Transient }

// A oauthError is what an authorization server answers in the place of a token.
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

// isPermanent says whether the same request would be refused again: the grant is of no use any more.
func (r *oauthError) isPermanent() bool {
	switch r.code {
	case "invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
		"invalid_target", "access_denied", "expired_token", "bad_refresh_token":
		return true
	}
	return r.code != "" && r.status < 500 && r.code != "temporarily_unavailable" && r.code != "server_error" &&
		r.code != "slow_down"
}

// withoutURL is an error without the address that net/http repeats: there may be a secret in it.
func withoutURL(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}

// isNetworkError says whether an error is of the network's.
func isNetworkError(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// An unavailableError is one of an authorization server that is not there for now.
type unavailableError struct{ error }

func (a unavailableError) Unwrap() error { return a.error }

// asUnavailable makes an unavailableError of one that says so.
func asUnavailable(err error) error {
	if errors.Is(err, safehttp.ErrNotPublic) || !isNetworkError(err) {
		return err
	}
	return unavailableError{err}
}

// isUnavailableStatus says whether a status is one of a server that is not there for now.
func isUnavailableStatus(status int) bool {
	return status >= 500 && status != http.StatusNotImplemented || status == http.StatusTooManyRequests ||
		status == http.StatusRequestTimeout
}

// printable returns a text of a server for people: short, and harmless to a terminal.
func printable(s string) string {
	const most = 300
	return safetext.Line(safetext.Truncate(s, most, safetext.Bytes, "…"))
}

// signInError is an error as a sentence for the person who signed in.
func signInError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if told, ok := errors.AsType[userError](err); ok {
		return told
	}
	return userError(explainFailure(err))
}

// explainFailure says for people what became of a sign-in that went wrong.
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

// A userError is an error that is written for people, as they know it from other programs.
type userError string

func (s userError) Error() string { return string(s) }

// userErrorf makes a sentence with what it is about; %w is as in fmt.Errorf.
func userErrorf(format string, args ...any) error { return fmt.Errorf(format, args...) }
