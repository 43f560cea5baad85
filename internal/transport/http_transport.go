package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

const (
	// maxIdleConns is how many idle connections to one origin are kept.
	maxIdleConns = 128
	// idleConnTimeout is how long an idle connection is kept. Many proxies close idle connections after one minute.
	idleConnTimeout = 55 * time.Second
	// tlsHandshakeTimeout is the time limit of a TLS handshake.
	tlsHandshakeTimeout = 15 * time.Second
	// maxResponseHeader is the size limit of the header of a response in bytes.
	maxResponseHeader = 1 << 20
)

// An HTTPTransport is an http.RoundTripper for the requests to one server. It sends a request of known, small length
// over HTTP/1.1 in the goroutine of its caller, and reads the response there: net/http needs two more goroutines for
// that, and hands each request and each response over between them. All other requests are sent by net/http: over
// HTTP/2, through a proxy, with a large body, or with a header that changes the framing or the connection.
//
// The two behave the same for their user. ALPN decides whether the server is spoken to in HTTP/2. A request is sent
// again in the same cases as by net/http: on a reused connection that the server has closed, if nothing was sent, or if
// the request may be repeated and no byte of a response has arrived.
type HTTPTransport struct {
	standard *http.Transport
	proxy    func(*http.Request) (*url.URL, error)
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	// tls is the configuration of TLS connections without the name of the server.
	tls *tls.Config
	// maxIdle and idleTimeout are constants except in tests.
	maxIdle     int
	idleTimeout time.Duration
	messages    messagePool

	mu   sync.Mutex
	idle map[connKey][]*keptConn // the last one was used last
	// speaksHTTP2 contains the origins that chose HTTP/2. handedOver contains connections to them until net/http dials.
	speaksHTTP2 map[connKey]bool
	handedOver  map[string][]net.Conn
	// closed is set by CloseIdleConnections: connections are not kept any more until the next one is dialled.
	closed bool
	// expiry closes the idle connections that are too old. It is nil if no connection is idle.
	expiry *time.Timer
}

var _ http.RoundTripper = (*HTTPTransport)(nil)

// A connKey identifies the connections that a request can use.
type connKey struct {
	secure  bool
	address string // host and port
}

// NewHTTPTransport returns a transport for the server at the URL address. own has the meaning of
// HTTPOptions.AllowLocalNetwork. The transport keeps idle connections for many callers, connects only where
// safehttp.ProxyAndDialer permits, uses the proxies of the environment, and uses HTTP/2 over TLS. It does not limit the
// duration of a response; contexts do that.
func NewHTTPTransport(address string, own bool) *HTTPTransport {
	t := &HTTPTransport{maxIdle: maxIdleConns, idleTimeout: idleConnTimeout, idle: map[connKey][]*keptConn{},
		speaksHTTP2: map[connKey]bool{}, handedOver: map[string][]net.Conn{},
		// Without a cache, each further connection would need a whole handshake.
		tls: &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(0)}}
	t.proxy, t.dial = safehttp.ProxyAndDialer(address, own)
	t.standard = newStandardTransport()
	t.standard.Proxy, t.standard.DialContext, t.standard.DialTLSContext = t.proxyOnce, t.dialStandard, t.dialHandedOver
	return t
}

// newStandardTransport returns the transport of net/http, without a proxy and a dialler.
func newStandardTransport() *http.Transport {
	return &http.Transport{
		TLSHandshakeTimeout:    tlsHandshakeTimeout,
		MaxIdleConnsPerHost:    maxIdleConns,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
		ForceAttemptHTTP2:      true, // a custom dialer would disable HTTP/2
		// Without pings, calls on a dead connection would wait until their timeout.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		// Compressing proxies delay events, and the size of decompressed data is not bounded.
		DisableCompression: true,
	}
}

// errSpeaksHTTP2 is the error of openConn if the server chose HTTP/2.
var errSpeaksHTTP2 = errors.New("the server speaks HTTP/2")

