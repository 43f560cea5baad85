package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

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
