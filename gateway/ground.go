package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/store"
)

// A Ground is what several gateways of one process stand on: one store, and the running servers, which those of them share
// whose rows say the same.
type Ground struct {
	log  *slog.Logger
	db   *store.DB
	pool pool
}

// A pool is what gateways share of package bridge, or of its stand-in where that is left out of the build.
type pool interface {
	Run(ctx context.Context) error
	fleet(g *Gateway, c Config, rows []config.Server, mounts map[string]store.Mount) (fleet, error)
}

// OpenGround opens the store and makes room for servers. Of the configuration it takes what is not one gateway's: Store,
// Logger, Version, OnDemand, and the settings of the person's own drawbridge.toml. The error is as for Open.
func OpenGround(ctx context.Context, c Config) (*Ground, error) {
	c, set, err := load(c, nil)
	if err != nil {
		return nil, err
	}
	s := set.Settings
	db, err := openStore(ctx, c, s)
	if err != nil {
		return nil, err
	}
	p, err := newPool(c.Logger, c, s, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Ground{log: c.Logger, db: db, pool: p}, nil
}

// Open makes a gateway on the ground; Config.Store is not looked at. It is to be closed before the ground is. The error is
// as for Open.
func (g *Ground) Open(ctx context.Context, c Config) (*Gateway, error) {
	c, set, err := g.load(ctx, c)
	if err != nil {
		return nil, err
	}
	gw := &Gateway{log: c.Logger, owner: owner(), ground: g, set: set, c: c}
	if err := gw.open(ctx, c); err != nil {
		return nil, err
	}
	return gw, nil
}

// load reads a configuration, with what the person approved of it.
func (g *Ground) load(ctx context.Context, c Config) (Config, config.Set, error) {
	approvals, err := g.db.Approvals(ctx)
	if err != nil {
		return c, config.Set{}, err
	}
	return load(c, approvals.Allows)
}

// Fingerprint says in a word what the configuration comes to: two gateways with the same one would have the same servers by
// the same names. It is made of secrets, and to be kept in memory only.
func (g *Ground) Fingerprint(ctx context.Context, c Config) (string, error) {
	c, set, err := g.load(ctx, c)
	if err != nil {
		return "", err
	}
	rows := set.Mountable()
	for i := range rows {
		rows[i] = rows[i].Essence()
	}
	text, err := json.Marshal([]any{streamOf(c, set), c.Naming, rows})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return string(sum[:]), nil
}

// StorePlace says where the store of a gateway with that configuration is, see StoreLocation.
func StorePlace(c Config) (string, error) {
	c, set, err := load(c, nil)
	if err != nil {
		return "", err
	}
	return StoreLocation(c.Store, set.Settings, c.LookupEnv)
}

// Run lets servers be mounted, until ctx ends and every process of theirs is gone. It is to be begun once, and to be ended
// after the gateways were closed.
func (g *Ground) Run(ctx context.Context) error { return g.pool.Run(ctx) }

// Close closes the store.
func (g *Ground) Close() error { return g.db.Close() }
