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
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// An ProviderError is what a provider answered in the place of what was asked for.
type ProviderError struct {
	// Status is the HTTP status.
	Status int
	// Code is the provider's own word for what is wrong, such as "insufficient_quota"; empty where it has none.
	Code string
	// Delay is how long the provider wants us to wait; 0 where it does not say.
	Delay time.Duration
}

var _ index.RetryAfterError = (*ProviderError)(nil)

// Error says what is wrong, and nothing that a provider wrote in words of its own: some repeat the key.
func (e *ProviderError) Error() string {
	why := "the provider answers"
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		why = "the key is refused"
	case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed:
		why = "there is no such model, or no such address"
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

// RetryAfter is After.
func (e *ProviderError) RetryAfter() time.Duration { return e.Delay }

// Is says of an answer about the texts that it is one.
func (e *ProviderError) Is(target error) bool {
	return target == index.ErrTextRefused && e.isAboutText()
}

func (e *ProviderError) isAboutText() bool {
	return e.Status == http.StatusBadRequest || e.Status == http.StatusRequestEntityTooLarge ||
		e.Status == http.StatusUnprocessableEntity
}

// The bounds of what is read of an answer that says what is wrong: the answer, a word of it.
const (
	maxErrorBody = 64 << 10
	maxErrorCode = 48
)

// readErrorResponse reads an answer that is not the one that was wanted.
func readErrorResponse(resp *http.Response) *ProviderError {
	e := &ProviderError{Status: resp.StatusCode, Delay: parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())}
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	e.Code = providerErrorCode(raw)
	return e
}

// parseRetryAfter reads a time in seconds or as a date (RFC 9110, section 10.2.3).
func parseRetryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// providerErrorCode finds the provider's word for what is wrong: ProviderOpenAI and vLLM have it as code or type,
// Gemini as status, RerankTEI as error_type.
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

// firstCode gives the first of the values that is a word: letters and underscores, which no key consists of.
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

// connectionError says why there is no answer. Errors of net/http may repeat what was sent or answered: of them only
// those pass that are about the way there.
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
