package oauthtest

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A tokenFamily represents all tokens from one grant of a person. They become invalid together.
type tokenFamily struct {
	client, subject, resource string
	scope                     []string
	ended                     bool
}

// A refreshToken is the state of a refresh token, valid or spent.
type refreshToken struct {
	family  *tokenFamily
	spent   time.Time // zero if not spent
	expires time.Time // zero means never
}

// An accessTokenState is the state of an access token.
type accessTokenState struct {
	family          *tokenFamily
	id              string
	scope           []string
	audience, actor string
	issued, expires time.Time
	gone            bool
}

// live reports whether the token is valid at the time now.
func (a *accessTokenState) live(now time.Time) bool {
	return !a.gone && !a.family.ended && now.Before(a.expires)
}

func joinScopes(scope []string) string { return strings.Join(scope, " ") }

// family adds a family. The caller holds the lock.
func (p *Provider) family(client, subject string, scope []string, resource string) *tokenFamily {
	f := &tokenFamily{client: client, subject: subject, scope: scope, resource: resource}
	p.families = append(p.families, f)
	return f
}

// end ends a family. The caller holds the lock.
func (p *Provider) end(f *tokenFamily) {
	if !f.ended {
		f.ended = true
		p.counts.Revocations++
	}
}

const (
	grantCode       = "authorization_code"
	grantRefresh    = "refresh_token"
	grantDevice     = "urn:ietf:params:oauth:grant-type:device_code"
	grantClient     = "client_credentials"
	grantExchange   = "urn:ietf:params:oauth:grant-type:token-exchange"
	accessTokenType = "urn:ietf:params:oauth:token-type:access_token"
)

func grantTypes() []string {
	return []string{grantCode, grantRefresh, grantDevice, grantClient, grantExchange}
}

// A tokenIssue describes the tokens in the response to a token request.
type tokenIssue struct {
	family  *tokenFamily
	scope   []string
	refresh bool
	actor   string
	// audience, if not empty, replaces the resource of the family.
	audience string
	// keep, if not empty, is the refresh token of the request, which is sent again in the response.
	keep string
	// exchanged adds the member issued_token_type.
	exchanged bool
}

// token is the token endpoint.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	k := p.currentKnobs()
	c, e := p.authenticate(k, r)
	grant := r.PostForm.Get("grant_type")
	switch {
	case e != nil:
	case k.Tokens.Error != "":
		e = refuse(k.Tokens.Error, "that is how it is set up")
	case !c.may(grant):
		e = refuse("unauthorized_client", "the client may not use this grant")
	case grant != grantDevice && grant != grantExchange:
		e = p.checkResourceParam(k, r.PostForm)
	}
	if e != nil {
		p.refuse(w, k, e)
		return
	}
	var i tokenIssue
	switch grant {
	case grantCode:
		i, e = p.byCode(k, c, r.PostForm)
	case grantRefresh:
		i, e = p.byRefresh(k, c, r.PostForm)
	case grantDevice:
		i, e = p.byDevice(k, c, r.PostForm)
	case grantClient:
		i, e = p.byCredentials(k, c, r.PostForm)
	case grantExchange:
		i, e = p.byExchange(k, c, r.PostForm)
	default:
		e = refuse("unsupported_grant_type", "unsupported grant")
	}
	if e != nil {
		p.refuse(w, k, e)
		return
	}
	p.issue(w, k, c, i)
}

// refuse sends an error response.
func (p *Provider) refuse(w http.ResponseWriter, k Knobs, e *refusal) {
	status := e.status
	if k.Tokens.Errors200 {
		status = http.StatusOK
	}
	if e.code != "authorization_pending" && e.code != "slow_down" {
		p.mu.Lock()
		p.counts.Refusals++
		p.mu.Unlock()
	}
	if k.Tokens.Form {
		writeForm(w, status, url.Values{"error": {e.code}, "error_description": {e.why}})
		return
	}
	writeJSON(w, status, map[string]any{"error": e.code, "error_description": e.why})
}

func writeForm(w http.ResponseWriter, status int, v url.Values) {
	w.Header().Set("Content-Type", "application/x-www-form-urlencoded")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(v.Encode()))
}

// byCode handles a token request with an authorization code. If a code is sent a second time, all tokens that were
// issued for it become invalid.
func (p *Provider) byCode(k Knobs, c Client, q url.Values) (tokenIssue, *refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.codes[q.Get("code")]
	switch {
	case known == nil || known.family.client != c.ID:
		return tokenIssue{}, refuse("invalid_grant", "unknown code")
	case known.used:
		p.counts.Replays++
		p.end(known.family)
		return tokenIssue{}, refuse("invalid_grant", "the code was used before")
	}
	known.used = true
	proof := q.Get("code_verifier")
	if known.method == "S256" {
		sum := sha256.Sum256([]byte(proof))
		proof = encode(sum[:])
	}
	switch {
	case k.clock().After(known.expires):
		return tokenIssue{}, refuse("invalid_grant", "the code has expired")
	case q.Get("redirect_uri") != known.redirect:
		return tokenIssue{}, refuse("invalid_grant", "the redirect URI is another one")
	case known.challenge != "" && proof != known.challenge:
		return tokenIssue{}, refuse("invalid_grant", "the code verifier is wrong")
	case q.Has("resource") && k.Authorization.Indicator == "" && q.Get("resource") != known.family.resource:
		return tokenIssue{}, refuse("invalid_target", "the resource is another one")
	}
	p.counts.Codes++
	return tokenIssue{family: known.family, scope: known.family.scope, refresh: true}, nil
}

