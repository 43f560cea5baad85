package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/drawbridge-mcp/drawbridge"
)

// A Flow is a sign-in that waits for a person: what drawbridge.SignIn says.
type Flow struct {
	url, code, issuer string

	c      *Credential
	device func(context.Context) error
	done   chan error
}

var _ drawbridge.SignIn = (*Flow)(nil)

// Place gives where the person signs in.
func (f *Flow) Place() (url, code, issuer string) { return f.url, f.code, f.issuer }

var _ drawbridge.Access = (*Credential)(nil)

// SignIn begins a sign-in that comes back by way of a browser on this machine, or is brought back by hand; or one on another
// device.
func (c *Credential) SignIn(ctx context.Context, device bool) (drawbridge.SignIn, error) {
	begin := c.beginDevice
	if !device {
		begin = func(ctx context.Context) (*Flow, error) { return c.begin(ctx, nil) }
	}
	flow, err := begin(ctx)
	if err != nil {
		return nil, explained(err)
	}
	return flow, nil
}

// begin prepares a sign-in; scopes are the rights to ask for, nil those that the server names. One that is still open is
// taken up again.
func (c *Credential) begin(ctx context.Context, scopes []string) (*Flow, error) {
	if c.site.Grant != Code {
		return nil, errUnattended
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r, err := c.current()
	if err != nil {
		return nil, err
	}
	demand, err := c.asking(ctx)
	if err != nil {
		return nil, err
	}
	if scopes == nil && demand.Status == http.StatusForbidden {
		scopes = union(r.Scopes, strings.Fields(bearer(demand.Challenges)["scope"]))
	}
	redirects, err := c.wayBack(r)
	if err != nil {
		return nil, err
	}
	s, err := c.discover(ctx, demand)
	if err != nil {
		return nil, err
	}
	if s.Authorization == "" {
		return nil, errors.New("the authorization server names no authorization endpoint")
	}
	scopes = c.scopesFor(s, demand, scopes)
	r.prune(c.desk.o.Now())
	for _, p := range r.Pending {
		if redirects[0] == p.Redirect && slices.Equal(p.Scopes, scopes) && p.Site.Issuer == s.Issuer && c.desk.lobby.expects(p.State) {
			return c.flow(p), nil
		}
	}
	who, err := c.identify(ctx, s, r, redirects)
	if err != nil {
		return nil, err
	}
	p := c.prepare(s, who, scopes, redirects)
	if err := checkURL(p.URL); err != nil {
		return nil, fmt.Errorf("the address to sign in at %w", err)
	}
	if who.Registered {
		r.Client, r.ClientAt = who, s.Issuer
	}
	r.Pending = append(r.Pending, p)
	r.prune(c.desk.o.Now())
	if err := c.keep(r); err != nil {
		return nil, err
	}
	return c.flow(p), nil
}

func (c *Credential) keep(r record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.save(r)
}

// flow is what a person sees of a pending sign-in. Whoever waits for it hears of its end.
func (c *Credential) flow(p pending) *Flow {
	f := &Flow{url: p.URL, issuer: cmp.Or(hostOf(p.Site.Issuer), hostOf(p.URL)), c: c, done: make(chan error, 1)}
	c.desk.lobby.expect(p.State, func(ctx context.Context, values url.Values) error {
		err := c.finish(ctx, values)
		select {
		case f.done <- err:
		default:
		}
		return err
	})
	return f
}

// prepare makes a sign-in: a state, a verifier and the address.
func (c *Credential) prepare(s site, who client, scopes, redirects []string) pending {
	redirect := redirects[0]
	if len(who.Redirects) > 0 {
		redirect = who.Redirects[0]
	}
	p := pending{
		State: rand.Text(), Verifier: oauth2.GenerateVerifier(), Redirect: redirect, Scopes: scopes,
		Made: c.desk.o.Now(), Site: s, Client: who,
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(p.Verifier)}
	if s.Resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", s.Resource))
	}
	if slices.Contains(scopes, "offline_access") {
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent")) // else OpenID providers leave the refresh token out
	}
	p.URL = c.oauth(s, who, scopes, redirect).AuthCodeURL(p.State, options...)
	return p
}

func (c *Credential) oauth(s site, who client, scopes []string, redirect string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: who.ID, ClientSecret: who.secret(), RedirectURL: redirect, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: s.Authorization, TokenURL: s.Token, DeviceAuthURL: s.Device, AuthStyle: who.style(s)},
	}
}

// scopesFor chooses what to ask for: the rights that are wanted beyond others, those of the row, those that the refusal
// names, those that the resource names, or none (2025-11-25, scope selection).
func (c *Credential) scopesFor(s site, demand Demand, wanted []string) []string {
	scopes := wanted
	switch named := strings.Fields(bearer(demand.Challenges)["scope"]); {
	case c.site.Scopes != "":
		scopes = union(strings.Fields(c.site.Scopes), wanted)
	case len(wanted) > 0:
	case len(named) > 0:
		scopes = named
	default:
		scopes = s.Scopes
	}
	if s.Offline && c.site.Scopes == "" {
		scopes = union(scopes, []string{"offline_access"})
	}
	return slices.Clone(scopes)
}

