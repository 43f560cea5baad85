package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/server"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// NewServer creates another MCP server for the gateway's deck, with its own bearer token and web origins. An empty
// token means the token in the settings. Gateway.Close or CloseServer closes the server.
func (g *Gateway) NewServer(ctx context.Context, token string, origins []string) (*server.Server, error) {
	g.mu.Lock()
	r := LoadedConfig{shared: g.shared, config: g.config, set: g.set}
	g.mu.Unlock()
	return r.NewServer(ctx, g, token, origins)
}

// NewServer creates another MCP server for g, a gateway that was opened with the same [LoadedConfig.Fingerprint] as r.
// The server's HTTP settings are those of r, not of the configuration that g was opened with. Callers authenticate with
// token, with the token of a client, or with the access token of an issuer. The error is a *drawbridge.Fault with the
// code InvalidInput for settings that contradict each other or cannot be used.
func (r LoadedConfig) NewServer(ctx context.Context, g *Gateway, token string,
	origins []string) (*server.Server, error) {
	if token == "" {
		token = r.config.Token
	}
	check, resource, err := r.newAuthenticator()
	if err != nil {
		return nil, err
	}
	s, owner := r.set.Settings, g.owner
	owner.Dir = r.config.Dir
	srv, err := server.New(ctx, g.deck, server.Options{
		Logger: g.log, Version: g.config.Version, Caller: owner, Token: []byte(token), Origins: origins,
		Authenticator: check, Resource: resource,
		ClientScopes: parseScopes(s.Clients), SessionTimeout: s.SessionTimeout, MaxBody: s.MaxBody,
		PageSize: s.PageSize, Pacer: &g.shared.callPacer, OnSession: g.onSession,
	})
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.extraServers = append(g.extraServers, srv)
	return srv, nil
}

// ClientActivity returns the activity of each client of the gateway's servers, sorted by transport, principal and
// client.
func (g *Gateway) ClientActivity() []server.ClientActivity {
	g.mu.Lock()
	servers := slices.Clone(g.extraServers)
	g.mu.Unlock()
	var all []server.ClientActivity
	for _, srv := range servers {
		all = server.MergeActivity(all, srv.Activity())
	}
	return all
}

// CloseServer closes a server that NewServer returned. Without this call, the server is closed with the gateway.
func (g *Gateway) CloseServer(srv *server.Server) error {
	g.mu.Lock()
	g.extraServers = slices.DeleteFunc(slices.Clone(g.extraServers),
		func(one *server.Server) bool { return one == srv })
	g.mu.Unlock()
	return srv.Close()
}

// RecheckCallers makes every server verify the tokens of its requests in progress now, instead of at the next periodic
// check. Call it after a client was removed.
func (g *Gateway) RecheckCallers(ctx context.Context) {
	g.mu.Lock()
	servers := g.extraServers
	g.mu.Unlock()
	for _, srv := range servers {
		srv.RecheckCallers(ctx)
	}
}

// newAuthenticator returns the authenticator of HTTP callers, and the resource metadata of the endpoint for OAuth
// clients.
func (r LoadedConfig) newAuthenticator() (server.Authenticator, server.Resource, error) {
	p, o := &tokenAuthenticator{db: r.shared.db, hadClients: &r.shared.hadClients, log: r.config.Logger,
		lastUsedDay: map[string]time.Time{}}, r.config.OAuth
	var resource server.Resource
	if o.PublicURL != "" {
		resource.URL = strings.TrimSuffix(o.PublicURL, "/") + server.Path
	}
	if len(o.Issuers) == 0 {
		return p, resource, nil
	}
	options, err := issuerOptions(o)
	if err != nil {
		return nil, resource, err
	}
	options.ExpiryTime = r.shared.db.ExpiryTime
	if p.issuers, err = server.NewIssuers(options); err != nil {
		return nil, resource, err
	}
	resource.Issuers, resource.Scopes = o.Issuers, p.issuers.AcceptedScopes()
	return p, resource, nil
}

func issuerOptions(o config.OAuthSettings) (server.IssuerOptions, error) {
	options := server.IssuerOptions{
		Issuers: o.Issuers, Audience: o.Audience, ClockSkew: o.ClockSkew, AllowPrograms: o.AllowWithoutSubject != nil &&
			*o.AllowWithoutSubject,
		Introspection: server.Introspection{URL: o.IntrospectionURL, ClientID: o.IntrospectionClient},
		Scopes:        parseScopes(o.Scopes),
	}
	if o.IntrospectionSecretFile == "" {
		return options, nil
	}
	secret, err := readSecretFile("client secret", o.IntrospectionSecretFile)
	options.Introspection.Secret = drawbridge.NewSecret(secret)
	return options, err
}

