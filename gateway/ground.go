package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway/meter"
	"github.com/drawbridge-mcp/drawbridge/gateway/models"
	"github.com/drawbridge-mcp/drawbridge/gateway/pins"
	"github.com/drawbridge-mcp/drawbridge/gateway/standing"
	"github.com/drawbridge-mcp/drawbridge/gateway/vetting"
	"github.com/drawbridge-mcp/drawbridge/gateway/warden"
	"github.com/drawbridge-mcp/drawbridge/policy"
	"github.com/drawbridge-mcp/drawbridge/secrets"
	"github.com/drawbridge-mcp/drawbridge/store"
	"golang.org/x/sync/errgroup"
)

// A Ground is what several gateways of one process stand on: one store, and the running servers, which those of them share
// whose rows say the same.
type Ground struct {
	db    *store.DB
	vault *secrets.Vault
	pool  pool
	meter *meter.Meter
	// book is nil where nobody keeps account of how servers behave.
	book   *standing.Book
	vetted *vetted
	// pins are what tools said before.
	pins *pins.Keeper
	// audit is nil where calls are not recorded.
	audit *store.Audit
	// models are those that run elsewhere; nil is none.
	models *models.Models
	// clients says that there were clients with tokens of their own.
	clients atomic.Bool
}

// A pool is what gateways share of package bridge, or of its stand-in where that is left out of the build.
type pool interface {
	Run(ctx context.Context) error
	fleet(g *Gateway, c Config, rows []config.Server, mounts map[string]store.Mount) (fleet, error)
}

// OpenGround opens the store and the vault, and makes room for servers. Of the configuration it takes what is not one gateway's: Store,
// Logger, Version, Tools, Shield, Embedder, Reranker, OnDemand, and the settings of the person's own drawbridge.toml. The error is as for Open.
func OpenGround(ctx context.Context, c Config) (*Ground, error) {
	c = c.withLogger()
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	vault, err := openVault(c, s)
	if err != nil {
		return nil, err
	}
	db, err := openStore(ctx, c, s)
	if err != nil {
		return nil, err
	}
	a, err := openAudit(c, s, db, vault)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	sanitiser := vetting.NewSanitiser()
	p, err := newPool(c.Logger, c, s, db, vault, questions(sanitiser, a, c.Logger))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	book, err := newBook(ctx, c, s, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	keeper, err := newPins(c, s, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	m, err := openModels(c, s, vault, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Ground{
		db: db, vault: vault, models: m, pool: p, meter: newMeter(c, s, db), book: book, audit: a, pins: keeper,
		vetted: &vetted{sanitiser: sanitiser, kept: map[string][]byte{}},
	}, nil
}

// newMeter counts calls by what the settings bound.
func newMeter(c Config, s config.Settings, db *store.DB) *meter.Meter {
	return meter.New(meter.Options{
		Quotas: meter.Quotas(s.Tools.PerSession, s.Tools.PerCaller, s.Tools.Every), Store: db,
		SameErrors: s.Tools.SameErrors, SameCalls: s.Tools.SameCalls, Logger: c.Logger,
	})
}

// settingsOf reads the settings that count for a configuration: for a program's own servers, beside which no files are looked
// for, none but its own.
func settingsOf(c Config) (config.Settings, error) {
	var s config.Settings
	if c.readsFiles() {
		var err error
		if s, err = config.LoadSettings(config.Options{Dir: c.Dir, LookupEnv: c.LookupEnv}); err != nil {
			return s, err
		}
	}
	s.Tools, s.Shield = cmp.Or(c.Tools, s.Tools), cmp.Or(c.Shield, s.Shield)
	return s, nil
}

// A Reading is a configuration that was read, with what the person approved of it.
type Reading struct {
	ground *Ground
	c      Config
	set    config.Set
	policy *policy.Policy // nil where there are no rules
}

// Read reads a configuration; Config.Store is not looked at. The error is as for Open.
func (g *Ground) Read(ctx context.Context, c Config) (Reading, error) {
	approvals, err := g.db.Approvals(ctx)
	if err != nil {
		return Reading{}, err
	}
	c, set, err := load(c, approvals.Allows)
	if err != nil {
		return Reading{}, err
	}
	for i, row := range set.Servers {
		if last, ok := approvals.Of(row); ok && row.Origin.Kind == config.Project {
			set.Servers[i].Program = last.Program()
		}
	}
	r := Reading{ground: g, c: c, set: set}
	r.policy, err = warden.Compile(r.rules())
	return r, err
}

// rules are those that count: the program's own, else those of the settings.
func (r Reading) rules() *drawbridge.Rules {
	if r.c.Rules != nil {
		return r.c.Rules
	}
	return r.set.Settings.Rules
}

// Open makes a gateway on the ground. It is to be closed before the ground is. The error is as for Open.
func (r Reading) Open(ctx context.Context) (*Gateway, error) {
	g := &Gateway{
		log: r.c.Logger, owner: owner(), ground: r.ground, set: r.set, policy: r.policy, c: r.c, warden: warden.New(r.c.Logger),
		unwatch: func() {},
	}
	if err := g.open(ctx, r.c); err != nil {
		g.unwatch()
		return nil, err
	}
	return g, nil
}

// Fingerprint says in a word what the configuration comes to: two gateways with the same one have the same servers by the same
// names. It is made of secrets, and to be kept in memory only.
func (r Reading) Fingerprint() (string, error) {
	rows := r.set.Mountable()
	for i := range rows {
		rows[i] = rows[i].Essence()
	}
	text, err := json.Marshal([]any{streamOf(r.c, r.set), r.c.Naming, r.rules(), r.discovery(), rows})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return string(sum[:]), nil
}

// StorePlace says where the store of a gateway with that configuration is, see StoreLocation.
func StorePlace(c Config) (string, error) {
	s, err := settingsOf(c)
	if err != nil {
		return "", err
	}
	return StoreLocation(c.Store, s, c.LookupEnv)
}

// Run lets servers be mounted, until ctx ends and every process of theirs is gone. It is to be begun once, and to be ended
// after the gateways were closed.
func (g *Ground) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.pool.Run(ctx) })
	if g.book != nil {
		group.Go(func() error { return g.book.Run(ctx) })
	}
	if g.audit != nil {
		group.Go(func() error { return g.audit.Run(ctx) })
	}
	if g.models != nil {
		group.Go(func() error { return g.models.Run(ctx) })
	}
	return group.Wait()
}

// Close closes the store, once it has taken in the record of all calls and what was noted of servers.
func (g *Ground) Close() error {
	return errors.Join(g.closeAudit(), g.closeBook(), g.models.Close(), g.db.Close())
}

// closeBook writes what was noted of servers.
func (g *Ground) closeBook() error {
	if g.book == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	return g.book.Flush(ctx)
}
