package oauthtest

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A pendingConsent is a sign-in request whose consent page is open: a person must press Allow or Deny. question
// contains the parameters of the request.
type pendingConsent struct {
	client   Client
	question url.Values
	scope    []string
}

// An issuedCode is the state of an authorization code.
type issuedCode struct {
	family    *tokenFamily
	redirect  string
	challenge string
	method    string
	expires   time.Time
	used      bool
}

// authorize is the authorization endpoint. If the client or its redirect URI is invalid, authorize shows an error page
// and does not redirect the browser.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	k := p.currentKnobs()
	if r.URL.RawQuery == "" && r.Method == http.MethodGet && k.places(OddAuthorize) {
		p.document(p.serverMetadata)(w, r)
		return
	}
	q := r.URL.Query()
	if to := k.Authorization.Forward; to != "" {
		if k.Authorization.ForwardClient != "" {
			q.Set("client_id", k.Authorization.ForwardClient)
		}
		http.Redirect(w, r, p.fillURLs(to)+"?"+q.Encode(), http.StatusFound)
		return
	}
	c, e := p.client(k, q.Get("client_id"))
	switch {
	case e != nil:
		writePage(w, http.StatusBadRequest, "Cannot sign in", e.why)
		return
	case !c.fits(k, q.Get("redirect_uri")):
		writePage(w, http.StatusBadRequest, "Cannot sign in", "The redirect URI is not one of the client's.")
		return
	}
	scope := k.grantable(q.Get("scope"))
	if e := p.requestProblem(k, c, q); e != nil {
		p.sendBack(w, r, k, q, url.Values{"error": {e.code}, "error_description": {e.why}})
		return
	}
	if k.Authorization.Consent {
		p.showConsent(w, pendingConsent{c, q, scope})
		return
	}
	p.redirectWithCode(w, r, k, pendingConsent{c, q, scope})
}

// requestProblem returns the error in a sign-in request of a known client, or nil.
func (p *Provider) requestProblem(k Knobs, c Client, q url.Values) *refusal {
	method := q.Get("code_challenge_method")
	if method == "" && q.Get("code_challenge") != "" {
		method = "plain"
	}
	wanted := map[string]string{"plain": "plain"}[k.Authorization.PKCE]
	wanted = orDefault(wanted, "S256")
	free := method == "" && (k.Authorization.PKCE == "optional" || k.Authorization.PKCE == "unadvertised")
	switch {
	case k.Authorization.Error != "":
		return refuse(k.Authorization.Error, "that is how it is set up")
	case q.Get("response_type") != "code":
		return refuse("unsupported_response_type", "response_type must be code")
	case !c.may("authorization_code"):
		return refuse("unauthorized_client", "the client may not use this grant")
	case method != wanted && !free:
		return refuse("invalid_request", "code_challenge_method must be "+wanted)
	}
	return p.checkResourceParam(k, q)
}

// checkResourceParam returns an error if the parameter resource of a request is missing, unknown or not allowed.
// Authorization.Indicator sets which of these rules apply.
func (p *Provider) checkResourceParam(k Knobs, q url.Values) *refusal {
	resource := q.Get("resource")
	switch k.Authorization.Indicator {
	case "ignore":
		return nil
	case "reject":
		if q.Has("resource") {
			return refuse("invalid_request", "the parameter resource is missing")
		}
		return nil
	}
	switch {
	case resource == "":
		return refuse("invalid_target", "resource is missing")
	case len(q["resource"]) > 1 || !p.issuesFor(resource):
		return refuse("invalid_target", "unknown resource")
	}
	return nil
}

// grantable returns the scopes to grant. asked contains the requested scopes, separated by spaces. If Tokens.Scope is
// set, its scopes are granted in any case. Otherwise the requested scopes that the provider supports are granted. If
// none are requested, the server's scope is granted.
func (k Knobs) grantable(asked string) []string {
	if k.Tokens.Scope != "" {
		return strings.Fields(k.Tokens.Scope)
	}
	if asked == "" {
		return []string{k.serverScope()}
	}
	return slices.DeleteFunc(strings.Fields(asked), func(s string) bool { return !slices.Contains(k.scopes(), s) })
}