// RoundTrip sends a request and reads the header of the response. A Close of the body before its end closes the
// connection.
func (t *HTTPTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	proxy, err := t.proxy(req)
	if err != nil {
		closeRequestBody(req)
		return nil, err
	}
	if proxy != nil {
		return t.standard.RoundTrip(req.WithContext(context.WithValue(req.Context(), chosenProxy{}, proxy)))
	}
	if !canCheckConns || !isPlainRequest(req) {
		return t.standard.RoundTrip(req)
	}
	at := connKeyOf(req.URL)
	if at.secure && t.isHTTP2(at) {
		return t.roundTripHTTP2(req, at)
	}
	msg := t.messages.get()
	defer t.messages.put(msg)
	if err := msg.encode(req); err != nil {
		return nil, err
	}
	for {
		c, err := t.conn(req.Context(), at)
		if err == errSpeaksHTTP2 {
			resp, err := t.roundTripHTTP2(msg.rewind(req), at)
			t.closeHandedOver(at)
			return resp, err
		}
		if err != nil {
			return nil, err
		}
		resp, again, err := c.roundTrip(req, msg.bytes)
		if err == nil || !again {
			return resp, err
		}
	}
}

// roundTripHTTP2 sends a request with net/http to an origin that chose HTTP/2.
func (t *HTTPTransport) roundTripHTTP2(req *http.Request, at connKey) (*http.Response, error) {
	resp, err := t.standard.RoundTrip(req)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && resp.ProtoMajor == 1 {
		delete(t.speaksHTTP2, at)
	}
	return resp, err
}

func (t *HTTPTransport) isHTTP2(at connKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.speaksHTTP2[at]
}

// CloseIdleConnections closes the connections that no request uses, and those that become idle after it.
func (t *HTTPTransport) CloseIdleConnections() {
	t.mu.Lock()
	idle, handed := t.idle, t.handedOver
	t.idle, t.handedOver, t.closed = map[connKey][]*keptConn{}, map[string][]net.Conn{}, true
	if t.expiry != nil {
		t.expiry.Stop()
		t.expiry = nil
	}
	t.mu.Unlock()
	for _, conns := range idle {
		for _, c := range conns {
			c.close()
		}
	}
	for _, conns := range handed {
		for _, c := range conns {
			_ = c.Close()
		}
	}
	t.standard.CloseIdleConnections()
}

// conn returns an idle connection that the server has not closed, or a new one.
func (t *HTTPTransport) conn(ctx context.Context, at connKey) (*keptConn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		c := t.takeIdle(at)
		if c == nil {
			return t.openConn(ctx, at)
		}
		if time.Since(c.idleSince) < t.idleTimeout && c.isAlive() {
			return c, nil
		}
		c.close()
	}
}

// takeIdle removes the connection that became idle last from the idle ones. It returns nil if there is none.
func (t *HTTPTransport) takeIdle(at connKey) *keptConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	conns := t.idle[at]
	if len(conns) == 0 {
		return nil
	}
	c := conns[len(conns)-1]
	conns[len(conns)-1] = nil
	t.idle[at] = conns[:len(conns)-1]
	return c
}

// keep adds a connection to the idle ones, or closes it if there are too many.
func (t *HTTPTransport) keep(c *keptConn) {
	c.idleSince, c.isReused = time.Now(), true
	if !t.addIdle(c) {
		c.close()
	}
}

func (t *HTTPTransport) addIdle(c *keptConn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	conns := t.idle[c.at]
	if t.closed || len(conns) >= t.maxIdle || !c.canBeChecked() {
		return false
	}
	t.idle[c.at] = append(conns, c)
	if t.expiry == nil {
		t.expiry = time.AfterFunc(t.idleTimeout, t.closeExpired)
	}
	return true
}

// closeExpired closes the connections that were idle for too long.
func (t *HTTPTransport) closeExpired() {
	for _, c := range t.takeExpired(time.Now()) {
		c.close()
	}
}

// takeExpired removes the connections that were idle for too long, and sets the timer for the next ones.
func (t *HTTPTransport) takeExpired(now time.Time) (expired []*keptConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.expiry == nil {
		return nil // CloseIdleConnections came first
	}
	t.expiry = nil
	next := t.idleTimeout
	for at, conns := range t.idle {
		n := slices.IndexFunc(conns, func(c *keptConn) bool { return now.Sub(c.idleSince) < t.idleTimeout })
		if n < 0 {
			expired = append(expired, conns...)
			delete(t.idle, at)
			continue
		}
		expired = append(expired, conns[:n]...)
		next = min(next, t.idleTimeout-now.Sub(conns[n].idleSince))
		t.idle[at] = slices.Delete(conns, 0, n)
	}
	if len(t.idle) > 0 {
		t.expiry = time.AfterFunc(next, t.closeExpired)
	}
	return expired
}

