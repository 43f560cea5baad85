package bearer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

const (
	// askTime is the timeout of a request to an issuer. maxResponseBytes is the maximum size of its response.
	askTime          = 10 * time.Second
	maxResponseBytes = 512 << 10
	// maxIntrospections is the maximum number of introspection requests at the same time; further requests wait.
	maxIntrospections = 16
)

// newHTTPClient returns the client for requests to issuers. A nil transport means a transport that closes each
// connection after one request, so no connection stays open between requests. The client follows redirects only of GET
// requests and only on the same origin.
func newHTTPClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: askTime, ResponseHeaderTimeout: askTime, MaxResponseHeaderBytes: 64 << 10,
		}
	}
	return &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		from := via[0].URL
		if len(via) > 3 || via[0].Method != http.MethodGet || r.URL.Scheme != from.Scheme || r.URL.Host != from.Host {
			return errRedirectedElsewhere
		}
		return nil
	}}
}

func getJSON(ctx context.Context, web *http.Client, place string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return nil, errors.New("the URL is wrong")
	}
	return doJSON(web, r)
}

// doJSON sends a request and returns the JSON body of the response. The error contains neither the URL nor any part of
// the response.
func doJSON(web *http.Client, r *http.Request) ([]byte, error) {
	r.Header.Set("Accept", "application/json")
	resp, err := web.Do(r)
	if err != nil {
		return nil, safeNetworkError(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes+1))
	switch {
	case err != nil:
		return nil, errors.New("the answer is cut off")
	case len(raw) > maxResponseBytes:
		return nil, errors.New("the answer is too long")
	case rawjson.Valid(raw) != nil:
		return nil, errors.New("the answer is not valid JSON")
	}
	return raw, nil
}

var errRedirectedElsewhere = errors.New("it leads elsewhere")

// safeNetworkError returns a description of a network error. Errors of net/http may contain a URL or a response.
// Therefore, only errors about the connection to the host are returned unchanged; others are replaced by a fixed text.
func safeNetworkError(err error) error {
	dial, dialled := errors.AsType[*net.OpError](err)
	cert, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, errRedirectedElsewhere):
		return errRedirectedElsewhere
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), os.IsTimeout(err):
		return errors.New("the issuer did not answer in time")
	case dialled:
		return dial
	case untrusted:
		return cert
	}
	return errors.New("the issuer's answer is invalid")
}

// errInactive is the fault for a token that its issuer reports as not active.
var errInactive = authFailure("the token is not active")

// verifyByIntrospection sends a token to the introspection endpoint, and merges the response with own, the token's own
// claims. If both contain scopes, those of the response are used, because the issuer may have withdrawn scopes.
func (v *Verifier) verifyByIntrospection(ctx context.Context, token string, own claims) (claims, error) {
	select {
	case v.introspections <- struct{}{}:
		defer func() { <-v.introspections }()
	case <-ctx.Done():
		return claims{}, issuerUnavailable(ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	raw, err := v.introspect(ctx, token)
	if err != nil {
		return claims{}, issuerUnavailable(fmt.Errorf("introspection: %w", err))
	}
	c, err := readClaims(raw)
	switch {
	case err != nil:
		return claims{}, issuerUnavailable(fmt.Errorf("introspection: %w", err))
	case !c.active:
		return claims{}, errInactive
	case c.issuer != "" && c.issuer != v.o.Issuers[0]:
		return claims{}, authFailure("the token is from another issuer")
	}
	return c.mergeInto(own, v.o.Issuers[0])
}

// introspect sends the token to the introspection endpoint (RFC 7662), authenticated with Drawbridge's client
// credentials. It returns the body of the response.
func (v *Verifier) introspect(ctx context.Context, token string) ([]byte, error) {
	in := v.o.Introspection
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, in.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("the URL is wrong")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	// RFC 6749, section 2.3.1: both values are form-encoded first.
	r.SetBasicAuth(url.QueryEscape(in.ClientID), url.QueryEscape(in.Secret.Reveal()))
	return doJSON(v.client, r)
}

// mergeInto combines own, the claims of a signed token, with c, the claims of the introspection response. Scopes in c
// replace those in own, and an earlier expiry in c is used. If own is empty, the token is opaque, and mergeInto returns
// c.
func (c claims) mergeInto(own claims, issuer string) (claims, error) {
	c.issuer = issuer
	if own.issuer == "" {
		return c, nil // the token is opaque
	}
	if c.subject != "" && own.subject != "" && c.subject != own.subject {
		return claims{}, authFailure("the issuer names another subject than the token")
	}
	if c.hasScopes {
		own.scopes = c.scopes
	}
	if !c.expires.IsZero() && c.expires.Before(own.expires) {
		own.expires = c.expires
	}
	own.keyBound = own.keyBound || c.keyBound
	return own, nil
}

// isLoopbackHost reports whether a host is localhost or a loopback address.
func isLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
