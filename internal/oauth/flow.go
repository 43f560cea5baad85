package oauth

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
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// A Flow is a sign-in that waits for a person; it implements drawbridge.PendingSignIn.
type Flow struct {
	url, code, issuer, elsewhere string

	c          *Credential
	pollDevice func(context.Context) error
	// state is the OAuth parameter that identifies the sign-in. The goroutines of this process that wait for the
	// sign-in share ended. Both are empty for a sign-in on another device.
	state string
	ended *flowEnd
}

// A flowEnd describes the end of a sign-in that began at the time started. done is closed when the sign-in ends. Before
// that, err is set: nil if the sign-in succeeded.
type flowEnd struct {
	done    chan struct{}
	started time.Time
	err     error
}

var _ drawbridge.PendingSignIn = (*Flow)(nil)

// SignInAddress returns the address at which the person signs in, the code to enter there (may be empty), and the
// issuer.
func (f *Flow) SignInAddress() (url, code, issuer string) { return f.url, f.code, f.issuer }

// Elsewhere lists the endpoints whose origin differs from the issuer's (see authServer.elsewhere); it returns "" if
// there are none.
func (f *Flow) Elsewhere() string { return f.elsewhere }

var _ drawbridge.SignInManager = (*Credential)(nil)

// BeginSignIn begins a sign-in. If device is true, the person signs in on another device. Otherwise the response
// arrives from a browser on this machine, or the person pastes it.
func (c *Credential) BeginSignIn(ctx context.Context, device bool) (drawbridge.PendingSignIn, error) {
	switch {
	case c.server.Grant != CodeGrant:
		return nil, errUnattended
	case c.server.Borrowed:
		return nil, borrowedError(c.server)
	}
	begin := c.beginSignIn
	if device {
		begin = c.beginDevice
	}
	flow, err := begin(ctx)
	if err != nil {
		return nil, signInError(err)
	}
	return flow, nil
}

func (c *Credential) lockAndSave(r credentialRecord) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saveRecord(r)
}

// newFlow returns a Flow for a pending sign-in. All flows of the same sign-in share one flowEnd.
func (c *Credential) newFlow(p pendingSignIn) *Flow {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.openFlows == nil {
		c.openFlows = map[string]*flowEnd{}
	}
	end := c.openFlows[p.State]
	if end == nil {
		end = &flowEnd{done: make(chan struct{}), started: p.Created}
		c.openFlows[p.State] = end
		c.manager.callbacks.expect(p.State, c.callbackPathFor(p), c.finishSignIn)
	}
	return &Flow{url: p.URL, issuer: cmp.Or(hostOf(p.AuthServer.Issuer), hostOf(p.URL)),
		elsewhere: p.AuthServer.elsewhere(""), c: c, state: p.State, ended: end}
}

// callbackPathFor returns the path of the browser request that ends a pending sign-in.
func (c *Credential) callbackPathFor(p pendingSignIn) string {
	if u, err := url.Parse(p.Redirect); err == nil && c.server.CallbackPath == "" {
		return "/" + strings.TrimPrefix(u.Path, "/")
	}
	return "/" + strings.TrimPrefix(c.server.CallbackPath, "/")
}

// newPendingSignIn returns a pending sign-in with a new state, a new PKCE verifier and the address of the sign-in page.
func (c *Credential) newPendingSignIn(s authServer, who clientIdentity, scopes, redirects []string) pendingSignIn {
	redirect := redirects[0]
	if len(who.Redirects) > 0 {
		redirect = who.Redirects[0]
	}
	p := pendingSignIn{
		State: rand.Text(), Verifier: oauth2.GenerateVerifier(), Redirect: redirect, Scopes: scopes,
		AuthServer: s, Client: who,
	}
	p.Created, p.Seen = c.manager.times()
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(p.Verifier)}
	if s.Resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", s.Resource))
	}
	if slices.Contains(scopes, "offline_access") {
		// without this parameter, OpenID providers omit the refresh token
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	asked := oauth2.Config{ClientID: who.ID, RedirectURL: redirect, Scopes: scopes}
	if sent, err := url.ParseQuery(strings.TrimPrefix(asked.AuthCodeURL(p.State, options...), "?")); err == nil {
		asked.Endpoint.AuthURL = withoutParams(s.Authorization, sent)
	}
	p.URL = asked.AuthCodeURL(p.State, options...)
	return p
}

