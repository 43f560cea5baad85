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
	"github.com/drawbridge-mcp/drawbridge/bridge/egress"
)

// A Flow is a sign-in that waits for a person: what drawbridge.SignIn says.
type Flow struct {
	url, code, issuer string

	c      *Credential
	device func(context.Context) error
	// state is that of the sign-in that it waits for, end is its end in this process.
	state string
	end   *ending
}

// An ending is how a sign-in that was begun here, at the time made, ended; err is set before done is closed.
type ending struct {
	done chan struct{}
	made time.Time
	err  error
}

var _ drawbridge.SignIn = (*Flow)(nil)

// Place gives where the person signs in.
func (f *Flow) Place() (url, code, issuer string) { return f.url, f.code, f.issuer }

var _ drawbridge.Access = (*Credential)(nil)

// SignIn begins a sign-in that comes back by way of a browser on this machine, or is brought back by hand; or one on another
// device.
func (c *Credential) SignIn(ctx context.Context, device bool) (drawbridge.SignIn, error) {
	if c.site.Grant != Code {
		return nil, errUnattended
	}
	begin := c.begin
	if device {
		begin = c.beginDevice
	}
	flow, err := begin(ctx)
	if err != nil {
		return nil, explained(err)
	}
	return flow, nil
}

func (c *Credential) keep(r record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.save(r)
}

// flow is what a person sees of a pending sign-in. All who wait for it hear of its end.
func (c *Credential) flow(p pending) *Flow {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endings == nil {
		c.endings = map[string]*ending{}
	}
	end := c.endings[p.State]
	if end == nil {
		end = &ending{done: make(chan struct{}), made: p.Made}
		c.endings[p.State] = end
		c.desk.lobby.expect(p.State, c.doorOf(p), c.finish)
	}
	return &Flow{url: p.URL, issuer: cmp.Or(hostOf(p.Site.Issuer), hostOf(p.URL)), c: c, state: p.State, end: end}
}

// doorOf is the path at which somebody comes back.
func (c *Credential) doorOf(p pending) string {
	if u, err := url.Parse(p.Redirect); err == nil && c.site.CallbackPath == "" {
		return "/" + strings.TrimPrefix(u.Path, "/")
	}
	return "/" + strings.TrimPrefix(c.site.CallbackPath, "/")
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
	asked := oauth2.Config{ClientID: who.ID, RedirectURL: redirect, Scopes: scopes, Endpoint: oauth2.Endpoint{AuthURL: s.Authorization}}
	p.URL = asked.AuthCodeURL(p.State, options...)
	return p
}

