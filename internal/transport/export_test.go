package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// NewStandardTransport is the transport of net/http that every request took before HTTPTransport.
func NewStandardTransport(address string, own bool) *http.Transport {
	t := newStandardTransport()
	t.Proxy, t.DialContext = safehttp.ProxyAndDialer(address, own)
	return t
}

// SetDial replaces the guarded dialler.
func (t *HTTPTransport) SetDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	t.dial = dial
}

// SetTLS replaces the configuration of TLS.
func (t *HTTPTransport) SetTLS(c *tls.Config) { t.tls, t.standard.TLSClientConfig = c, c.Clone() }

// SetProxy replaces the proxies of the environment.
func (t *HTTPTransport) SetProxy(proxy func(*http.Request) (*url.URL, error)) { t.proxy = proxy }

// SetIdleTimeout replaces the time for which idle connections are kept.
func (t *HTTPTransport) SetIdleTimeout(d time.Duration) { t.idleTimeout = d }

// IdleConns returns how many connections are idle.
func (t *HTTPTransport) IdleConns() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, conns := range t.idle {
		n += len(conns)
	}
	return n
}
