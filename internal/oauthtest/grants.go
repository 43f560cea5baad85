package oauthtest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A device is a device sign-in that waits for the approval of a person.
type device struct {
	client   string
	user     string // the code that the person types
	scope    []string
	resource string
	expires  time.Time
	asked    int
	allowed  bool
	denied   bool
	used     bool
}

// deviceStart is the device authorization endpoint of RFC 8628.
func (p *Provider) deviceStart(w http.ResponseWriter, r *http.Request) {
	k := p.currentKnobs()
	if k.Device.Absent {
		http.NotFound(w, r)
		return
	}
	c, e := p.authenticate(k, r)
	if e == nil {
		e = p.checkResourceParam(k, r.PostForm)
	}
	if e == nil && !c.may(grantDevice) {
		e = refuse("unauthorized_client", "the client may not use this grant")
	}
	if e != nil {
		p.refuse(w, k, e)
		return
	}
	life := k.Device.Life
	if life == 0 {
		life = 10 * time.Minute
	}
	text := random()
	d := &device{
		client: c.ID, user: text[:4] + "-" + text[4:8], scope: k.grantable(r.PostForm.Get("scope")),
		resource: orDefault(r.PostForm.Get("resource"), p.ResourceURL), expires: k.clock().Add(life),
	}
	p.mu.Lock()
	p.devices["device-"+text] = d
	p.mu.Unlock()
	answer := map[string]any{
		"device_code": "device-" + text, "user_code": d.user, "verification_uri": p.URL(DevicePage),
		"expires_in": int(life / time.Second),
	}
	if !k.Device.NoComplete {
		answer["verification_uri_complete"] = p.URL(DevicePage) + "?user_code=" + d.user
	}
	if k.Device.Interval >= 0 {
		answer["interval"] = max(k.Device.Interval, 1)
	}
	writeJSON(w, http.StatusOK, answer)
}

// devicePage is the page on which the person enters the code.
func (p *Provider) devicePage(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodPost:
		renderTemplate(w, http.StatusOK, devicePage(), map[string]any{"Action": p.URL(DevicePage),
			"Code": r.URL.Query().Get("user_code")})
	case !p.decide(r.PostForm.Get("user_code"), r.PostForm.Get("decision") == "allow"):
		writePage(w, http.StatusBadRequest, "Cannot connect", "Unknown code.")
	default:
		writePage(w, http.StatusOK, "Done", "You can close this page.")
	}
}

// Approve approves the device with a user code, as a person would. It returns false for an unknown code.
func (p *Provider) Approve(userCode string) bool { return p.decide(userCode, true) }

// Deny refuses the device with a user code, as a person would. It returns false for an unknown code.
func (p *Provider) Deny(userCode string) bool { return p.decide(userCode, false) }

func (p *Provider) decide(userCode string, allow bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.devices {
		if strings.EqualFold(d.user, userCode) {
			d.allowed, d.denied = allow, !allow
			return true
		}
	}
	return false
}

// byDevice handles a token request with a device code.
func (p *Provider) byDevice(k Knobs, c Client, q url.Values) (tokenIssue, *refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.devices[q.Get("device_code")]
	if d == nil || d.client != c.ID || d.used {
		return tokenIssue{}, refuse("invalid_grant", "unknown device code")
	}
	d.asked++
	switch {
	case k.clock().After(d.expires):
		return tokenIssue{}, refuse("expired_token", "the device code has expired")
	case d.denied || k.Device.Deny:
		return tokenIssue{}, refuse("access_denied", "the user said no")
	case d.asked <= k.Device.SlowDowns:
		return tokenIssue{}, refuse("slow_down", "ask less often")
	case d.asked <= k.Device.SlowDowns+k.Device.Pendings || !d.allowed && !k.Device.Auto:
		return tokenIssue{}, refuse("authorization_pending", "it is not approved yet")
	}
	d.used = true
	p.counts.Devices++
	return tokenIssue{family: p.family(c.ID, k.user(), d.scope, d.resource), scope: d.scope, refresh: true}, nil
}

// byCredentials handles a token request of a client that acts for itself (grant type client_credentials).
func (p *Provider) byCredentials(k Knobs, c Client, q url.Values) (tokenIssue, *refusal) {
	if c.Secret == "" {
		return tokenIssue{}, refuse("unauthorized_client", "a client without a secret cannot")
	}
	scope := k.grantable(q.Get("scope"))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Credentials++
	return tokenIssue{family: p.family(c.ID, c.ID, scope, orDefault(q.Get("resource"), p.ResourceURL)),
		scope: scope}, nil
}

