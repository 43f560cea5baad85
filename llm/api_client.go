package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// defaultTimeout is the default time limit of one request.
	defaultTimeout = 30 * time.Second
	// maxAttempts is the maximum number of attempts for a request. firstRetryPause is the pause after the first
	// attempt, unless the provider asks for another pause. The pause doubles after each attempt.
	maxAttempts     = 3
	firstRetryPause = 100 * time.Millisecond
	// maxRetryPause is the maximum pause before another attempt. If the provider asks for a longer pause, its error is
	// returned.
	maxRetryPause = 20 * time.Second
	// connectTimeout limits the time to connect.
	connectTimeout = 10 * time.Second
)

// An Endpoint is the address of a model, and the credentials there.
type Endpoint struct {
	// BaseURL is the address up to the path of the API; empty means the provider's own address.
	BaseURL string
	// FindKey returns the key. It is called when the key is first needed, and again after the provider refused the key.
	// A nil FindKey means no key. The error of FindKey is shown to people and must not contain a secret.
	FindKey func(ctx context.Context) (drawbridge.Secret, error)
	// Headers are further headers of each request. Their values are secrets, as the key is.
	Headers []HeaderFinder
	// Timeout is the time limit of one request; 0 means 30 seconds.
	Timeout time.Duration
	// Transport sends the requests; nil means a default transport.
	Transport http.RoundTripper
}

// A HeaderFinder is a header whose value is found when it is first needed. The error of Find must not contain a secret.
type HeaderFinder struct {
	Name string
	Find func(ctx context.Context) (drawbridge.Secret, error)
}

// An apiClient sends requests to one server.
type apiClient struct {
	http    http.Client
	findKey func(ctx context.Context) (drawbridge.Secret, error)
	headers []HeaderFinder
	timeout time.Duration

	mu  sync.Mutex
	key drawbridge.Secret // empty until FindKey has returned it
}

// newAPIClient returns a client for the server at an address. It returns an error if the address is invalid, or if the
// key would be sent unencrypted beyond the local network.
func newAPIClient(a Endpoint, base string) (*apiClient, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, errors.New("the address must be an https:// URL with a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the address must be without user, query and fragment: a key stands in api_key")
	case u.Scheme == "http" && (a.FindKey != nil || len(a.Headers) > 0) && !isLocalHost(u.Hostname()):
		return nil, errors.New("a key goes over https:// only, but to this machine and its network")
	}
	c := &apiClient{findKey: a.FindKey, headers: a.Headers, timeout: a.Timeout}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	c.http.Transport = a.Transport
	if a.Transport == nil {
		c.http.Transport = &http.Transport{
			Proxy: proxyForTLSOnly, DialContext: (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: connectTimeout, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 55 * time.Second, MaxResponseHeaderBytes: 256 << 10,
		}
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// proxyForTLSOnly returns the environment's proxy for https requests, whose content the proxy cannot read. Other
// requests go directly to their server.
func proxyForTLSOnly(r *http.Request) (*url.URL, error) {
	if r.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// isLocalHost reports whether a host is this machine or a host of its local network, judging by its name.
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

// close closes idle connections.
func (c *apiClient) close() error {
	c.http.CloseIdleConnections()
	return nil
}

// apiKey returns the stored key, or calls findKey and stores the key.
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

// forgetKey deletes the stored key, so that the next request calls findKey again.
func (c *apiClient) forgetKey() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.key = drawbridge.Secret{}
}

// An apiRequest is one request to a model.
type apiRequest struct {
	url string
	// method is the HTTP method, and accept the accepted content type; empty means POST and JSON.
	method, accept string
	// header are further headers.
	header map[string]string
	// addKey adds the key to the header; nil sends it as a bearer token.
	addKey func(h http.Header, key string)
	body   any
	// maxResponse is the maximum size of the response in bytes.
	maxResponse int64
}

// postJSON sends a request and decodes the response into into. After a temporary failure, it sends the request again,
// if ctx leaves enough time, in total at most maxAttempts times.
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
	resp, err := c.open(ctx, a, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, a.maxResponse+1))
	switch {
	case err != nil:
		return nil, connectionError(err)
	case int64(len(raw)) > a.maxResponse:
		return nil, errors.New("the answer is too long")
	}
	return raw, nil
}

// open sends a request and returns the response, whose status is 200. The caller closes its body.
func (c *apiClient) open(ctx context.Context, a apiRequest, body []byte) (*http.Response, error) {
	r, err := c.newRequest(ctx, a, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, connectionError(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
			c.forgetKey()
		}
		return nil, readErrorResponse(resp)
	}
	return resp, nil
}

// newRequest returns a request with the key and the further headers.
func (c *apiClient) newRequest(ctx context.Context, a apiRequest, body []byte) (*http.Request, error) {
	key, err := c.apiKey(ctx)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, cmp.Or(a.method, http.MethodPost), a.url, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address is wrong")
	}
	if r.Method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", cmp.Or(a.accept, "application/json"))
	for name, value := range a.header {
		r.Header.Set(name, value)
	}
	switch {
	case key.IsZero():
	case a.addKey != nil:
		a.addKey(r.Header, key.Reveal())
	default:
		r.Header.Set("Authorization", "Bearer "+key.Reveal())
	}
	for _, h := range c.headers {
		value, err := h.Find(ctx)
		if err != nil {
			return nil, fmt.Errorf("find the header %s: %w", h.Name, err)
		}
		r.Header.Set(h.Name, value.Reveal())
	}
	return r, nil
}
