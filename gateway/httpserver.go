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

// NewServer makes a further surface on the same deck, with a bearer token and web origins of its own; an empty token
// means that of the settings. It ends with the gateway, or when it is shut.
func (g *Gateway) NewServer(token string, origins []string) (*server.Server, error) {
	g.mu.Lock()
	r := LoadedConfig{shared: g.shared, config: g.config, set: g.set}
	g.mu.Unlock()
	return r.NewServer(g, token, origins)
}

// NewServer makes a further surface on a gateway that this configuration comes to, with what the configuration says of
// doors now: the gateway may have been opened by an earlier one. Its callers prove who they are by the token, by the
// token of a client that has one of its own, or by the access token of an issuer. The error is a *drawbridge.Fault
// InvalidInput for settings that nobody can mean.
func (r LoadedConfig) NewServer(g *Gateway, token string, origins []string) (*server.Server, error) {
	if token == "" {
		token = r.config.Token
	}
	check, resource, err := r.newAuthenticator()
	if err != nil {
		return nil, err
	}
	s := r.set.Settings
	door, err := server.New(g.deck, server.Options{
		Logger: g.log, Version: g.config.Version, Caller: g.owner, Token: []byte(token), Origins: origins,
		Authenticator: check, Resource: resource,
		ClientScopes: parseScopes(s.Clients), SessionTimeout: s.SessionTimeout, MaxBody: s.MaxBody,
		PageSize: s.PageSize,
	})
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.extraServers = append(g.extraServers, door)
	return door, nil
}

// CloseServer closes a further surface that Door made, before the gateway ends.
func (g *Gateway) CloseServer(door *server.Server) error {
	g.mu.Lock()
	g.extraServers = slices.DeleteFunc(slices.Clone(g.extraServers),
		func(one *server.Server) bool { return one == door })
	g.mu.Unlock()
	return door.Close()
}

// RecheckCallers has every door look now at who is still who they proved to be, not in half a minute: a client was
// removed.
func (g *Gateway) RecheckCallers(ctx context.Context) {
	g.mu.Lock()
	doors := g.extraServers
	g.mu.Unlock()
	for _, door := range doors {
		door.RecheckCallers(ctx)
	}
}

// newAuthenticator makes what proves callers, and says how OAuth clients know the door.
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

// parseScopes makes scopes of the words of a table of the settings; nil of an empty one.
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

// clientTokenPrefix begins the tokens of clients that have one of their own. No issuer is asked about one that does.
const clientTokenPrefix = "dbr_"

// NewClientToken makes a token of 256 random bits for a client, and what the store keeps of it.
func NewClientToken() (token drawbridge.Secret, hash [sha256.Size]byte) {
	var bits [32]byte
	rand.Read(bits[:]) // never fails: see its documentation
	text := clientTokenPrefix + base64.RawURLEncoding.EncodeToString(bits[:])
	return drawbridge.NewSecret(text), sha256.Sum256([]byte(text))
}

// A tokenAuthenticator proves callers by the tokens of clients, and by those of issuers.
type tokenAuthenticator struct {
	db      *store.DB
	issuers *server.Issuers // nil where there are none
	log     *slog.Logger

	// hadClients says whether there were clients: the ground's, whose next door asks as this one does.
	hadClients *atomic.Bool

	mu sync.Mutex
	// countedAt is when it was looked that there were no clients.
	countedAt time.Time
	// lastUsedDay has on which day a client came last, so that it is written once.
	lastUsedDay map[string]time.Time
}

var _ server.Authenticator = (*tokenAuthenticator)(nil)

// clientCountTTL is how long it is believed how many clients there are.
const clientCountTTL = time.Second

// Required says that callers must prove who they are as soon as there is an issuer, or one client with a token of its
// own: a token that gives somebody a part means nothing where nobody needs one. It stays so when the last client is
// removed: who had a part is not to have everything for that.
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

// Authenticate says whose a token is.
func (p *tokenAuthenticator) Authenticate(ctx context.Context, token, resource string) (drawbridge.Caller, error) {
	switch {
	case strings.HasPrefix(token, clientTokenPrefix):
		return p.authenticateClient(ctx, token)
	case p.issuers == nil:
		return drawbridge.Caller{}, authFailure("the token is not known")
	}
	if err := p.db.CheckClock(ctx); err != nil { // then what was found before counts
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
		p.log.Warn("the day of a client is not noted", "client", c.Name, "err", err)
	}
	return drawbridge.Caller{Kind: drawbridge.External, Principal: "client:" + c.Name, Scopes: c.Scopes}, nil
}

// recordClientUse notes the day on which a client came.
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

// authFailure is the fault of a token that proves nobody. The reason is shown to the caller.
func authFailure(reason string) error {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.AuthFailure, Step: reason}
}
