package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// demandIn reads a refusal.
func demandIn(status int, header http.Header, body []byte) Demand {
	return Demand{
		Status: status, Challenges: header.Values("Www-Authenticate"), Hint: header.Get("Mcp-Auth-Server"), Body: body[:min(len(body), maxRefusal)],
	}
}

// maxRefusal is how much of the body of a refusal is looked at.
const maxRefusal = 16 << 10

// renew sees to it that there is another token than the one used. One of all that want it does the work, in whichever
// process; the others find what it got. The error is a *NeededError where only a person can help, and a laterError where
// it may go well another time.
func (c *Credential) renew(ctx context.Context, used string, refused bool) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := c.current()
	now := c.desk.o.Now()
	switch {
	case err != nil:
		return err
	case r.Access != "" && r.Access != used:
		return nil
	case !refused && r.Access != "" && r.freshFor(now) > 0:
		return nil
	case c.site.Vouched:
		return c.byExchange(ctx, r)
	case c.site.Grant != Code:
		return c.unattended(ctx, r)
	case r.Refresh == "":
		return c.over(r, nil)
	}
	cut := !r.Renewing.IsZero()
	r.Renewing = now
	if err := c.keep(r); err != nil {
		return err
	}
	token, err := c.grant(ctx, r.Site, r.Client, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {r.Refresh}})
	if err == nil {
		return c.receive(r, r.Site, r.Client, token, r.Scopes)
	}
	if refusal, ok := errors.AsType[*refusal](err); ok && refusal.final() {
		why := saying("MCP OAuth refresh failed: %d %w", refusal.status, refusal)
		if cut {
			why = fmt.Errorf("a process ended while it renewed the sign-in, and what it got is lost: %w", refusal)
		}
		return c.over(r, why)
	}
	if ctx.Err() == nil {
		r.Renewing = time.Time{} // the server was not reached, or did not do it: the token is still good
		if !cut {
			_ = c.keep(r)
		}
	}
	return laterError{err}
}

// over keeps that nobody is signed in any more, and says so.
func (c *Credential) over(r record, why error) error {
	needed := &NeededError{Server: c.site.ID, Err: why, used: markOf("")}
	if why == nil && r.Trouble != "" {
		needed.Err = errors.New(r.Trouble)
	}
	if r.Access == "" && r.Refresh == "" {
		return needed
	}
	text := "the sign-in has expired"
	if why != nil {
		text = why.Error()
	}
	r.forget(text)
	if err := c.keep(r); err != nil {
		return err
	}
	needed.Err = errors.New(text)
	return needed
}

// grant asks a token endpoint for a token. The package oauth2 has no way to say more with a refresh token than the token:
// its client credentials take any grant, and all its parameters.
func (c *Credential) grant(ctx context.Context, s site, who client, values url.Values) (*oauth2.Token, error) {
	if s.Resource != "" && !values.Has("resource") {
		values.Set("resource", s.Resource)
	}
	if who.Key != "" {
		if err := who.sign(c.desk.o.Now(), s, values); err != nil {
			return nil, err
		}
	}
	config := clientcredentials.Config{ClientID: who.ID, ClientSecret: who.secret(), TokenURL: s.Token, EndpointParams: values, AuthStyle: who.style(s)}
	token, err := config.Token(c.through(ctx))
	if err != nil {
		return nil, answered(err)
	}
	return token, nil
}

// beginDevice begins a sign-in on another device: the person opens an address there and enters a code. The error says so
// where the authorization server offers no such thing.
func (c *Credential) beginDevice(ctx context.Context) (*Flow, error) {
	if c.site.Grant != Code {
		return nil, errUnattended
	}
	r, err := c.current()
	if err != nil {
		return nil, err
	}
	demand, err := c.asking(ctx)
	if err != nil {
		return nil, err
	}
	s, err := c.discover(ctx, demand)
	switch {
	case err != nil:
		return nil, err
	case s.Device == "":
		return nil, errors.New("the authorization server offers no sign-in by device")
	}
	who, err := c.identify(ctx, s, r, []string{"http://127.0.0.1/callback"})
	if err != nil {
		return nil, err
	}
	scopes := c.scopesFor(s, demand, nil)
	var options []oauth2.AuthCodeOption
	if s.Resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", s.Resource))
	}
	config := c.oauth(s, who, scopes, "")
	answer, err := config.DeviceAuth(c.through(ctx), options...)
	if err != nil {
		return nil, fmt.Errorf("begin a sign-in by device: %w", answered(err))
	}
	address := answer.VerificationURI
	if err := checkURL(address); err != nil {
		return nil, fmt.Errorf("the address to sign in at %w", err)
	}
	f := &Flow{url: address, code: printable(answer.UserCode), issuer: hostOf(s.Issuer), c: c}
	f.device = func(ctx context.Context) error {
		token, err := config.DeviceAccessToken(c.through(ctx), answer, options...)
		if err != nil {
			return answered(err)
		}
		unlock, err := c.lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		r, err := c.current()
		if err != nil {
			return err
		}
		return c.receive(r, s, who, token, scopes)
	}
	return f, nil
}

// SignOut signs out: the tokens are revoked where the authorization server can do that (RFC 7009), and all that is kept is
// removed. Why says why they may still be good elsewhere, nil where they are not. The error is ErrNobody where there is
// nothing, or the vault's.
func (c *Credential) SignOut(ctx context.Context) (why, err error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r, broken := c.current()
	switch {
	case broken != nil:
		why = broken
	case r.Access == "" && r.Refresh == "" && r.Client.ID == "" && len(r.Pending) == 0:
		return nil, ErrNobody
	case r.Access != "" || r.Refresh != "":
		why = c.revoke(ctx, r)
	}
	if err := c.vault.Delete(c.name); err != nil {
		return why, fmt.Errorf("remove the credential: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.asked, c.demand = false, nil, Demand{}
	close(c.changed)
	c.changed = make(chan struct{})
	return why, nil
}

func (c *Credential) revoke(ctx context.Context, r record) error {
	if r.Site.Revocation == "" {
		return errors.New("the authorization server has no way to revoke tokens")
	}
	for kind, token := range map[string]string{"refresh_token": r.Refresh, "access_token": r.Access} {
		if token == "" {
			continue
		}
		if err := c.revokeOne(ctx, r, kind, token); err != nil {
			return err
		}
	}
	return nil
}

func (c *Credential) revokeOne(ctx context.Context, r record, kind, token string) error {
	values := url.Values{"token": {token}, "token_type_hint": {kind}}
	style := r.Client.style(r.Site)
	if style != oauth2.AuthStyleInHeader {
		values.Set("client_id", r.Client.ID)
		if secret := r.Client.secret(); secret != "" {
			values.Set("client_secret", secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Site.Revocation, strings.NewReader(values.Encode()))
	if err != nil {
		return plain(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if style == oauth2.AuthStyleInHeader {
		req.SetBasicAuth(url.QueryEscape(r.Client.ID), url.QueryEscape(r.Client.secret()))
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("revoke the tokens: %w", plain(err))
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= 400 {
		return fmt.Errorf("revoke the tokens: status %d", resp.StatusCode)
	}
	return nil
}