// openConn dials. If the server chooses HTTP/2, openConn returns errSpeaksHTTP2 and keeps the connection for net/http.
func (t *HTTPTransport) openConn(ctx context.Context, at connKey) (*keptConn, error) {
	t.mu.Lock()
	t.closed = false
	t.mu.Unlock()
	conn, err := t.dial(ctx, "tcp", at.address)
	if err != nil {
		return nil, err
	}
	if !at.secure {
		return newKeptConn(t, at, conn, conn), nil
	}
	secure, err := t.handshake(ctx, conn, at.address)
	if err != nil {
		return nil, err
	}
	if secure.ConnectionState().NegotiatedProtocol != "h2" {
		return newKeptConn(t, at, secure, conn), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.speaksHTTP2[at] = true
	t.handedOver[at.address] = append(t.handedOver[at.address], secure)
	return nil, errSpeaksHTTP2
}

// handshake does the TLS handshake on conn. If that fails, it closes conn.
func (t *HTTPTransport) handshake(ctx context.Context, conn net.Conn, address string) (*tls.Conn, error) {
	config := t.tls.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	config.NextProtos = []string{"h2", "http/1.1"}
	if strings.Contains(os.Getenv("GODEBUG"), "http2client=0") { // net/http would not speak HTTP/2
		config.NextProtos = config.NextProtos[1:]
	}
	secure := tls.Client(conn, config)
	during, cancel := context.WithTimeout(ctx, tlsHandshakeTimeout)
	defer cancel()
	err := secure.HandshakeContext(during)
	if err == nil {
		return secure, nil
	}
	_ = conn.Close()
	if header, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(header.RecordHeader[:]) == "HTTP/" {
		return nil, http.ErrSchemeMismatch
	}
	if ctx.Err() == nil && during.Err() != nil {
		return nil, errors.New("TLS handshake: timeout")
	}
	return nil, err
}

// dialHandedOver is the TLS dialler of net/http. It prefers a connection that openConn has left for it.
func (t *HTTPTransport) dialHandedOver(ctx context.Context, network, address string) (net.Conn, error) {
	t.mu.Lock()
	if conns := t.handedOver[address]; len(conns) > 0 {
		c := conns[0]
		if t.handedOver[address] = conns[1:]; len(conns) == 1 {
			delete(t.handedOver, address)
		}
		t.mu.Unlock()
		return c, nil
	}
	t.mu.Unlock()
	conn, err := t.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return t.handshake(ctx, conn, address)
}

// closeHandedOver closes the connections to an origin that net/http has not used. They would be too old for the next
// dial.
func (t *HTTPTransport) closeHandedOver(at connKey) {
	t.mu.Lock()
	conns := t.handedOver[at.address]
	delete(t.handedOver, at.address)
	t.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

func (t *HTTPTransport) dialStandard(ctx context.Context, network, address string) (net.Conn, error) {
	return t.dial(ctx, network, address)
}

// chosenProxy is the key of the context value with the proxy of a request.
type chosenProxy struct{}

// proxyOnce returns the proxy that RoundTrip has chosen for the request, so that names are not resolved twice.
func (t *HTTPTransport) proxyOnce(req *http.Request) (*url.URL, error) {
	if u, ok := req.Context().Value(chosenProxy{}).(*url.URL); ok {
		return u, nil
	}
	return t.proxy(req)
}

// connKeyOf returns the key of the connections to the host of a URL.
func connKeyOf(u *url.URL) connKey {
	switch secure := u.Scheme == "https"; {
	case u.Port() != "":
		return connKey{secure, u.Host}
	case secure:
		return connKey{secure, net.JoinHostPort(u.Hostname(), "443")}
	}
	return connKey{false, net.JoinHostPort(u.Hostname(), "80")}
}

func closeRequestBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