// scopesFor chooses what to ask for: the rights that are wanted beyond others, those of the row, those that the refusal
// names, those that the resource names, or none (2025-11-25, scope selection).
func (c *Credential) scopesFor(s site, demand Demand, wanted []string) []string {
	scopes := wanted
	switch named := strings.Fields(bearer(demand.Challenges)["scope"]); {
	case c.site.Scopes != "":
		scopes = union(strings.Fields(c.site.Scopes), wanted)
	case len(wanted) > 0, c.site.NoScopes:
	case len(named) > 0:
		scopes = named
	default:
		scopes = s.Scopes
	}
	if s.Offline && c.site.Scopes == "" && len(scopes) > 0 { // beside none it would stand in the place of the usual ones
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
		if err != nil || egress.Check(c.site.RedirectURI) != nil {
			return nil, errors.New("the row's redirect_uri is no address of this machine")
		}
		port, _ := strconv.Atoi(cmp.Or(u.Port(), strconv.Itoa(c.site.CallbackPort)))
		if egress.IsLoopback(u.Hostname()) && u.Scheme == "http" || c.site.CallbackPort != 0 {
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
	port, err := c.desk.lobby.open(want, false)
	if err != nil {
		return nil, err
	}
	host := "127.0.0.1"
	if len(r.Client.Redirects) > 0 && strings.Contains(r.Client.Redirects[0], "://localhost:") {
		host = "localhost"
	}
	return []string{"http://" + net.JoinHostPort(host, strconv.Itoa(port)) + path}, nil
}

// Wait waits until the person is back and signed in: here, or by way of another process that they gave the address to.
func (f *Flow) Wait(ctx context.Context) error {
	if f.device != nil {
		return explained(f.device(ctx))
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-f.end.done:
			return explained(f.end.err)
		case <-ctx.Done():
			return explained(ctx.Err())
		case <-tick.C:
			r, err := f.c.current()
			if err == nil && r.Access != "" && !r.Issued.Before(f.end.made) && !r.awaits(f.state) {
				return nil
			}
		}
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
	return explained(c.finish(ctx, values))
}

// finish takes what came back, and has those who wait hear of it.
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
	state := values.Get("state")
	p, ok := r.take(state)
	if !ok {
		return sentence("State mismatch - possible CSRF attack")
	}
	err = c.exchange(ctx, r, p, values)
	c.desk.lobby.forget(state)
	c.mu.Lock()
	defer c.mu.Unlock()
	if end := c.endings[state]; end != nil {
		delete(c.endings, state)
		end.err = err
		close(end.done)
	}
	return err
}

// exchange gives a code for tokens. A state is good once, whatever comes of it.
func (c *Credential) exchange(ctx context.Context, r record, p pending, values url.Values) error {
	if err := c.keep(r); err != nil {
		return err
	}
	if err := p.accepts(values); err != nil {
		return err
	}
	t, err := c.grant(ctx, p.Site, p.Client, url.Values{
		"grant_type": {"authorization_code"}, "code": {values.Get("code")}, "code_verifier": {p.Verifier}, "redirect_uri": {p.Redirect},
	})
	if err != nil {
		return saying("Token exchange failed: %w", err)
	}
	c.countStepUp(p.Scopes)
	return c.receive(r, p.Site, p.Client, t, p.Scopes)
}

// accepts checks an answer before anything is done with it: whom it is from (RFC 9207: a plain comparison), and what it says.
func (p pending) accepts(values url.Values) error {
	iss := values.Get("iss")
	switch {
	case iss != "" && iss != p.Site.Issuer && !(p.Site.Vague && egress.Origin(iss) == egress.Origin(p.Site.Issuer)):
		return saying("Authorization failed: the answer is from another issuer, %s", printable(hostOf(iss)))
	case iss == "" && p.Site.NamesIssuer:
		return sentence("Authorization failed: the answer does not say which issuer it is from")
	case values.Has("error"):
		refused := &refusal{code: values.Get("error"), description: values.Get("error_description")}
		if p.Site.Resource != "" && (refused.code == "invalid_request" || refused.code == "invalid_target") {
			return saying(`Authorization failed: %w; where the authorization server does not know the parameter "resource", say "resource": "none" in the row's "auth"`, refused)
		}
		return saying("Authorization failed: %w", refused)
	case values.Get("code") == "":
		return sentence("Missing authorization code")
	}
	return nil
}

// receive keeps what a person, or the client for itself, was granted. Nothing is left of what was granted before: it may be of
// another person, and of another issuer. What the server does not say of scopes is as was asked for.
func (c *Credential) receive(r record, s site, who client, t token, asked []string) error {
	r.Refresh = ""
	c.mu.Lock()
	c.renewals = nil
	c.mu.Unlock()
	return c.takeIn(r, s, who, t, asked)
}

// takeIn keeps a token. A refresh token that comes with none stays good.
func (c *Credential) takeIn(r record, s site, who client, t token, asked []string) error {
	if err := t.bearers(); err != nil {
		return err
	}
	r.Site, r.Client, r.ClientAt = s, who, s.Issuer
	r.Access, r.Issued, r.Expires = t.access, c.desk.o.Now(), time.Time{}
	if t.life > 0 {
		r.Expires = r.Issued.Add(t.life)
	}
	if t.refresh != "" {
		r.Refresh = t.refresh
	}
	r.Scopes, r.Renewing, r.Trouble = asked, time.Time{}, ""
	if t.scopes != nil {
		r.Scopes = t.scopes
	}
	c.mu.Lock()
	c.halted = halt{}
	c.mu.Unlock()
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
	var body []byte
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden { // else it may be a stream without end
		body, _ = io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what there is, is good enough
	}
	return demandIn(resp.StatusCode, resp.Header, body), nil
}
