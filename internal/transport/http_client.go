package transport

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// ErrRedirectRefused is wrapped by the error for a redirect that is not followed. A redirect is not followed if it
// leads to another origin, which would receive the headers for the first origin. It is also not followed if it changes
// the method of the request, or after maxRedirects redirects.
var ErrRedirectRefused = errors.New("redirect not followed")

// maxRedirects is how many redirects within one origin are followed.
const maxRedirects = 5

// httpClientFor returns the client to use, which refuses redirects as checkRedirect does. It also returns the client's
// transport if httpClientFor has created it and the caller must close its connections.
func httpClientFor(o HTTPOptions) (*http.Client, *HTTPTransport) {
	var client http.Client
	var own *HTTPTransport
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

// originOf returns the scheme, host and port of a URL in lower case.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Scheme) + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// parseServerURL parses a server's URL. The error does not contain the URL, which may contain a secret.
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

// baseHeader returns the header of a POST request with the configured headers. It returns the Host header separately,
// as net/http requires it. The error names a header that cannot be sent, but does not contain its value.
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
