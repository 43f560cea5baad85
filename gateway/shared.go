package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/server"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
	"github.com/drawbridge-mcp/drawbridge/llm"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
	"golang.org/x/sync/errgroup"
)

// A Shared holds the parts that several gateways of one process share, such as the store, the vault and the running
// servers. If two gateways configure a server in the same way, they use the same server process.
type Shared struct {
	db          *store.DB
	vault       *secrets.Vault
	pool        upstreamPool
	callLimiter *guards.CallLimiter
	// callPacer shares the processing time fairly, so that many calls of one client do not delay the calls of others.
	callPacer server.CallPacer
	// trustAccounts computes the trust of servers; nil if the settings turn trust accounts off.
	trustAccounts *vetting.TrustAccounts
	vetted        *vettedCache
	// pinChecker compares tools with their pinned definitions.
	pinChecker *vetting.PinChecker
	// audit is nil if calls are not recorded.
	audit *store.AuditWriter
	// scanner examines results after they were passed on to the caller.
	scanner *deck.ResultScanner
	// outputs learns the output types of tools from their results.
	outputs *toolsearch.OutputLearner
	// jobs are the commands that Drawbridge's own tools run.
	jobs *cards.Jobs
	// scripts runs Python scripts; nil if scriptsErr is set.
	scripts    *sandbox.Sandbox
	scriptsErr error
	// results are the results that scripts leave for later ones.
	results *cards.ResultStore
	// models are the remote models; nil means none.
	models *llm.ToolModels
	// closing is the context of OpenShared without its cancellation. Close uses it to write to the store.
	closing context.Context
	// hadClients is set when the store has had a client with its own token.
	hadClients atomic.Bool

	// workspaceMu guards the opening of workspace, which is nil if there is none. workspaceName is what people see.
	workspaceMu   sync.Mutex
	workspace     *store.Workspace
	workspaceName string
}

// An upstreamPool is the part of package upstream that gateways share. A build with the tag nomcp uses noPool instead.
type upstreamPool interface {
	Run(ctx context.Context) error
	newFleet(g *Gateway, c Config, mounts map[string]store.MountRecord) (fleet, error)
}

