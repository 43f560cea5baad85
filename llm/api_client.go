package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// defaultTimeout is how long a request may take.
	defaultTimeout = 30 * time.Second
	// maxAttempts is the number of attempts for a request, firstRetryPause the pause after the first, by default.
	maxAttempts     = 3
	firstRetryPause = 100 * time.Millisecond
	// maxRetryPause is the longest wait within one exchange; who is to wait longer is told so.
	maxRetryPause = 20 * time.Second
	// connectTimeout limits the time to connect.
	connectTimeout = 10 * time.Second
)

// An Endpoint is where a model is, and who we are there.
type Endpoint struct {
	// BaseURL is the address up to the path of the interface; empty means the provider's own.
	BaseURL string
	// FindKey finds the key, when it is first needed and again after it was refused; nil is none. Its error is shown
	// to people, and has no secret in it.
	FindKey func(ctx context.Context) (drawbridge.Secret, error)
	// Timeout is how long one request may take; 0 means 30 seconds.
	Timeout time.Duration
	// Transport carries the requests; nil is one of its own.
	Transport http.RoundTripper
}

// A apiClient asks one place.
type apiClient struct {
	http    http.Client
	findKey func(ctx context.Context) (drawbridge.Secret, error)
	timeout time.Duration

	mu  sync.Mutex
	key drawbridge.Secret // empty until it was found
}

// newAPIClient makes what asks the server at an address. A key is not sent where others on the way could read it.
func newAPIClient(a Endpoint, base string) (*apiClient, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, errors.New("the address must be an https:// URL with a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the address must be without user, query and fragment: a key stands in api_key")
	case u.Scheme == "http" && a.FindKey != nil && !isLocalHost(u.Hostname()):
		return nil, errors.New("a key goes over https:// only, but to this machine and its network")
	}
	c := &apiClient{findKey: a.FindKey, timeout: a.Timeout}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	c.http.Transport = a.Transport
	if a.Transport == nil {
		c.http.Transport = &http.Transport{
			Proxy: proxyForTLSOnly, TLSHandshakeTimeout: connectTimeout, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 55 * time.Second, MaxResponseHeaderBytes: 256 << 10,
		}
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// proxyForTLSOnly returns the environment's proxy for requests that TLS hides from it. A request without TLS goes
// directly to its server.
func proxyForTLSOnly(r *http.Request) (*url.URL, error) {
	if r.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// isLocalHost reports whether a host's name is that of this machine or of its network.
func isLocalHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	for _, end := range []string{".localhost", ".local", ".internal", ".home.arpa"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return !strings.Contains(host, ".")
}

// close lets go of connections that wait for another request.
func (c *apiClient) close() error {
	c.http.CloseIdleConnections()
	return nil
}

// apiKey returns the key, fixed or found now.
func (c *apiClient) apiKey(ctx context.Context) (drawbridge.Secret, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.key.IsZero() || c.findKey == nil {
		return c.key, nil
	}
	key, err := c.findKey(ctx)
	if err != nil {
		return drawbridge.Secret{}, fmt.Errorf("find the key: %w", err)
	}
	c.key = key
	return key, nil
}

// forgetKey has the key looked for again.
func (c *apiClient) forgetKey() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.key = drawbridge.Secret{}
}

// An apiRequest is one question to a model.
type apiRequest struct {
	url string
	// addKey puts the key where the provider wants it; nil is a bearer token.
	addKey func(h http.Header, key string)
	body   any
	// maxResponse is the most bytes of the answer.
	maxResponse int64
}

// postJSON asks, and again where that may help and there is time, and reads the answer into a value.
func (c *apiClient) postJSON(ctx context.Context, a apiRequest, into any) error {
	body, err := json.Marshal(a.body)
	if err != nil {
		return errors.New("write the request: a text is not valid Unicode")
	}
	pause := firstRetryPause
	for attempt := 1; ; attempt++ {
		raw, err := c.send(ctx, a, body)
		if err == nil {
			if json.Unmarshal(raw, into) != nil {
				return errors.New("the answer is not understood")
			}
			return nil
		}
		answer, _ := errors.AsType[*ProviderError](err)
		if attempt == maxAttempts || !shouldRetry(ctx, answer, err) {
			return err
		}
		wait := pause
		if answer != nil && answer.Delay > 0 {
			wait = answer.Delay
		}
		if deadline, ok := ctx.Deadline(); wait > maxRetryPause || ok && time.Until(deadline) <= wait {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		pause *= 2
	}
}

// shouldRetry reports whether another attempt may succeed.
func shouldRetry(ctx context.Context, answer *ProviderError, err error) bool {
	if ctx.Err() != nil || errors.Is(err, errCertificate) {
		return false
	}
	if answer == nil {
		return errors.Is(err, errUnreachable)
	}
	return answer.Status == http.StatusTooManyRequests || answer.Status >= 500 &&
		answer.Status != http.StatusNotImplemented
}

// send sends a request and returns the response body.
func (c *apiClient) send(ctx context.Context, a apiRequest, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	key, err := c.apiKey(ctx)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address is wrong")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	switch {
	case key.IsZero():
	case a.addKey != nil:
		a.addKey(r.Header, key.Reveal())
	default:
		r.Header.Set("Authorization", "Bearer "+key.Reveal())
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, connectionError(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
			c.forgetKey()
		}
		return nil, readErrorResponse(resp)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, a.maxResponse+1))
	switch {
	case err != nil:
		return nil, connectionError(err)
	case int64(len(raw)) > a.maxResponse:
		return nil, errors.New("the answer is too long")
	}
	return raw, nil
}
