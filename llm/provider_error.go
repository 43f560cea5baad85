package llm

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A ProviderError is a provider's error response.
type ProviderError struct {
	// Status is the HTTP status.
	Status int
	// Code is the provider's error code, such as "insufficient_quota"; empty if it sent none.
	Code string
	// Delay is the pause that the provider asks for; 0 if it does not ask for one.
	Delay time.Duration
	// mayRetry reports whether the provider says that the request may be sent again; nil if it does not say.
	mayRetry *bool
	// body is the start of the response body. It is never shown as it is.
	body []byte
}

var _ index.RetryAfterError = (*ProviderError)(nil)

// Error returns a description without free text of the provider, which may contain the key.
func (e *ProviderError) Error() string {
	why := "the provider answers"
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		why = "the key is refused"
	case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed:
		why = "the model or the address does not exist"
	case e.Status == http.StatusTooManyRequests:
		why = "too many requests, or no credit left"
	case e.Status == http.StatusPaymentRequired:
		why = "no credit left"
	case e.isAboutText():
		why = "the request is refused"
	case e.Status >= 300 && e.Status < 400:
		why = "the address leads elsewhere, and is not followed"
	}
	if e.Code != "" {
		return fmt.Sprintf("%s (%d, %s)", why, e.Status, e.Code)
	}
	return fmt.Sprintf("%s (%d)", why, e.Status)
}

// RetryAfter returns Delay.
func (e *ProviderError) RetryAfter() time.Duration { return e.Delay }

// Is reports whether target is index.ErrTextRefused and the provider refused the texts, with status 400, 413 or 422.
func (e *ProviderError) Is(target error) bool {
	return target == index.ErrTextRefused && e.isAboutText()
}

func (e *ProviderError) isAboutText() bool {
	return e.Status == http.StatusBadRequest || e.Status == http.StatusRequestEntityTooLarge ||
		e.Status == http.StatusUnprocessableEntity
}

// The maximum sizes of an error response's body and of an error code, in bytes.
const (
	maxErrorBody = 64 << 10
	maxErrorCode = 48
)

// readErrorResponse returns the error of a response whose status is not 200.
func readErrorResponse(resp *http.Response) *ProviderError {
	e := &ProviderError{Status: resp.StatusCode, Delay: parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())}
	if ms, err := strconv.ParseFloat(resp.Header.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		e.Delay = time.Duration(ms * float64(time.Millisecond))
	}
	if may, err := strconv.ParseBool(resp.Header.Get("X-Should-Retry")); err == nil {
		e.mayRetry = &may
	}
	e.body, _ = io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	e.Code = providerErrorCode(e.body)
	if d := retryInfoDelay(e.body); e.Delay == 0 && d > 0 {
		e.Delay = d
	}
	return e
}

// retryInfoDelay returns the pause that an error of a Google API asks for (google.rpc.RetryInfo), or 0.
func retryInfoDelay(raw []byte) time.Duration {
	for detail := range rawjson.Elements(errorObject(raw, "details")) {
		if !strings.HasSuffix(rawjson.GetString(detail, "@type"), "google.rpc.RetryInfo") {
			continue
		}
		d, err := time.ParseDuration(rawjson.GetString(detail, "retryDelay"))
		if err == nil && d > 0 {
			return d
		}
	}
	return 0
}

// errorObject returns a member of the object "error" in a response. Some endpoints send the response as an array of
// one.
func errorObject(raw []byte, path ...string) json.RawMessage {
	for first := range rawjson.Elements(raw) {
		raw = first
		break
	}
	return rawjson.Get(raw, append([]string{"error"}, path...)...)
}

// parseRetryAfter parses a Retry-After header in seconds or as a date (RFC 9110, section 10.2.3). It returns 0 if the
// header is invalid.
func parseRetryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// providerErrorCode returns the provider's error code, or "". OpenAI and vLLM send it as code or type, Gemini as
// status, text-embeddings-inference as error_type.
func providerErrorCode(raw []byte) string {
	var said struct {
		Error json.RawMessage `json:"error"`
		Type  any             `json:"error_type"`
	}
	if json.Unmarshal(raw, &said) != nil {
		return ""
	}
	var inner struct{ Code, Status, Type any }
	if json.Unmarshal(said.Error, &inner) != nil {
		return firstCode(said.Type)
	}
	return firstCode(inner.Code, inner.Status, inner.Type)
}

// firstCode returns the first value that is a string of only letters and underscores, or "" if there is none. Other
// values are skipped, because an API key, which has other characters, must not appear in an error.
func firstCode(all ...any) string {
next:
	for _, v := range all {
		s, _ := v.(string)
		if s == "" || len(s) > maxErrorCode {
			continue
		}
		for _, r := range s {
			if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
				continue next
			}
		}
		return s
	}
	return ""
}

var (
	errUnreachable = errors.New("the provider cannot be reached")
	errTimeout     = errors.New("the provider does not answer in time")
	errCertificate = errors.New("the provider's certificate is not to be trusted")
)

// connectionError returns the reason why there is no response. Errors of net/http may contain sent or received data.
// Therefore, only the error of opening the connection is included in the result.
func connectionError(err error) error {
	dial, dialled := errors.AsType[*net.OpError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), os.IsTimeout(err):
		return errTimeout
	case dialled:
		return fmt.Errorf("%w: %v", errUnreachable, dial)
	case untrusted:
		return errCertificate
	}
	return errUnreachable
}