// parseScopes converts a table of the settings, which maps a name to a list of scope names. It returns nil for an empty
// table.
func parseScopes(table map[string][]string) map[string][]drawbridge.Scope {
	if len(table) == 0 {
		return nil
	}
	out := make(map[string][]drawbridge.Scope, len(table))
	for word, scopes := range table {
		out[word] = []drawbridge.Scope{}
		for _, scope := range scopes {
			out[word] = append(out[word], drawbridge.Scope(scope))
		}
	}
	return out
}

// clientTokenPrefix is the prefix of the tokens of clients. A token with this prefix is never sent to an issuer.
const clientTokenPrefix = "dbr_"

// NewClientToken returns a new token of 256 random bits for a client, and the token's hash. Only the hash is stored.
func NewClientToken() (token drawbridge.Secret, hash [sha256.Size]byte) {
	var bits [32]byte
	rand.Read(bits[:]) // never fails: see its documentation
	text := clientTokenPrefix + base64.RawURLEncoding.EncodeToString(bits[:])
	return drawbridge.NewSecret(text), sha256.Sum256([]byte(text))
}

// A tokenAuthenticator authenticates callers by client tokens and by access tokens of issuers.
type tokenAuthenticator struct {
	db      *store.DB
	issuers *server.Issuers // nil without issuers
	log     *slog.Logger

	// hadClients is set when the store has had a client. All servers on one Shared use the same variable.
	hadClients *atomic.Bool

	mu sync.Mutex
	// countedAt is the time when the store was last asked whether it has clients.
	countedAt time.Time
	// lastUsedDay is the day of each client's last request. Requests on the same day do not write to the store again.
	lastUsedDay map[string]time.Time
}

var _ server.Authenticator = (*tokenAuthenticator)(nil)

// clientCountTTL is the time for which Required does not ask the store again whether it has clients.
const clientCountTTL = time.Second

// Required reports whether callers must authenticate. They must if an issuer is configured, or if the store has had a
// client with its own token. Otherwise a caller without a token would have more rights than a client with limited
// scopes. The result stays true when the last client is removed, so that a removed client does not gain rights.
func (p *tokenAuthenticator) Required(ctx context.Context) (bool, error) {
	if p.issuers != nil || p.hadClients.Load() {
		return true, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.countedAt) < clientCountTTL {
		return p.hadClients.Load(), nil
	}
	found, err := p.db.HasClients(ctx)
	if err != nil {
		return false, err
	}
	p.countedAt = time.Now()
	if found {
		p.hadClients.Store(true)
	}
	return found, nil
}

// Authenticate returns the caller that a token belongs to.
func (p *tokenAuthenticator) Authenticate(ctx context.Context, token, resource string) (drawbridge.Caller, error) {
	switch {
	case strings.HasPrefix(token, clientTokenPrefix):
		return p.authenticateClient(ctx, token)
	case p.issuers == nil:
		return drawbridge.Caller{}, authFailure("the token is not known")
	}
	if err := p.db.CheckClock(ctx); err != nil { // then the previous value is used
		p.log.Warn("the store's clock cannot be read", "err", err)
	}
	return p.issuers.Authenticate(ctx, token, resource)
}

func (p *tokenAuthenticator) authenticateClient(ctx context.Context, token string) (drawbridge.Caller, error) {
	c, ok, err := p.db.ClientByToken(ctx, sha256.Sum256([]byte(token)))
	now := time.Now()
	switch {
	case err != nil:
		return drawbridge.Caller{}, err
	case !ok:
		return drawbridge.Caller{}, authFailure("the token is not known")
	case c.Ended, !c.Expires.IsZero() && !now.Before(c.Expires):
		return drawbridge.Caller{}, authFailure("the token has expired")
	}
	if err := p.recordClientUse(ctx, c.Name, now); err != nil {
		p.log.Warn("record the last use of a client token", "client", c.Name, "err", err)
	}
	return drawbridge.Caller{Kind: drawbridge.External, Principal: "client:" + c.Name, Scopes: c.Scopes,
		Origin: string(c.Origin)}, nil
}

// recordClientUse stores the day of a client's last request, at most once a day.
func (p *tokenAuthenticator) recordClientUse(ctx context.Context, name string, now time.Time) error {
	today := now.UTC().Truncate(24 * time.Hour)
	p.mu.Lock()
	known := p.lastUsedDay[name].Equal(today)
	p.lastUsedDay[name] = today
	p.mu.Unlock()
	if known {
		return nil
	}
	return p.db.MarkClientUsed(ctx, name, today)
}

// authFailure returns the fault for a token that does not identify a caller. The caller that sent the token sees the
// reason.
func authFailure(reason string) error {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.AuthFailure, Step: reason}
}
