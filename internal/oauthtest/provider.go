package oauthtest

import (
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Provider is an authorization server and an MCP server behind it. Its methods may be used by many at once.
type Provider struct {
	// Issuer is the authorization server's identifier, ResourceURL the URL of the MCP server.
	Issuer, ResourceURL string

	options   Options
	issuer    *httptest.Server
	resource  *httptest.Server // the same as issuer where there is one origin
	keys      *keyring
	mcpServer *toolServers
	gone      chan struct{}
	ending    sync.Once

	mu       sync.Mutex
	knobs    Knobs
	faults   map[Endpoint]int // how often each fault happened since its knob was turned
	gates    map[gatePosition]*Gate
	requests []Request
	counts   Counts
	clients  map[string]Client
	pending  map[string]pendingConsent    // consent pages by their token
	codes    map[string]*issuedCode       // authorization codes
	devices  map[string]*device           // by device code
	refresh  map[string]*refreshToken     // refresh tokens, spent ones too
	access   map[string]*accessTokenState // access tokens
	families []*tokenFamily
}

// New starts a provider that ends with the test.
func New(t testing.TB, o Options) *Provider {
	t.Helper()
	p, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Start starts a provider on free ports of the loopback.
func Start(o Options) (*Provider, error) {
	p := &Provider{
		options: o, keys: &keyring{}, gone: make(chan struct{}), gates: map[gatePosition]*Gate{},
		clients: map[string]Client{}, pending: map[string]pendingConsent{}, codes: map[string]*issuedCode{},
		devices: map[string]*device{},
		refresh: map[string]*refreshToken{}, access: map[string]*accessTokenState{},
	}
	p.mcpServer = newTools()
	for _, c := range o.Clients {
		p.clients[c.ID] = c
	}
	if err := p.listen(); err != nil {
		return nil, err
	}
	p.Issuer = o.origin(p.issuer, o.IssuerHost) + o.IssuerPath
	p.ResourceURL = o.origin(p.resource, o.ResourceHost) + o.resourcePath()
	p.ChangeKnobs(func(k *Knobs) { *k = o.Knobs })
	p.start(p.issuer)
	if !o.OneOrigin {
		p.start(p.resource)
	}
	return p, nil
}

// listen takes the ports, so that the URLs are known before anything is answered.
func (p *Provider) listen() error {
	all := []routes{p.issuerRoutes}
	if p.options.OneOrigin {
		all = append(all, p.resourceRoutes)
	}
	var err error
	if p.issuer, err = listen(p.handler(p.options.OneOrigin, all...)); err != nil {
		return err
	}
	if p.resource = p.issuer; p.options.OneOrigin {
		return nil
	}
	if p.resource, err = listen(p.handler(true, p.resourceRoutes)); err != nil {
		return errors.Join(err, p.issuer.Listener.Close())
	}
	return nil
}

func listen(h http.Handler) (*httptest.Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}, nil
}

func (p *Provider) start(s *httptest.Server) {
	if p.options.TLS {
		s.StartTLS()
		return
	}
	s.Start()
}

// origin is the origin of a server that does not run yet.
func (o Options) origin(s *httptest.Server, host string) string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	scheme := "http://"
	if o.TLS {
		scheme = "https://"
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return scheme + net.JoinHostPort(host, port)
}

func (o Options) resourcePath() string {
	if o.ResourcePath == "" {
		return "/mcp"
	}
	return o.ResourcePath
}

// Close ends the provider, cuts what is still open and waits for it.
func (p *Provider) Close() {
	p.ending.Do(func() {
		close(p.gone)
		for _, s := range []*httptest.Server{p.resource, p.issuer} {
			s.CloseClientConnections()
			s.Close()
		}
	})
}

// HTTP is a client that trusts the provider's certificate. It keeps no cookies.
func (p *Provider) HTTP() *http.Client { return p.issuer.Client() }

// ChangeKnobs changes the knobs for all requests from now on, and resets the counters of faults. The function may
// change everything it receives.
func (p *Provider) ChangeKnobs(change func(*Knobs)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.knobs
	k.Faults = maps.Clone(k.Faults)
	k.Discovery.Set, k.Discovery.SetPRM = maps.Clone(k.Discovery.Set), maps.Clone(k.Discovery.SetPRM)
	k.Tokens.Introspection = maps.Clone(k.Tokens.Introspection)
	change(&k)
	p.knobs = k
	p.faults = map[Endpoint]int{}
}

// currentKnobs returns the current knobs.
func (p *Provider) currentKnobs() Knobs {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.knobs
}

// clock is the provider's own time.
func (k Knobs) clock() time.Time { return time.Now().Add(k.Skew) }

// fillURLs puts the provider's own URLs into a text.
func (p *Provider) fillURLs(text string) string {
	return strings.NewReplacer("{issuer}", p.Issuer, "{resource}", p.ResourceURL, "{origin}",
		p.resourceOrigin()).Replace(text)
}

// fillAll does that in any value of JSON.
func (p *Provider) fillAll(v any) any {
	switch v := v.(type) {
	case string:
		return p.fillURLs(v)
	case []string:
		filled := make([]string, len(v))
		for i := range v {
			filled[i] = p.fillURLs(v[i])
		}
		return filled
	case []any:
		filled := make([]any, len(v))
		for i := range v {
			filled[i] = p.fillAll(v[i])
		}
		return filled
	}
	return v
}

// overlayMembers lays members over a document; nil takes one away.
func (p *Provider) overlayMembers(document, over map[string]any) {
	for name, value := range over {
		if value == nil {
			delete(document, name)
			continue
		}
		document[name] = p.fillAll(value)
	}
}

// URL is where an endpoint is: below the issuer, or the MCP server itself.
func (p *Provider) URL(e Endpoint) string {
	switch e {
	case MCP:
		return p.ResourceURL
	case ServerMetadata:
		return p.origin() + wellKnown("oauth-authorization-server", p.options.IssuerPath)
	case ResourceMetadata:
		return p.resourceOrigin() + wellKnown("oauth-protected-resource", p.options.resourcePath())
	}
	return p.Issuer + "/" + string(e)
}

func (p *Provider) origin() string { return strings.TrimSuffix(p.Issuer, p.options.IssuerPath) }

func (p *Provider) resourceOrigin() string {
	return strings.TrimSuffix(p.ResourceURL, p.options.resourcePath())
}

// issuesFor reports whether tokens are issued for a resource: the MCP server, by URL or origin, or one of the Options.
func (p *Provider) issuesFor(resource string) bool {
	return p.serves(resource) || slices.Contains(p.options.Resources, resource)
}

// serves reports whether a token for a resource is valid for the MCP server.
func (p *Provider) serves(resource string) bool {
	return resource == p.ResourceURL || resource == p.resourceOrigin()
}

// routes add their endpoints to a mux.
type routes func(handle func(path string, e Endpoint, h http.HandlerFunc))

// handler makes a server of routes. What no route has is looked for among the places of metadata: on the resource's
// origin those of the resource.
func (p *Provider) handler(resource bool, all ...routes) http.Handler {
	mux := http.NewServeMux()
	handle := func(path string, e Endpoint, h http.HandlerFunc) { mux.HandleFunc(path, p.recordRequests(e, h)) }
	for _, add := range all {
		add(handle)
	}
	p.controlRoutes(mux)
	mux.HandleFunc("/", p.serveWellKnown(resource))
	return mux
}

func (p *Provider) issuerRoutes(handle func(string, Endpoint, http.HandlerFunc)) {
	base := p.options.IssuerPath
	handle(base+"/authorize", Authorize, p.authorize)
	handle("POST "+base+"/consent", Consent, p.handleConsent)
	handle("POST "+base+"/token", Token, p.token)
	handle("POST "+base+"/register", Register, p.register)
	handle("POST "+base+"/device_authorization", DeviceStart, p.deviceStart)
	handle(base+"/device", DevicePage, p.devicePage)
	handle("POST "+base+"/revoke", Revoke, p.revoke)
	handle("POST "+base+"/introspect", Introspect, p.introspect)
	handle("GET "+base+"/jwks", Keys, p.serveKeys)
}

func (p *Provider) resourceRoutes(handle func(string, Endpoint, http.HandlerFunc)) {
	handle(p.options.resourcePath(), MCP, p.serveMCP)
}

// writeJSON answers with a JSON value, not to be kept.
func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