// chooseScopes returns the scopes to request (2025-11-25, scope selection). wanted are the scopes that the server
// requires for a call, if any. If the server's configuration sets scopes, the result is these scopes and wanted.
// Otherwise it is the first list that is not empty: wanted, the scopes in the challenge, the scopes of the resource. If
// the configuration sets an empty list, the result is wanted. offline_access is added if a refresh token requires it,
// unless the configuration sets scopes.
func (c *Credential) chooseScopes(s authServer, demand AuthChallenge, wanted []string) []string {
	scopes := wanted
	switch named := strings.Fields(bearerParams(demand.Challenges)["scope"]); {
	case c.server.Scopes != "":
		scopes = mergeScopes(strings.Fields(c.server.Scopes), wanted)
	case len(wanted) > 0, c.server.NoScopes:
	case len(named) > 0:
		scopes = named
	default:
		scopes = s.Scopes
	}
	// offline_access alone would replace the default scopes
	if s.OfflineScope && c.server.Scopes == "" && len(scopes) > 0 {
		scopes = mergeScopes(scopes, []string{"offline_access"})
	}
	return slices.Clone(scopes)
}

// redirectURIs returns a list with the redirect URI to use. If the redirect arrives on this machine, it also opens the
// listener that receives it.
func (c *Credential) redirectURIs(r credentialRecord) ([]string, error) {
	path := "/" + strings.TrimPrefix(cmp.Or(c.server.CallbackPath, "callback"), "/")
	if c.server.RedirectURI != "" {
		u, err := url.Parse(c.server.RedirectURI)
		if err != nil || safehttp.CheckURL(c.server.RedirectURI) != nil {
			return nil, errors.New(
				"the row's redirect_uri is not a valid address: use https, or http on the loopback interface")
		}
		port, _ := strconv.Atoi(cmp.Or(u.Port(), strconv.Itoa(c.server.CallbackPort)))
		if safehttp.IsLoopback(u.Hostname()) && u.Scheme == "http" || c.server.CallbackPort != 0 {
			if _, err := c.manager.callbacks.listen(cmp.Or(c.server.CallbackPort, port), true); err != nil {
				return nil, err
			}
		}
		return []string{c.server.RedirectURI}, nil
	}
	want := c.server.CallbackPort
	if want == 0 && len(r.Client.Redirects) > 0 {
		if u, err := url.Parse(r.Client.Redirects[0]); err == nil {
			want, _ = strconv.Atoi(u.Port()) // the port that the client is registered with
		}
	}
	port, err := c.manager.callbacks.listen(want, false)
	if err != nil {
		return nil, err
	}
	host := "127.0.0.1"
	if len(r.Client.Redirects) > 0 && strings.Contains(r.Client.Redirects[0], "://localhost:") {
		host = "localhost"
	}
	return []string{"http://" + net.JoinHostPort(host, strconv.Itoa(port)) + path}, nil
}

// Wait waits until the sign-in has ended, and returns nil if it succeeded. The browser's response may also arrive at
// another process. Wait therefore polls the stored credential for a new token.
func (f *Flow) Wait(ctx context.Context) error {
	if f.pollDevice != nil {
		return signInError(f.pollDevice(ctx))
	}
	tick := time.NewTicker(vaultPollInterval)
	defer tick.Stop()
	for {
		select {
		case <-f.ended.done:
			return signInError(f.ended.err)
		case <-ctx.Done():
			return signInError(ctx.Err())
		case <-tick.C:
			r, err := f.c.currentRecord()
			if err == nil && r.Access != "" && !r.Issued.Before(f.ended.started) && !r.hasPending(f.state) {
				return nil
			}
		}
	}
}

// CompleteWithURL completes the sign-in. text is the address at which the browser ended, pasted by the person.
func (f *Flow) CompleteWithURL(ctx context.Context, text string) error {
	return f.c.CompleteWithURL(ctx, text)
}

// CompleteWithURL completes a sign-in that this process or another process began. text is the address at which the
// browser ended.
func (c *Credential) CompleteWithURL(ctx context.Context, text string) error {
	values, err := parsePasted(text)
	if err != nil {
		return err
	}
	return signInError(c.finishSignIn(ctx, values))
}