// wayBack gives the addresses that people may be sent back to, the preferred one first, and sees to it that somebody is
// there.
func (c *Credential) wayBack(r record) ([]string, error) {
	path := "/" + strings.TrimPrefix(cmp.Or(c.site.CallbackPath, "callback"), "/")
	if c.site.RedirectURI != "" {
		u, err := url.Parse(c.site.RedirectURI)
		if err != nil || checkURL(c.site.RedirectURI) != nil {
			return nil, errors.New("the row's redirect_uri is no address of this machine")
		}
		port, _ := strconv.Atoi(cmp.Or(u.Port(), strconv.Itoa(c.site.CallbackPort)))
		if isLoopback(u.Hostname()) && u.Scheme == "http" || c.site.CallbackPort != 0 {
			if _, err := c.desk.lobby.open(cmp.Or(c.site.CallbackPort, port), true); err != nil {
				return nil, err
			}
		}
		return []string{c.site.RedirectURI}, nil
	}
	want := c.site.CallbackPort
	if want == 0 && len(r.Client.Redirects) > 0 {
		if u, err := url.Parse(r.Client.Redirects[0]); err == nil {
			want, _ = strconv.Atoi(u.Port()) // where the client is known to come back to
		}
	}
	port, err := c.desk.lobby.open(want, c.site.CallbackPort != 0)
	if err != nil {
		return nil, err
	}
	host := "127.0.0.1"
	if len(r.Client.Redirects) > 0 && strings.Contains(r.Client.Redirects[0], "://localhost:") {
		host = "localhost"
	}
	return []string{"http://" + net.JoinHostPort(host, strconv.Itoa(port)) + path}, nil
}

// Wait waits until the person is back and signed in.
func (f *Flow) Wait(ctx context.Context) error {
	if f.device != nil {
		return explained(f.device(ctx))
	}
	select {
	case err := <-f.done:
		return explained(err)
	case <-ctx.Done():
		return explained(ctx.Err())
	}
}

// Paste takes what a person brings back by hand: the address that the browser ended at.
func (f *Flow) Paste(ctx context.Context, text string) error { return f.c.Paste(ctx, text) }

// Paste ends a sign-in that was begun in this process or another with the address that the browser ended at.
func (c *Credential) Paste(ctx context.Context, text string) error {
	values, err := parsePasted(text)
	if err != nil {
		return err
	}
	c.desk.lobby.take(values.Get("state"))
	return explained(c.finish(ctx, values))
}

// finish exchanges what came back for tokens. A state is good once, whatever comes of it.
func (c *Credential) finish(ctx context.Context, values url.Values) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := c.current()
	if err != nil {
		return err
	}
	r.prune(c.desk.o.Now())
	p, ok := r.take(values.Get("state"))
	if !ok {
		return sentence("State mismatch - possible CSRF attack")
	}
	if err := c.keep(r); err != nil {
		return err
	}
	if err := p.accepts(values); err != nil {
		return err
	}
	options := []oauth2.AuthCodeOption{oauth2.VerifierOption(p.Verifier)}
	if p.Site.Resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", p.Site.Resource))
	}
	token, err := c.oauth(p.Site, p.Client, nil, p.Redirect).Exchange(c.through(ctx), values.Get("code"), options...)
	if err != nil {
		return saying("Token exchange failed: %w", answered(err))
	}
	c.countStepUp(p.Scopes)
	return c.receive(r, p.Site, p.Client, token, p.Scopes)
}

// accepts checks an answer before anything is done with it: whom it is from (RFC 9207: a plain comparison), and what it says.
func (p pending) accepts(values url.Values) error {
	iss := values.Get("iss")
	switch {
	case iss != "" && iss != p.Site.Issuer:
		return saying("Authorization failed: the answer is from another issuer, %s", printable(hostOf(iss)))
	case iss == "" && p.Site.NamesIssuer:
		return sentence("Authorization failed: the answer does not say which issuer it is from")
	case values.Has("error"):
		return saying("Authorization failed: %w", &refusal{code: values.Get("error"), description: values.Get("error_description")})
	case values.Get("code") == "":
		return sentence("Missing authorization code")
	}
	return nil
}

// through is a context in which the oauth2 package uses our client.
func (c *Credential) through(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, c.client)
}

// receive keeps new tokens. What the server does not say of scopes is as was asked for.
func (c *Credential) receive(r record, s site, who client, token *oauth2.Token, asked []string) error {
	if kind := token.TokenType; kind != "" && !strings.EqualFold(kind, "bearer") {
		return fmt.Errorf("the authorization server gives tokens of a kind that we do not speak: %.20q", kind)
	}
	r.Site, r.Client, r.ClientAt = s, who, s.Issuer
	r.Access, r.Issued, r.Expires = token.AccessToken, c.desk.o.Now(), time.Time{}
	if token.ExpiresIn > 0 {
		r.Expires = r.Issued.Add(time.Duration(token.ExpiresIn) * time.Second)
	}
	if token.RefreshToken != "" {
		r.Refresh = token.RefreshToken
	}
	r.Scopes, r.Renewing, r.Trouble = asked, time.Time{}, ""
	if granted, ok := token.Extra("scope").(string); ok && granted != "" {
		r.Scopes = strings.FieldsFunc(granted, func(r rune) bool { return r == ' ' || r == ',' })
	}
	return c.keep(r)
}

// asking gives the server's last refusal; where it was not asked yet, it is.
func (c *Credential) asking(ctx context.Context) (Demand, error) {
	c.mu.Lock()
	demand := c.demand
	c.mu.Unlock()
	if demand.Status != 0 || c.site.URL == "" {
		return demand, nil
	}
	const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"drawbridge","version":"0"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.site.URL, strings.NewReader(hello))
	if err != nil {
		return Demand{}, plain(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.client.Do(req)
	if err != nil {
		return Demand{}, fmt.Errorf("ask the server: %w", plain(err))
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what there is, is good enough
	return demandIn(resp.StatusCode, resp.Header, body), nil
}