// byRefresh handles a token request with a refresh token. If a refresh token is sent again after use, one of the two
// senders may have stolen it. All tokens of its family then become invalid.
func (p *Provider) byRefresh(k Knobs, c Client, q url.Values) (tokenIssue, *refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := q.Get("refresh_token")
	known := p.refresh[text]
	now := k.clock()
	switch {
	case known == nil || known.family.client != c.ID || known.family.ended:
		return tokenIssue{}, refuse("invalid_grant", "the refresh token is not good")
	case !known.expires.IsZero() && now.After(known.expires):
		return tokenIssue{}, refuse("invalid_grant", "the refresh token has expired")
	case !known.spent.IsZero() && now.Sub(known.spent) >= k.Tokens.Grace:
		p.counts.Reuses++
		p.end(known.family)
		return tokenIssue{}, refuse("invalid_grant", "the refresh token was used before")
	case q.Has("resource") && k.Authorization.Indicator == "" && q.Get("resource") != known.family.resource:
		return tokenIssue{}, refuse("invalid_target", "the resource is another one")
	}
	scope := known.family.scope
	if asked := q.Get("scope"); asked != "" {
		scope = strings.Fields(asked)
		if slices.ContainsFunc(scope, func(s string) bool { return !slices.Contains(known.family.scope, s) }) {
			return tokenIssue{}, refuse("invalid_scope", "more than was granted")
		}
	}
	p.counts.Refreshes++
	i := tokenIssue{family: known.family, scope: scope}
	switch k.Tokens.Rotation {
	case "same":
		i.keep = text
	case "omit":
	default:
		if known.spent.IsZero() {
			known.spent = now
		}
		i.refresh = true
	}
	return i, nil
}

// issue issues the tokens and sends the response.
func (p *Provider) issue(w http.ResponseWriter, k Knobs, c Client, i tokenIssue) {
	answer := map[string]any{"token_type": orDefault(k.Tokens.Type, "Bearer"), "scope": joinScopes(i.scope)}
	text, err := p.makeAccess(k, i)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer["access_token"] = text
	if token := p.makeRefresh(k, c, i); token != "" {
		answer["refresh_token"] = token
	}
	seconds := int(k.life() / time.Second)
	switch form := k.Tokens.ExpiresIn; form {
	case "":
		answer["expires_in"] = seconds
	case ExpiresAbsent:
	case ExpiresText:
		answer["expires_in"] = strconv.Itoa(seconds)
	case ExpiresFloat:
		answer["expires_in"] = json.RawMessage(strconv.Itoa(seconds) + ".0")
	default:
		answer["expires_in"] = json.RawMessage(form)
	}
	if k.Tokens.NoType {
		delete(answer, "token_type")
	}
	if k.Tokens.NoScope {
		delete(answer, "scope")
	}
	if i.exchanged {
		answer["issued_token_type"] = accessTokenType
	}
	if !k.Tokens.Form {
		writeJSON(w, http.StatusOK, answer)
		return
	}
	form := url.Values{}
	for name, value := range answer {
		b, _ := json.Marshal(value)
		form.Set(name, strings.Trim(string(b), `"`))
	}
	writeForm(w, http.StatusOK, form)
}

func (p *Provider) makeAccess(k Knobs, i tokenIssue) (string, error) {
	audience := orDefault(p.fillURLs(k.Tokens.Audience), orDefault(i.audience, i.family.resource))
	now := k.clock()
	a := &accessTokenState{
		family: i.family, id: random(), scope: i.scope, audience: audience, actor: i.actor, issued: now,
		expires: now.Add(k.life()),
	}
	text := "access-" + a.id
	if !k.Tokens.Opaque {
		payload, err := json.Marshal(p.claims(k, a))
		if err != nil {
			return "", err
		}
		if text, err = p.keys.sign(orDefault(k.Tokens.Alg, "ES256"), nil, payload); err != nil {
			return "", err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.access[text] = a
	p.counts.Tokens++
	return text, nil
}

// makeRefresh returns the refresh token of a response, or "".
func (p *Provider) makeRefresh(k Knobs, c Client, i tokenIssue) string {
	t := k.Tokens
	switch {
	case i.keep != "":
		return i.keep
	case !i.refresh || t.NoRefresh || !c.may(grantRefresh) || t.Offline && !slices.Contains(i.family.scope,
		"offline_access"):
		return ""
	}
	known := &refreshToken{family: i.family}
	if t.RefreshLife != 0 {
		known.expires = k.clock().Add(t.RefreshLife)
	}
	text := "refresh-" + random()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh[text] = known
	return text
}