// finishSignIn completes the pending sign-in whose state is in values, and wakes the goroutines that wait for it.
func (c *Credential) finishSignIn(ctx context.Context, values url.Values) error {
	unlock, err := c.lockCredential(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := c.currentRecord()
	if err != nil {
		return err
	}
	r.dropExpiredPending(c.manager.times())
	state := values.Get("state")
	p, ok := r.takePending(state)
	if !ok {
		return userError("State mismatch - possible CSRF attack")
	}
	err = c.exchangeCode(ctx, r, p, values)
	c.manager.callbacks.forget(state)
	c.mu.Lock()
	defer c.mu.Unlock()
	if end := c.openFlows[state]; end != nil {
		delete(c.openFlows, state)
		end.err = err
		close(end.done)
	}
	return err
}

// exchangeCode exchanges a code for tokens. It first stores r, from which the caller has removed the pending sign-in.
// The state thus cannot be used again, even if the exchange fails.
func (c *Credential) exchangeCode(ctx context.Context, r credentialRecord, p pendingSignIn, values url.Values) error {
	if err := c.lockAndSave(r); err != nil {
		return err
	}
	if err := p.checkResponse(values); err != nil {
		return err
	}
	if err := c.checkEndpoints(r, p.AuthServer, p.URL); err != nil {
		return err
	}
	t, err := c.requestToken(ctx, p.AuthServer, p.Client, url.Values{
		"grant_type": {"authorization_code"}, "code": {values.Get("code")}, "code_verifier": {p.Verifier},
		"redirect_uri": {p.Redirect},
	})
	if err != nil {
		return userErrorf("Token exchange failed: %w", err)
	}
	c.countScopeRequest(p.Scopes)
	return c.storeGrant(r, p.AuthServer, p.Client, t, p.Scopes)
}

// checkResponse returns an error if an authorization response comes from another issuer, reports an error or has no
// code. It compares issuers as texts (RFC 9207), or by origin if the issuer was guessed.
func (p pendingSignIn) checkResponse(values url.Values) error {
	iss := values.Get("iss")
	switch {
	case iss != "" && iss != p.AuthServer.Issuer && !(p.AuthServer.IssuerGuessed &&
		safehttp.Origin(iss) == safehttp.Origin(p.AuthServer.Issuer)):
		return userErrorf("Authorization failed: the response is from another issuer, %s", printable(hostOf(iss)))
	case iss == "" && p.AuthServer.NamesIssuer:
		return userError("Authorization failed: the response does not name its issuer")
	case values.Has("error"):
		refused := &oauthError{code: values.Get("error"), description: values.Get("error_description")}
		if p.AuthServer.Resource != "" && (refused.code == "invalid_request" || refused.code == "invalid_target") {
			return userErrorf(
				`Authorization failed: %w; if the authorization server does not know the parameter "resource", set "resource": "none" in the row's "auth"`, refused)
		}
		return userErrorf("Authorization failed: %w", refused)
	case values.Get("code") == "":
		return userError("Missing authorization code")
	}
	return nil
}

// storeGrant stores the token of a new grant. It drops the refresh token of an earlier grant, which may belong to
// another person or issuer. If the response does not name the granted scopes, the requested scopes asked are stored as
// granted.
func (c *Credential) storeGrant(r credentialRecord, s authServer, who clientIdentity, t tokenResponse,
	asked []string) error {
	r.Refresh = ""
	c.mu.Lock()
	c.recentRenewals = nil
	c.mu.Unlock()
	return c.storeToken(r, s, who, t, asked)
}

// storeToken stores a token, and keeps the stored refresh token if t has none. asked are the requested scopes, which
// are stored if t does not name the granted scopes.
func (c *Credential) storeToken(r credentialRecord, s authServer, who clientIdentity, t tokenResponse,
	asked []string) error {
	if err := t.checkBearer(); err != nil {
		return err
	}
	r.AuthServer, r.Client, r.ClientIssuer = s, who, s.Issuer
	r.Access, r.Issued, r.Expires = t.access, c.manager.o.Now(), time.Time{}
	if t.lifetime > 0 {
		r.Expires = r.Issued.Add(t.lifetime)
	}
	if t.refresh != "" {
		r.Refresh = t.refresh
	}
	r.Scopes, r.RenewalStarted, r.SignedOutReason = asked, time.Time{}, ""
	if t.scopes != nil {
		r.Scopes = t.scopes
	}
	c.mu.Lock()
	c.pause = renewalPause{}
	c.mu.Unlock()
	return c.lockAndSave(r)
}

// currentChallenge returns the server's last challenge. If there is none yet, it sends a request to the server to get
// one.
func (c *Credential) currentChallenge(ctx context.Context) (AuthChallenge, error) {
	c.mu.Lock()
	demand := c.lastChallenge
	c.mu.Unlock()
	if demand.Status != 0 || c.server.URL == "" {
		return demand, nil
	}
	const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"drawbridge","version":"0"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.URL, strings.NewReader(hello))
	if err != nil {
		return AuthChallenge{}, withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.client.Do(req)
	if err != nil {
		return AuthChallenge{}, fmt.Errorf("ask the server: %w", withoutURL(err))
	}
	defer resp.Body.Close()
	var body []byte
	// the body of any other response may be an endless stream
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		body, _ = io.ReadAll(io.LimitReader(resp.Body, maxChallengeBody)) // a part of the body is enough
	}
	return parseChallenge(resp.StatusCode, resp.Header, body), nil
}
