package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/egress"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
)

// ErrSession is the error of a request that the server refused because it does not know the session any more. The request
// was not carried out; the connection has ended, and another one begins with initialize.
var ErrSession = errors.New("session expired")

var _ link.Coded = (*StatusError)(nil)

// A StatusError is an HTTP status that is no success, without a JSON-RPC answer in its body. It is link.ErrLost for the
// statuses that leave open whether the request was carried out.
type StatusError struct {
	// Code is the status: 401.
	Code int
	// Body is the beginning of the body, for people: at most 4 KiB, and whatever the server likes to say.
	Body []byte
	// Challenge is the WWW-Authenticate header; empty where there is none.
	Challenge string
	// RetryAfter is how long the server wants to be left alone; 0 where it does not say.
	RetryAfter time.Duration
}

// Error gives code and text of the status.
func (e *StatusError) Error() string {
	return fmt.Sprintf("status %d %s", e.Code, http.StatusText(e.Code))
}

// Is says that the statuses of a server that broke down in the middle are link.ErrLost.
func (e *StatusError) Is(target error) bool {
	return target == link.ErrLost && e.Code >= 500 && e.Code != http.StatusNotImplemented && e.Code != http.StatusServiceUnavailable
}

// FaultCode sorts the status.
func (e *StatusError) FaultCode() drawbridge.FaultCode {
	switch e.Code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return drawbridge.AuthFailure
	case http.StatusTooManyRequests:
		return drawbridge.RateLimited
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return drawbridge.NotFound
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return drawbridge.Transient
	}
	return drawbridge.ServerError
}

func statusError(resp *http.Response, body []byte) *StatusError {
	const most = 4 << 10
	e := &StatusError{Code: resp.StatusCode, Body: body[:min(len(body), most)], Challenge: resp.Header.Get("Www-Authenticate")}
	if s, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}

// An unsent error is a link.ErrClosed that does not say so in its text.
type unsent struct{ error }

func (e unsent) Is(target error) bool { return target == link.ErrClosed }
func (e unsent) Unwrap() error        { return e.error }

// An alone error is a link.ErrRefused that does not say so in its text.
type alone struct{ error }

func (e alone) Is(target error) bool { return target == link.ErrRefused }
func (e alone) Unwrap() error        { return e.error }

// lost is the error for a request that was sent and has no answer because of cause. It is never link.ErrClosed, even
// where an attempt to resume the answer was.
func lost(cause error) error {
	if errors.Is(cause, link.ErrClosed) {
		cause = errors.New(cause.Error())
	}
	return fmt.Errorf("%w: %w", link.ErrLost, cause)
}

// exchangeError is what an HTTP exchange without an answer comes to: an unsent error, a refused redirect, or a lost one.
func exchangeError(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // the whole repeats the URL, which may hold a secret
	}
	switch {
	case errors.Is(err, link.ErrClosed), errors.Is(err, ErrRedirect):
		return err
	case neverSent(err):
		return unsent{err}
	}
	return lost(err)
}

// neverSent says whether err is from before the first byte of a request: no connection came about.
func neverSent(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		return true
	}
	_, badCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, refused := errors.AsType[*egress.RefusedError](err)
	return badCertificate || refused || errors.Is(err, http.ErrSchemeMismatch)
}

// pause waits for d, or less when ctx ends; it says whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Answered says whether a server said no, by an answer or a status, and so is there to be asked otherwise.
func Answered(err error) bool {
	if _, ok := errors.AsType[*link.ReplyError](err); ok {
		return true
	}
	_, ok := errors.AsType[*StatusError](err)
	return ok
}