// redirectWithCode issues an authorization code and redirects the browser with it to the client's redirect URI.
func (p *Provider) redirectWithCode(w http.ResponseWriter, r *http.Request, k Knobs, asked pendingConsent) {
	q := asked.question
	life := k.Authorization.CodeLife
	if life == 0 {
		life = time.Minute
	}
	text := "code-" + random()
	p.mu.Lock()
	f := p.family(asked.client.ID, k.user(), asked.scope, orDefault(q.Get("resource"), p.ResourceURL))
	p.codes[text] = &issuedCode{
		family: f, redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"),
		method:  q.Get("code_challenge_method"),
		expires: k.clock().Add(life),
	}
	p.counts.Authorizations++
	p.mu.Unlock()
	p.sendBack(w, r, k, q, url.Values{"code": {text}})
}

// sendBack redirects the browser to the client's redirect URI. answer contains the parameters of the authorization
// response, without state and iss.
func (p *Provider) sendBack(w http.ResponseWriter, r *http.Request, k Knobs, q, answer url.Values) {
	u, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		writePage(w, http.StatusBadRequest, "Cannot sign in", "The redirect URI is none.")
		return
	}
	add := func(name, knob, right string) {
		switch {
		case knob == "" && right != "":
			answer.Set(name, right)
		case knob != "" && knob != "-":
			answer.Set(name, p.fillURLs(knob))
		}
	}
	add("state", k.Authorization.State, q.Get("state"))
	add("iss", k.Authorization.Iss, p.Issuer)
	kept := u.Query()
	for name, values := range answer {
		kept[name] = values
	}
	u.RawQuery = kept.Encode()
	http.Redirect(w, r, u.String(), http.StatusSeeOther)
}

// showConsent shows the consent page.
func (p *Provider) showConsent(w http.ResponseWriter, asked pendingConsent) {
	token := random()
	p.mu.Lock()
	p.pending[token] = asked
	p.mu.Unlock()
	u, _ := url.Parse(asked.question.Get("redirect_uri"))
	renderTemplate(w, http.StatusOK, consentPage(), map[string]any{
		"Client": orDefault(asked.client.Name, asked.client.ID), "Host": u.Host, "Scopes": asked.scope, "Token": token,
		"Action": p.URL(Consent),
	})
}

// handleConsent handles the form that the consent page sends.
func (p *Provider) handleConsent(w http.ResponseWriter, r *http.Request) {
	k := p.currentKnobs()
	token := r.PostForm.Get("token")
	p.mu.Lock()
	asked, ok := p.pending[token]
	delete(p.pending, token)
	p.mu.Unlock()
	switch {
	case !ok:
		writePage(w, http.StatusBadRequest, "Cannot sign in", "This page was used before.")
	case r.PostForm.Get("decision") != "allow":
		p.sendBack(w, r, k, asked.question, url.Values{"error": {"access_denied"},
			"error_description": {"The user said no."}})
	default:
		p.redirectWithCode(w, r, k, asked)
	}
}

// writePage sends a page with a title and a sentence.
func writePage(w http.ResponseWriter, status int, title, text string) {
	renderTemplate(w, status, plainPage(), map[string]any{"Title": title, "Text": text})
}

func renderTemplate(w http.ResponseWriter, status int, t *template.Template, data any) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_ = t.Execute(w, data)
}

func plainPage() *template.Template {
	return template.Must(template.New("page").Parse(
		`<!doctype html><title>{{.Title}}</title><h1>{{.Title}}</h1><p>{{.Text}}</p>`))
}

func consentPage() *template.Template {
	return template.Must(template.New("consent").Parse(`<!doctype html><title>Sign in</title><h1>Sign in</h1>
<p><b>{{.Client}}</b> asks to use the test provider as you. You will be sent to {{.Host}}.</p>
<ul>{{range .Scopes}}<li>{{.}}</li>{{end}}</ul>
<form method="post" action="{{.Action}}"><input type="hidden" name="token" value="{{.Token}}">
<button id="allow" name="decision" value="allow">Allow</button>
<button id="deny" name="decision" value="deny">Deny</button></form>`))
}

func devicePage() *template.Template {
	return template.Must(template.New("device").Parse(`<!doctype html><title>Connect a device</title><h1>Connect a device</h1>
<form method="post" action="{{.Action}}"><label>Code <input id="code" name="user_code" value="{{.Code}}"></label>
<button id="allow" name="decision" value="allow">Allow</button>
<button id="deny" name="decision" value="deny">Deny</button></form>`))
}