// byExchange handles a token exchange (RFC 8693). The new token has the audience that the request names, and the
// subject of the exchanged token. Its scopes are among those of the exchanged token.
func (p *Provider) byExchange(k Knobs, c Client, q url.Values) (tokenIssue, *refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	subject := p.access[q.Get("subject_token")]
	target := orDefault(q.Get("resource"), q.Get("audience"))
	switch {
	case c.Secret == "":
		return tokenIssue{}, refuse("unauthorized_client", "a client without a secret cannot")
	case q.Get("subject_token_type") != accessTokenType:
		return tokenIssue{}, refuse("invalid_request", "subject_token_type must be an access token")
	case subject == nil || !subject.live(k.clock()):
		return tokenIssue{}, refuse("invalid_grant", "the subject token is not good")
	case !p.issuesFor(target):
		return tokenIssue{}, refuse("invalid_target", "unknown resource")
	}
	actor := c.ID
	if text := q.Get("actor_token"); text != "" {
		known := p.access[text]
		if known == nil || !known.live(k.clock()) {
			return tokenIssue{}, refuse("invalid_grant", "the actor token is not good")
		}
		actor = known.family.subject
	}
	scope := subject.scope
	if asked := q.Get("scope"); asked != "" {
		scope = strings.Fields(asked)
		if slices.ContainsFunc(scope, func(s string) bool { return !slices.Contains(subject.scope, s) }) {
			return tokenIssue{}, refuse("invalid_scope", "more than the subject has")
		}
	}
	p.counts.Exchanges++
	return tokenIssue{family: subject.family, scope: scope, actor: actor, audience: target, exchanged: true}, nil
}

// revoke is the revocation endpoint of RFC 7009. If a refresh token is revoked, all tokens of its family become
// invalid.
func (p *Provider) revoke(w http.ResponseWriter, r *http.Request) {
	k := p.currentKnobs()
	c, e := p.authenticate(k, r)
	if e != nil {
		p.refuse(w, k, e)
		return
	}
	p.forget(c.ID, r.PostForm.Get("token"))
	w.WriteHeader(http.StatusOK)
}

// forget revokes a token of the given client.
func (p *Provider) forget(client, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.refresh[text]; known != nil && known.family.client == client {
		p.end(known.family)
	}
	if known := p.access[text]; known != nil && known.family.client == client {
		known.gone = true
	}
}

// introspect is the introspection endpoint of RFC 7662, for clients with a secret.
func (p *Provider) introspect(w http.ResponseWriter, r *http.Request) {
	k := p.currentKnobs()
	c, e := p.authenticate(k, r)
	if e == nil && c.Secret == "" {
		e = &refusal{"invalid_client", "a client without a secret cannot", http.StatusUnauthorized}
	}
	if e != nil {
		p.refuse(w, k, e)
		return
	}
	p.mu.Lock()
	known := p.access[r.PostForm.Get("token")]
	active := known != nil && known.live(k.clock())
	p.mu.Unlock()
	answer := map[string]any{"active": active}
	if active {
		answer = p.claims(k, known)
		answer["active"], answer["token_type"] = true, "Bearer"
		p.overlayMembers(answer, k.Tokens.Introspection)
	}
	writeJSON(w, http.StatusOK, answer)
}

// ExpireAccess makes all issued access tokens invalid. Refresh tokens stay valid.
func (p *Provider) ExpireAccess() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.access {
		a.gone = true
	}
}

// RevokeAll revokes every grant.
func (p *Provider) RevokeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.families {
		p.end(f)
	}
}

// A Session describes a grant of a person to a client, and whether it has ended.
type Session struct {
	Client, Subject, Resource string
	Scope                     []string
	// Ended is true if the session was revoked, or ended because a used refresh token was sent again.
	Ended bool
}

// Sessions returns all grants, the oldest first.
func (p *Provider) Sessions() []Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Session
	for _, f := range p.families {
		all = append(all, Session{f.client, f.subject, f.resource, slices.Clone(f.scope), f.ended})
	}
	return all
}

// A Grant describes the access token that Issue returns.
type Grant struct {
	// Empty fields have defaults: the provider's user, the client "issued", the MCP server, and the server's scope.
	Subject, Client, Audience string
	Scope                     []string
}

// Issue returns an access token without a sign-in. The provider accepts the token like any other.
func (p *Provider) Issue(g Grant) (string, error) {
	k := p.currentKnobs()
	if g.Scope == nil {
		g.Scope = []string{k.serverScope()}
	}
	p.mu.Lock()
	f := p.family(orDefault(g.Client, "issued"), orDefault(g.Subject, k.user()), g.Scope,
		orDefault(g.Audience, p.ResourceURL))
	p.mu.Unlock()
	return p.makeAccess(k, tokenIssue{family: f, scope: g.Scope})
}
