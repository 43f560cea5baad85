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

	"github.com/drawbridge-mcp/drawbridge/wire"
)

const (
	// askTime is what an issuer gets to answer, maxAnswer how much it may say.
	askTime   = 10 * time.Second
	maxAnswer = 512 << 10
	// maxAsking is how many tokens are asked after at once; the others wait.
	maxAsking = 16
)

// webClient makes what asks issuers. It keeps no connection: nothing of it is left when nobody asks.
func webClient(transport http.RoundTripper) *http.Client {
	if transport == nil {
		transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: askTime, ResponseHeaderTimeout: askTime, MaxResponseHeaderBytes: 64 << 10,
		}
	}
	return &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		from := via[0].URL
		if len(via) > 3 || via[0].Method != http.MethodGet || r.URL.Scheme != from.Scheme || r.URL.Host != from.Host {
			return errElsewhere
		}
		return nil
	}}
}

func get(ctx context.Context, web *http.Client, place string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return nil, errors.New("the URL is wrong")
	}
	return ask(web, r)
}

// ask sends a request and gives the JSON object that is answered. The error holds no URL and nothing that was answered.
func ask(web *http.Client, r *http.Request) ([]byte, error) {
	r.Header.Set("Accept", "application/json")
	resp, err := web.Do(r)
	if err != nil {
		return nil, unreachable(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, errors.New("the answer is cut off")
	case len(raw) > maxAnswer:
		return nil, errors.New("the answer is too long")
	case wire.Valid(raw) != nil:
		return nil, errors.New("the answer is no JSON")
	}
	return raw, nil
}

var errElsewhere = errors.New("it leads elsewhere")

// unreachable says why there is no answer. Errors of net/http may repeat a URL, or what was answered: of them only those pass
// that are about the way there.
func unreachable(err error) error {
	dial, dialled := errors.AsType[*net.OpError](err)
	cert, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, errElsewhere):
		return errElsewhere
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), os.IsTimeout(err):
		return errors.New("there is no answer in time")
	case dialled:
		return dial
	case untrusted:
		return cert
	}
	return errors.New("there is no answer that is understood")
}

// errInactive is the fault of a token that its issuer does not vouch for, or not any more.
var errInactive = unproved("the token is not active")

// introspected asks the issuer whether a token counts, and takes what it says of it beside what the token says itself: where
// both speak of scopes the issuer knows better, who may have taken some away.
func (v *Verifier) introspected(ctx context.Context, token string, own claims) (claims, error) {
	select {
	case v.asking <- struct{}{}:
		defer func() { <-v.asking }()
	case <-ctx.Done():
		return claims{}, unasked(ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	raw, err := v.introspect(ctx, token)
	if err != nil {
		return claims{}, unasked(fmt.Errorf("introspection: %w", err))
	}
	c, err := readClaims(raw)
	switch {
	case err != nil:
		return claims{}, unasked(fmt.Errorf("introspection: %w", err))
	case !c.active:
		return claims{}, errInactive
	case c.issuer != "" && c.issuer != v.o.Issuers[0]:
		return claims{}, unproved("the token is from another issuer")
	}
	return c.beside(own, v.o.Issuers[0])
}

// introspect sends the token, and us to prove ourselves, in the form of RFC 7662.
func (v *Verifier) introspect(ctx context.Context, token string) ([]byte, error) {
	in := v.o.Introspection
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, in.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("the URL is wrong")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	// RFC 6749, section 2.3.1: both are encoded as in a form first.
	r.SetBasicAuth(url.QueryEscape(in.ClientID), url.QueryEscape(in.Secret.Reveal()))
	return ask(v.web, r)
}

// beside joins what the issuer says of a token with what the token, if it was a signed one, says itself.
func (c claims) beside(own claims, issuer string) (claims, error) {
	c.issuer = issuer
	if own.issuer == "" {
		return c, nil // the token is opaque
	}
	if c.subject != "" && own.subject != "" && c.subject != own.subject {
		return claims{}, unproved("the issuer says another subject than the token")
	}
	if c.scoped {
		own.scopes = c.scopes
	}
	if !c.expires.IsZero() && c.expires.Before(own.expires) {
		own.expires = c.expires
	}
	own.bound = own.bound || c.bound
	return own, nil
}

// isLoopback says whether a host is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
