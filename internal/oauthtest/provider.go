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

// A Provider consists of an authorization server and an MCP server that requires its tokens. Its methods may be called
// from several goroutines.
type Provider struct {
	// Issuer is the authorization server's identifier, ResourceURL the URL of the MCP server.
	Issuer, ResourceURL string

	options   Options
	issuer    *httptest.Server
	resource  *httptest.Server // the same as issuer with OneOrigin
	keys      *keyring
	mcpServer *toolServers
	gone      chan struct{}
	ending    sync.Once

	mu       sync.Mutex
	knobs    Knobs
	faults   map[Endpoint]int // how often each fault was applied since the last ChangeKnobs
	gates    map[gatePosition]*Gate
	requests []Request
	counts   Counts
	clients  map[string]Client
	pending  map[string]pendingConsent    // consent pages by their token
	codes    map[string]*issuedCode       // authorization codes
	devices  map[string]*device           // by device code
	refresh  map[string]*refreshToken     // refresh tokens, including spent ones
	access   map[string]*accessTokenState // access tokens
	families []*tokenFamily
}

// New starts a provider, which is closed when the test ends.
func New(t testing.TB, o Options) *Provider {
	t.Helper()
	p, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Start starts a provider on free ports of the loopback interface.
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

// listen opens the ports, so that the URLs are known before the servers start.
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

// origin returns the origin of a server that is not started yet.
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

// Close stops the provider: it closes open connections and waits until the running requests have ended.
func (p *Provider) Close() {
	p.ending.Do(func() {
		close(p.gone)
		for _, s := range []*httptest.Server{p.resource, p.issuer} {
			s.CloseClientConnections()
			s.Close()
		}
	})
}

// HTTP returns a client that trusts the provider's certificate and stores no cookies.
func (p *Provider) HTTP() *http.Client { return p.issuer.Client() }

// ChangeKnobs changes the knobs for all later requests, and resets the counters of faults. The function change may
// modify the maps Faults, Set, SetPRM and Introspection. It must replace other maps and lists, because running requests
// may still read them.
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

// clock returns the time of the provider's clock.
func (k Knobs) clock() time.Time { return time.Now().Add(k.Skew) }

// fillURLs replaces {issuer}, {resource} and {origin} in a text by the provider's own URLs.
func (p *Provider) fillURLs(text string) string {
	return strings.NewReplacer("{issuer}", p.Issuer, "{resource}", p.ResourceURL, "{origin}",
		p.resourceOrigin()).Replace(text)
}

// fillAll applies fillURLs to a string, or to the strings in a list. It returns other values unchanged.
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

// overlayMembers copies the members of over to document; nil removes a member.
func (p *Provider) overlayMembers(document, over map[string]any) {
	for name, value := range over {
		if value == nil {
			delete(document, name)
			continue
		}
		document[name] = p.fillAll(value)
	}
}

// URL returns the URL of an endpoint.
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

// issuesFor reports whether the provider issues tokens for a resource. It does for the URL and the origin of the MCP
// server, and for Options.Resources.
func (p *Provider) issuesFor(resource string) bool {
	return p.serves(resource) || slices.Contains(p.options.Resources, resource)
}

// serves reports whether resource is the URL or the origin of the MCP server. Tokens for other resources are not valid
// there.
func (p *Provider) serves(resource string) bool {
	return resource == p.ResourceURL || resource == p.resourceOrigin()
}

// routes is a function that calls handle for each of its endpoints.
type routes func(handle func(path string, e Endpoint, h http.HandlerFunc))

// handler returns the HTTP handler of a server with the given routes. At paths without a route, it serves metadata: the
// MCP server's metadata if resource is true, and otherwise those of the authorization server.
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

// writeJSON sends a JSON value in a response that must not be cached.
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
