package transport

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
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// ErrSessionExpired is the error of a request that the server refused because it does not know the session any more.
// The request was not carried out; the connection has ended, and another one begins with initialize.
var ErrSessionExpired = errors.New("session expired")

var _ CodedError = (*HTTPStatusError)(nil)

// An HTTPStatusError is an HTTP error status without a JSON-RPC answer. It is ErrLost for statuses that leave open
// whether the request was carried out.
type HTTPStatusError struct {
	// Code is the status: 401.
	Code int
	// Body is the beginning of the body, for people: at most 4 KiB, and whatever the server likes to say.
	Body []byte
	// Challenge is the WWW-Authenticate header; empty where there is none.
	Challenge string
	// RetryAfter is how long to wait before the next request; 0 if the server does not specify it.
	RetryAfter time.Duration
}

// Error returns code and text of the status.
func (e *HTTPStatusError) Error() string {
	return fmt.Sprintf("status %d %s", e.Code, http.StatusText(e.Code))
}

// Is reports ErrLost for a server that failed while it worked on the request.
func (e *HTTPStatusError) Is(target error) bool {
	return target == ErrLost && e.Code >= 500 && e.Code != http.StatusNotImplemented &&
		e.Code != http.StatusServiceUnavailable
}

// FaultCode sorts the status.
func (e *HTTPStatusError) FaultCode() drawbridge.FaultCode {
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

func newHTTPStatusError(resp *http.Response, body []byte) *HTTPStatusError {
	const most = 4 << 10
	e := &HTTPStatusError{Code: resp.StatusCode, Body: body[:min(len(body), most)],
		Challenge: resp.Header.Get("Www-Authenticate")}
	if s, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}

// An unsentError is an ErrClosed whose text does not mention it.
type unsentError struct{ error }

func (e unsentError) Is(target error) bool { return target == ErrClosed }
func (e unsentError) Unwrap() error        { return e.error }

// A refusedMessageError is an ErrRefused whose text does not mention it.
type refusedMessageError struct{ error }

func (e refusedMessageError) Is(target error) bool { return target == ErrRefused }
func (e refusedMessageError) Unwrap() error        { return e.error }

// wrapLost is the error for a request that was sent and has no answer because of cause. It is never ErrClosed, even
// where an attempt to resume the answer was.
func wrapLost(cause error) error {
	if errors.Is(cause, ErrClosed) {
		cause = errors.New(cause.Error())
	}
	return fmt.Errorf("%w: %w", ErrLost, cause)
}

// classifyHTTPError is what an HTTPConn exchange without an answer comes to: an unsent error, a refused redirect, or a
// lost one.
func classifyHTTPError(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // the whole repeats the URL, which may hold a secret
	}
	switch {
	case errors.Is(err, ErrClosed), errors.Is(err, ErrRedirectRefused):
		return err
	case failedBeforeSend(err):
		return unsentError{err}
	}
	return wrapLost(err)
}

// failedBeforeSend reports whether err occurred before the first byte of a request.
func failedBeforeSend(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		return true
	}
	_, badCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, refused := errors.AsType[*safehttp.RefusedError](err)
	return badCertificate || refused || errors.Is(err, http.ErrSchemeMismatch)
}

// sleepContext waits for d or the end of ctx; it reports whether ctx goes on.
func sleepContext(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// IsServerResponse reports whether err is an answer or a status of the server, which therefore can be reached.
func IsServerResponse(err error) bool {
	if _, ok := errors.AsType[*ResponseError](err); ok {
		return true
	}
	_, ok := errors.AsType[*HTTPStatusError](err)
	return ok
}
