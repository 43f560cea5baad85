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
// The request was not executed. The connection has ended; a new connection must start with initialize.
var ErrSessionExpired = errors.New("session expired")

var _ CodedError = (*HTTPStatusError)(nil)

// An HTTPStatusError reports that the server answered with an HTTP error status and without a JSON-RPC response.
// errors.Is reports it as ErrLost if the server may have executed the request.
type HTTPStatusError struct {
	// Code is the status code, such as 401.
	Code int
	// Body is the beginning of the body, at most 4 KiB. The server determines its content.
	Body []byte
	// Challenge is the WWW-Authenticate header; empty if there is none.
	Challenge string
	// RetryAfter is how long to wait before the next request; 0 if the server does not specify it.
	RetryAfter time.Duration
}

// Error returns the code and the text of the status.
func (e *HTTPStatusError) Error() string {
	return fmt.Sprintf("status %d %s", e.Code, http.StatusText(e.Code))
}

// Is reports whether target is ErrLost and the server failed while it processed the request.
func (e *HTTPStatusError) Is(target error) bool {
	return target == ErrLost && e.Code >= 500 && e.Code != http.StatusNotImplemented &&
		e.Code != http.StatusServiceUnavailable
}

// FaultCode returns the fault code that corresponds to the status.
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

// An unsentError is an error for which errors.Is reports ErrClosed, although its text does not mention it.
type unsentError struct{ error }

func (e unsentError) Is(target error) bool { return target == ErrClosed }
func (e unsentError) Unwrap() error        { return e.error }

// A refusedMessageError is an error for which errors.Is reports ErrRefused, although its text does not mention it.
type refusedMessageError struct{ error }

func (e refusedMessageError) Is(target error) bool { return target == ErrRefused }
func (e refusedMessageError) Unwrap() error        { return e.error }

// wrapLost returns an error that wraps ErrLost, for a request that was sent and has no response because of cause. If
// cause wraps ErrClosed, the result contains only its text and does not wrap it. Otherwise a failed attempt to resume
// the response would look like a request that was not sent.
func wrapLost(cause error) error {
	if errors.Is(cause, ErrClosed) {
		cause = errors.New(cause.Error())
	}
	return fmt.Errorf("%w: %w", ErrLost, cause)
}

// classifyHTTPError converts an error of http.Client.Do. The result wraps ErrRedirectRefused for a refused redirect.
// For any other error, errors.Is reports ErrClosed if the request was not sent, otherwise ErrLost.
func classifyHTTPError(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // the outer error contains the URL, which may contain a secret
	}
	switch {
	case errors.Is(err, ErrClosed), errors.Is(err, ErrRedirectRefused):
		return err
	case failedBeforeSend(err):
		return unsentError{err}
	}
	return wrapLost(err)
}

// failedBeforeSend reports whether err occurred before any byte of a request was sent.
func failedBeforeSend(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		return true
	}
	_, badCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, refused := errors.AsType[*safehttp.RefusedError](err)
	return badCertificate || refused || errors.Is(err, http.ErrSchemeMismatch)
}

// sleepContext waits until d has passed or ctx ends. It reports whether ctx has not ended.
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

// IsServerResponse reports whether err is an error response or an HTTP status of the server, which means that the
// server can be reached.
func IsServerResponse(err error) bool {
	if _, ok := errors.AsType[*ResponseError](err); ok {
		return true
	}
	_, ok := errors.AsType[*HTTPStatusError](err)
	return ok
}
