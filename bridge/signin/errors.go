package signin

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
	"github.com/drawbridge-mcp/drawbridge/bridge/egress"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// ErrNobody is wrapped where there is nothing to sign out of.
var ErrNobody = errors.New("nobody is signed in")

// A NeededError says that a person has to sign in before the server answers.
type NeededError struct {
	Server drawbridge.ServerID
	// URL is where to; empty where a sign-in could not be prepared, of which Err says why.
	URL string
	// Scopes are those that the server wants beyond what it has granted; empty where it granted nothing.
	Scopes []string
	// Err says why what is kept does not do; it may be nil.
	Err error
	// used tells the token that did not do from others.
	used mark
}

// A mark tells a token from others, and does not give it away.
type mark [sha256.Size]byte

func markOf(token string) mark { return sha256.Sum256([]byte(token)) }

// Error names what is needed, without the address: that is for those who show it.
func (n *NeededError) Error() string {
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
func (n *NeededError) Unwrap() error { return n.Err }

// FaultCode is AuthFailure.
func (n *NeededError) FaultCode() drawbridge.FaultCode { return drawbridge.AuthFailure }

// The steps that may go wrong for now.
const (
	stepRenew   = "renew the sign-in"
	stepPrepare = "prepare the sign-in"
)

// Delayed says whether an error is about a renewal, or the preparing of a sign-in, that went wrong for now: to ask the server in
// another way would not help.
func Delayed(err error) bool {
	_, later := errors.AsType[laterError](err)
	return later
}

// A laterError is something that went wrong for now: the credential may still be good, or a sign-in be prepared later.
type laterError struct {
	step string
	err  error
}

func (l laterError) Error() string { return l.step + ": " + l.err.Error() + l.advice() }

func (l laterError) advice() string {
	if l.step == stepRenew {
		return "; it is tried again, and where that does not help, sign in again"
	}
	return "; it is tried again"
}

// Unwrap gives the reason.
func (l laterError) Unwrap() error { return l.err }

// FaultCode is Transient.
func (l laterError) FaultCode() drawbridge.FaultCode { return drawbridge.Transient }

// A refusal is what an authorization server answers in the place of a token.
type refusal struct {
	status            int
	code, description string
}

func (r *refusal) Error() string {
	text := printable(r.code)
	if r.description != "" {
		text += ": " + printable(r.description)
	}
	if text == "" {
		text = fmt.Sprintf("status %d", r.status)
	}
	return text
}

// final says whether the same request would be refused again: the grant is of no use any more.
func (r *refusal) final() bool {
	switch r.code {
	case "invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "invalid_target", "access_denied", "expired_token", "bad_refresh_token":
		return true
	}
	return r.code != "" && r.status < 500 && r.code != "temporarily_unavailable" && r.code != "server_error" && r.code != "slow_down"
}

// plain is an error without the address that net/http repeats: there may be a secret in it.
func plain(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}

// unreachable says whether an error is of the network's.
func unreachable(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// An awayError is one of an authorization server that is not there for now.
type awayError struct{ error }

func (a awayError) Unwrap() error { return a.error }

// away makes an awayError of one that says so.
func away(err error) error {
	if errors.Is(err, egress.ErrNotPublic) || !unreachable(err) {
		return err
	}
	return awayError{err}
}

// isAway says whether a status is one of a server that is not there for now.
func isAway(status int) bool {
	return status >= 500 && status != http.StatusNotImplemented || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// printable returns a text of a server for people: short, and harmless to a terminal.
func printable(s string) string {
	const most = 300
	return safetext.Line(safetext.Truncate(s, most, safetext.Bytes, "…"))
}

// explained is an error as a sentence for the person who signed in.
func explained(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if told, ok := errors.AsType[sentence](err); ok {
		return told
	}
	return sentence(explain(err))
}

// explain says for people what became of a sign-in that went wrong.
func explain(err error) string {
	got, refused := errors.AsType[*refusal](err)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "OAuth flow timed out. Please try again."
	case refused && (got.code == "invalid_grant" || got.code == "expired_token"):
		return "OAuth authorization code is invalid or expired. Please try again. (" + got.Error() + ")"
	case refused && (got.status == 401 || got.status == 403 || got.code == "invalid_client" || got.code == "unauthorized_client"):
		return "OAuth authorization failed. Please check your client credentials. (" + got.Error() + ")"
	case unreachable(err):
		return "Could not connect to OAuth server. Please check the URLs and your network connection. (" + plain(err).Error() + ")"
	}
	return "OAuth authentication failed: " + err.Error()
}

// A sentence is an error that is written for people, as they know it from other programs.
type sentence string

func (s sentence) Error() string { return string(s) }

// saying makes a sentence with what it is about; %w is as in fmt.Errorf.
func saying(format string, args ...any) error { return fmt.Errorf(format, args...) }