// OpenShared opens the store and the vault, and prepares the pool of servers. It uses the settings of the user's
// drawbridge.toml and the fields of c that are the same for all gateways. Such fields are Store, Logger, Version,
// Tools, Shield, Embedder, Reranker and OnDemand. The error is as for Open.
func OpenShared(ctx context.Context, c Config) (*Shared, error) {
	c = c.withLogger()
	s, err := loadSettings(c)
	if err != nil {
		return nil, err
	}
	protectStateFiles(c, s, c.Logger)
	vault, err := openVault(c, s)
	if err != nil {
		return nil, err
	}
	db, err := openStore(ctx, c, s)
	if err != nil {
		return nil, err
	}
	if err := warnOfStore(ctx, c, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	a, err := openAudit(ctx, c, s, db, vault)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	sanitiser := vetting.NewSanitiser()
	p, err := newUpstreamPool(ctx, c.Logger, c, s, db, vault, newQuestionFilter(sanitiser, a, c.Logger))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	accounts, err := openTrustAccounts(ctx, c, s, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	pins, err := newPinChecker(c, s, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	m, err := openModels(ctx, c, s, vault, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	scripts, scriptsErr := openSandbox(ctx, c, s.Sandbox)
	return &Shared{
		scripts: scripts, scriptsErr: scriptsErr, results: cards.NewResultStore(),
		closing: context.WithoutCancel(ctx),
		db:      db, vault: vault, models: m, pool: p, callLimiter: newCallLimiter(c, s, db),
		trustAccounts: accounts, audit: a,
		pinChecker: pins,
		scanner:    deck.NewResultScanner(sanitiser.FlagText, newFlaggedResults(db, a, vault), c.Logger),
		outputs:    newOutputLearner(db, sanitiser, vault, c.Logger),
		vetted:     newVettedCache(sanitiser),
		jobs:       cards.NewJobs(newShell(config.DeckSettings{})),
	}, nil
}

// warnOfStore logs a warning if the store's clock jumped and no person has confirmed the new time. It also logs a
// warning for each spool directory beside the store whose records belong to another store.
func warnOfStore(ctx context.Context, c Config, db *store.DB) error {
	if err := db.CheckClock(ctx); err != nil {
		return err
	}
	state, err := db.ClockState(ctx)
	if jump := state.Jump(); err == nil && jump != "" {
		c.Logger.Warn("the store's clock jumped; set it, or, if it is right: drawbridge audit confirm-clock",
			"jump", jump)
	}
	if err != nil {
		return err
	}
	id, err := db.Identity(ctx)
	if err != nil {
		return err
	}
	waiting, err := WaitingSpools(c, id)
	if err != nil { // this process does not depend on it
		c.Logger.Warn("look for records of calls that wait for another store", "err", err)
	}
	for _, w := range waiting {
		c.Logger.Warn("records of calls wait for another store, which takes them in when Drawbridge is started with it",
			"dir", w.Dir, "store", w.Store, "bytes", w.Bytes)
	}
	return nil
}

// newCallLimiter returns a limiter with the limits in the settings.
func newCallLimiter(c Config, s config.Settings, db *store.DB) *guards.CallLimiter {
	return guards.NewCallLimiter(guards.LimiterOptions{
		Quotas: guards.CallerQuotas(s.Tools.PerSession, s.Tools.PerCaller, s.Tools.Window), Accounts: db,
		SameErrors: s.Tools.SameErrors, SameCalls: s.Tools.SameCalls, Logger: c.Logger,
	})
}

// loadSettings reads the settings for a configuration. If c does not read configuration files, the settings are empty.
// c.Tools and c.Shield replace the same settings of the file, unless they are zero.
func loadSettings(c Config) (config.Settings, error) {
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

// A LoadedConfig is a configuration that was read, and in which the approved servers of a project are marked as
// approved.
type LoadedConfig struct {
	shared *Shared
	config Config
	set    config.Configuration
	policy *policy.Policy // nil without rules
	addons []FoundAddon
}

// LoadConfig reads a configuration. It ignores Config.Store, because the store of g is already open. The error is as
// for Open.
func (g *Shared) LoadConfig(ctx context.Context, c Config) (LoadedConfig, error) {
	approvals, err := g.db.RowApprovals(ctx, CurrentApprover())
	if err != nil {
		return LoadedConfig{}, err
	}
	c, set, err := loadConfigFiles(c, approvals.Allows)
	if err != nil {
		return LoadedConfig{}, err
	}
	for i, row := range set.Servers {
		if last, ok := approvals.Find(row); ok && row.Origin.Kind == config.OriginProject {
			set.Servers[i].Program = last.Program()
		}
	}
	if err := MoveLinkedPins(ctx, g.db, set.Mountable()); err != nil {
		return LoadedConfig{}, err
	}
	r := LoadedConfig{shared: g, config: c, set: set}
	if r.addons, err = FindAddons(c, set.Settings, approvals); err != nil {
		return r, err
	}
	r.policy, err = guards.CompileRules(r.rules())
	return r, err
}

// rules returns the rules that apply: Config.Rules, or else the rules in the settings file.
func (r LoadedConfig) rules() *drawbridge.Rules {
	if r.config.Rules != nil {
		return r.config.Rules
	}
	return r.set.Settings.Rules
}

// Open opens a gateway that uses the Shared that loaded r. Close the gateway before the Shared. The error is as for
// [Open].
func (r LoadedConfig) Open(ctx context.Context) (*Gateway, error) {
	g := &Gateway{scriptTasks: cards.NewScriptTasks(),
		id: rand.Text(), log: r.config.Logger, owner: processOwner(), shared: r.shared, set: r.set, policy: r.policy, config: r.config,
		ruleGuard:      guards.NewRuleGuard(r.config.Logger),
		stopTrustWatch: func() {},
	}
	if err := g.open(ctx, r.config, r.addons); err != nil {
		g.stopTrustWatch()
		return nil, err
	}
	return g, nil
}

// Fingerprint returns a hash of the configuration. Two configurations with the same hash have the same servers, card
// names and rules, and both or none have a workspace, so one gateway can serve both. The hash is computed from secrets,
// so it must not be stored outside memory.
func (r LoadedConfig) Fingerprint() (string, error) {
	rows := r.set.Mountable()
	for i := range rows {
		rows[i] = rows[i].WithoutOrigin()
	}
	text, err := json.Marshal([]any{configStream(r.config, r.set), r.config.Naming, r.rules(),
		r.discoverySettings(), r.set.Settings.Deck, rows, r.addonFacts(), r.HasWorkspace()})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return string(sum[:]), nil
}

// StoreLocationFor returns the location of the store of a gateway with this configuration. See StoreLocation.
func StoreLocationFor(c Config) (string, error) {
	s, err := loadSettings(c)
	if err != nil {
		return "", err
	}
	return StoreLocation(c.Store, s, c.LookupEnv)
}

// Run runs the shared parts of the gateways: the server pool, the result scanner, the trust accounts, the audit and the
// models. Gateways can mount servers only while Run runs. It returns when ctx has ended and every server process has
// ended. Call it once, and cancel ctx only after the gateways were closed.
func (g *Shared) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.pool.Run(ctx) })
	group.Go(func() error { return g.scanner.Run(ctx) })
	group.Go(func() error { return g.outputs.Run(ctx) })
	if g.trustAccounts != nil {
		group.Go(func() error { return g.trustAccounts.Run(ctx) })
	}
	if g.audit != nil {
		group.Go(func() error { return g.audit.Run(ctx) })
	}
	if g.models != nil {
		group.Go(func() error { return g.models.Run(ctx) })
	}
	return group.Wait()
}

// Close stops the running commands and scripts, examines the queued results, writes the pending audit records and trust events, and
// closes the models and the store.
func (g *Shared) Close() error {
	return errors.Join(g.jobs.Close(), g.closeSandbox(), g.closeScanner(), g.outputs.Close(g.closing),
		g.closeAudit(), g.flushTrust(), g.models.Close(), g.closeWorkspace(), g.db.Close())
}

// flushTrust writes the pending trust events of servers to the store.
func (g *Shared) flushTrust() error {
	if g.trustAccounts == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(g.closing, quarantineTimeout)
	defer cancel()
	return g.trustAccounts.Flush(ctx)
}
