package model

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
	// attempts is how often a request is sent, firstPause how long after the first of them, where nothing else is said.
	attempts   = 3
	firstPause = 100 * time.Millisecond
	// maxPause is the longest wait within one exchange; who is to wait longer is told so.
	maxPause = 20 * time.Second
	// connectTime is what the way there may take.
	connectTime = 10 * time.Second
)

// An Account is where a model is, and who we are there.
type Account struct {
	// BaseURL is the address up to the path of the interface; empty means the provider's own.
	BaseURL string
	// Key finds the key, when it is first needed and again after it was refused; nil is none. Its error is shown to people, and
	// has no secret in it.
	Key func(ctx context.Context) (drawbridge.Secret, error)
	// Timeout is how long one request may take; 0 means 30 seconds.
	Timeout time.Duration
	// Transport carries the requests; nil is one of its own.
	Transport http.RoundTripper
}

// A client asks one place.
type client struct {
	web     http.Client
	find    func(ctx context.Context) (drawbridge.Secret, error)
	timeout time.Duration

	mu  sync.Mutex
	key drawbridge.Secret // empty until it was found
}

// newClient makes what asks the server at an address. A key is not sent where others on the way could read it.
func newClient(a Account, base string) (*client, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, errors.New("the address must be an https:// URL with a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the address must be without user, query and fragment: a key stands in api_key")
	case u.Scheme == "http" && a.Key != nil && !near(u.Hostname()):
		return nil, errors.New("a key goes over https:// only, but to this machine and its network")
	}
	c := &client{find: a.Key, timeout: a.Timeout}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	c.web.Transport = a.Transport
	if a.Transport == nil {
		c.web.Transport = &http.Transport{
			Proxy: proxy, TLSHandshakeTimeout: connectTime, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 55 * time.Second, MaxResponseHeaderBytes: 256 << 10,
		}
	}
	c.web.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// proxy is the environment's where TLS keeps what is said from it. A server that is asked in the open is asked directly.
func proxy(r *http.Request) (*url.URL, error) {
	if r.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// near says whether a host is this machine or on its network, by its name.
func near(host string) bool {
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
func (c *client) close() error {
	c.web.CloseIdleConnections()
	return nil
}

// secret gives the key, as it was found or as it is found now.
func (c *client) secret(ctx context.Context) (drawbridge.Secret, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.key.IsZero() || c.find == nil {
		return c.key, nil
	}
	key, err := c.find(ctx)
	if err != nil {
		return drawbridge.Secret{}, fmt.Errorf("find the key: %w", err)
	}
	c.key = key
	return key, nil
}

// forget has the key looked for again.
func (c *client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.key = drawbridge.Secret{}
}

// An ask is one question to a model.
type ask struct {
	url string
	// sign puts the key where the provider wants it; nil is a bearer token.
	sign func(h http.Header, key string)
	body any
	// most is the most bytes of the answer.
	most int64
}

// post asks, and again where that may help and there is time, and reads the answer into a value.
func (c *client) post(ctx context.Context, a ask, into any) error {
	body, err := json.Marshal(a.body)
	if err != nil {
		return errors.New("write the request: a text is no Unicode")
	}
	pause := firstPause
	for attempt := 1; ; attempt++ {
		raw, err := c.once(ctx, a, body)
		if err == nil {
			if json.Unmarshal(raw, into) != nil {
				return errors.New("the answer is not understood")
			}
			return nil
		}
		answer, _ := errors.AsType[*AnswerError](err)
		if attempt == attempts || !again(ctx, answer, err) {
			return err
		}
		wait := pause
		if answer != nil && answer.After > 0 {
			wait = answer.After
		}
		if deadline, ok := ctx.Deadline(); wait > maxPause || ok && time.Until(deadline) <= wait {
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

// again says whether to ask once more may help.
func again(ctx context.Context, answer *AnswerError, err error) bool {
	if ctx.Err() != nil || errors.Is(err, errCertificate) {
		return false
	}
	if answer == nil {
		return errors.Is(err, errAway)
	}
	return answer.Status == http.StatusTooManyRequests || answer.Status >= 500 && answer.Status != http.StatusNotImplemented
}

// once sends a request and gives what is answered.
func (c *client) once(ctx context.Context, a ask, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	key, err := c.secret(ctx)
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
	case a.sign != nil:
		a.sign(r.Header, key.Reveal())
	default:
		r.Header.Set("Authorization", "Bearer "+key.Reveal())
	}
	resp, err := c.web.Do(r)
	if err != nil {
		return nil, unreachable(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
			c.forget()
		}
		return nil, refusal(resp)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, a.most+1))
	switch {
	case err != nil:
		return nil, unreachable(err)
	case int64(len(raw)) > a.most:
		return nil, errors.New("the answer is too long")
	}
	return raw, nil
}
