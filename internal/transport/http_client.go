package transport

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// ErrRedirectRefused is wrapped by the error for a redirect that is not followed: it leads to another origin, which
// would get the headers of the first, or it would turn a POST into a GET.
var ErrRedirectRefused = errors.New("redirect not followed")

// maxRedirects is how many redirects within one origin are followed.
const maxRedirects = 5

// NewHTTPTransport returns a transport for one server at that URL. It keeps a connection for each of many callers,
// connects only where safehttp.ProxyAndDialer permits, uses the environment's proxies, and speaks HTTP/2 over TLS. It
// does not limit how long an answer takes; contexts do.
func NewHTTPTransport(address string, own bool) *http.Transport {
	proxy, dial := safehttp.ProxyAndDialer(address, own)
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            dial,
		TLSHandshakeTimeout:    15 * time.Second,
		MaxIdleConnsPerHost:    128,
		IdleConnTimeout:        55 * time.Second, // less than the minute after which many a proxy hangs up
		MaxResponseHeaderBytes: 1 << 20,
		ForceAttemptHTTP2:      true, // a dialer of our own would turn it off
		// A connection that died silently would hold its calls up to their timeouts.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		// Compressing proxies delay events, and the size of decompressed data has no bound.
		DisableCompression: true,
	}
}

// httpClientFor returns the client to use, which follows no unwanted redirect, and its transport if we created it and
// must clean it up.
func httpClientFor(o HTTPOptions) (*http.Client, *http.Transport) {
	var client http.Client
	var own *http.Transport
	if o.Client != nil {
		client = *o.Client
	} else {
		own = NewHTTPTransport(o.URL, o.AllowLocalNetwork)
		client.Transport = own
	}
	client.CheckRedirect = checkRedirect
	return &client, own
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case originOf(req.URL) != originOf(first.URL):
		return fmt.Errorf("%w: it leads to another origin, %s", ErrRedirectRefused, originOf(req.URL))
	case req.Method != first.Method:
		return fmt.Errorf("%w: it would turn %s into %s", ErrRedirectRefused, first.Method, req.Method)
	case len(via) > maxRedirects:
		return fmt.Errorf("%w: there are more than %d", ErrRedirectRefused, maxRedirects)
	}
	return nil
}

// originOf returns the scheme, host and port of a URL.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Scheme) + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// parseServerURL reads a server's URL. The error does not repeat it: it may hold a secret.
func parseServerURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return nil, unsentError{fmt.Errorf("parse url: %w", err)}
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, unsentError{errors.New("parse url: the scheme must be http or https")}
	case u.Host == "":
		return nil, unsentError{errors.New("parse url: the host is missing")}
	}
	u.Fragment = ""
	return u, nil
}

// baseHeader returns the header of a POST with the configured headers, and the host, which net/http takes separately.
// The error names a header that cannot be sent, but not its value.
func baseHeader(h http.Header) (header http.Header, host string, err error) {
	header = make(http.Header, len(h)+8)
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		for _, value := range values {
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return nil, "", unsentError{fmt.Errorf(
					"header %s: its value holds a line break or another control character", name)}
			}
		}
		if name == "Host" && len(values) > 0 {
			host = values[0]
			continue
		}
		header[name] = append(header[name], values...)
	}
	header.Set("Content-Type", mediaTypeJSON)
	header.Set("Accept", mediaTypeJSON+", "+mediaTypeEvents)
	return header, host, nil
}
