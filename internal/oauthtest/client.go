package oauthtest

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A refusal is an OAuth error response: a code, a description and the HTTP status.
type refusal struct {
	code, why string
	status    int
}

func refuse(code, why string) *refusal { return &refusal{code, why, http.StatusBadRequest} }

func random() string { return rand.Text() }

// client returns the client with the given ID: a registered client, or, if the knobs allow it, the client that the
// metadata document at the URL id describes.
func (p *Provider) client(k Knobs, id string) (Client, *refusal) {
	p.mu.Lock()
	c, ok := p.clients[id]
	p.mu.Unlock()
	switch {
	case ok:
		return c, nil
	case !k.Registration.Documents || !strings.HasPrefix(id, "http"):
		return Client{}, &refusal{"invalid_client", "unknown client", http.StatusUnauthorized}
	}
	return p.documented(id)
}

// documented returns the client that the metadata document at the URL id describes.
func (p *Provider) documented(id string) (Client, *refusal) {
	text, ok := p.options.Documents[id]
	if !ok {
		response, err := p.HTTP().Get(id)
		if err != nil {
			return Client{}, refuse("invalid_client", "the client's document cannot be fetched")
		}
		defer response.Body.Close()
		if text, err = io.ReadAll(io.LimitReader(response.Body, 5<<10)); err != nil ||
			response.StatusCode != http.StatusOK {
			return Client{}, refuse("invalid_client", "the client's document is not there")
		}
	}
	var d registration
	if err := json.Unmarshal(text, &d); err != nil || d.ClientID != id {
		return Client{}, refuse("invalid_client", "the client's document is of another client")
	}
	return Client{ID: id, Method: "none", Name: d.Name, Redirects: d.Redirects, Grants: d.Grants}, nil
}

// A registration contains the metadata of a client (RFC 7591).
type registration struct {
	ClientID  string   `json:"client_id"`
	Name      string   `json:"client_name"`
	Redirects []string `json:"redirect_uris"`
	Grants    []string `json:"grant_types"`
	Method    string   `json:"token_endpoint_auth_method"`
}

// register is the endpoint for dynamic client registration.
func (p *Provider) register(w http.ResponseWriter, r *http.Request) {
	k := p.currentKnobs()
	reg := k.Registration
	switch {
	case reg.Absent:
		http.NotFound(w, r)
		return
	case reg.InitialToken != "" && r.Header.Get("Authorization") != "Bearer "+reg.InitialToken:
		w.Header().Set("WWW-Authenticate", "Bearer")
		p.refuse(w, k, &refusal{"invalid_token", "registration needs a token", http.StatusUnauthorized})
		return
	}
	var asked registration
	var all map[string]any
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &asked) != nil || json.Unmarshal(body, &all) != nil {
		p.refuse(w, k, refuse("invalid_client_metadata", "the metadata is no JSON object"))
		return
	}
	if e := reg.unfit(asked); e != nil {
		p.refuse(w, k, e)
		return
	}
	c := Client{ID: "client-" + random(), Name: asked.Name, Redirects: asked.Redirects, Grants: asked.Grants,
		Method: orDefault(asked.Method, "client_secret_basic")}
	if reg.Secret && c.Method == "none" {
		c.Method = "client_secret_post"
	}
	if c.Method != "none" {
		c.Secret = "secret-" + random()
		all["client_secret"], all["client_secret_expires_at"] = c.Secret, 0
	}
	if c.Secret != "" && reg.SecretLife != 0 {
		c.SecretExpires = k.clock().Add(reg.SecretLife)
		all["client_secret_expires_at"] = c.SecretExpires.Unix()
	}
	all["client_id"], all["client_id_issued_at"], all["token_endpoint_auth_method"] = c.ID, k.clock().Unix(), c.Method
	p.mu.Lock()
	p.clients[c.ID] = c
	p.counts.Registrations++
	p.mu.Unlock()
	writeJSON(w, http.StatusCreated, all)
}

// unfit returns the error in the metadata of a client, or nil.
func (reg Registration) unfit(asked registration) *refusal {
	needs := asked.Grants == nil || slices.Contains(asked.Grants, "authorization_code")
	if needs && len(asked.Redirects) == 0 {
		return refuse("invalid_redirect_uri", "redirect_uris is missing")
	}
	for _, text := range asked.Redirects {
		u, err := url.Parse(text)
		if err != nil || u.Fragment != "" || u.Scheme == "http" && !loopback(u.Hostname()) {
			return refuse("invalid_redirect_uri", "a redirect URI is not allowed")
		}
		for _, not := range reg.RejectRedirects {
			if strings.Contains(text, not) {
				return refuse("invalid_redirect_uri", "a redirect URI is not allowed")
			}
		}
	}
	return nil
}

// Register adds a client while the provider runs.
func (p *Provider) Register(c Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[c.ID] = c
}

// ForgetClients deletes all clients except those in Options.Clients.
func (p *Provider) ForgetClients() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.clients)
	for _, c := range p.options.Clients {
		p.clients[c.ID] = c
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// fits reports whether a redirect URI is one of the client's redirect URIs. The two must be identical. The ports of
// loopback addresses may differ, unless Authorization.ExactPort is set.
func (c Client) fits(k Knobs, asked string) bool {
	return slices.ContainsFunc(c.Redirects, func(known string) bool {
		return asked == known || !k.Authorization.ExactPort && k.portless(asked) == k.portless(known)
	})
}

// portless returns a redirect URI without its port if the host is a loopback address, and unchanged otherwise. If
// Authorization.LoopbackNames is set, it also replaces a loopback host by 127.0.0.1.
func (k Knobs) portless(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.User != nil || !loopback(u.Hostname()) {
		return text
	}
	host := u.Hostname()
	if k.Authorization.LoopbackNames {
		host = "127.0.0.1"
	}
	head, rest, _ := strings.Cut(text, "://")
	i := strings.IndexAny(rest, "/?#")
	if i < 0 {
		return head + "://" + host
	}
	return head + "://" + host + rest[i:]
}

// authenticate returns the client that sent a request. It returns an error if the client authentication is invalid.
func (p *Provider) authenticate(k Knobs, r *http.Request) (Client, *refusal) {
	id, secret, basic := r.BasicAuth()
	used := "client_secret_basic"
	if basic {
		id, secret = unescape(id), unescape(secret)
	} else {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
		used = "client_secret_post"
		if secret == "" {
			used = "none"
		}
	}
	c, e := p.client(k, id)
	wrong := func(why string) (Client, *refusal) {
		return Client{}, &refusal{"invalid_client", why, http.StatusUnauthorized}
	}
	switch {
	case e != nil:
		return Client{}, e
	case c.Secret == "" && used != "none":
		return wrong("the client has no secret")
	case c.Secret != secret:
		return wrong("the secret is wrong")
	case c.Method != "" && c.Method != used || !slices.Contains(k.methods(), used):
		return wrong("the client authenticates in another way")
	case c.Secret != "" && !c.SecretExpires.IsZero() && k.clock().After(c.SecretExpires):
		return wrong("the secret has expired")
	}
	return c, nil
}

// unescape decodes a client ID or secret, which RFC 6749 requires to be form-encoded in a Basic header.
func unescape(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// may reports whether the client may use a grant.
func (c Client) may(grant string) bool {
	return c.Grants == nil || slices.Contains(c.Grants, grant)
}

func (k Knobs) user() string { return orDefault(k.User, "ada") }

func (k Knobs) life() time.Duration {
	if k.Tokens.Life == 0 {
		return time.Hour
	}
	return k.Tokens.Life
}
