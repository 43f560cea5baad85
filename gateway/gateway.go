// Package gateway is the whole system as one value: a configuration goes in, everything is opened in its order, and one
// Close ends it in reverse. It is what a Go program embeds, and all that the command line stands on.
//
// It promises that Open starts no process and waits for no server: the first list is answered from what is remembered
// of each server, which starts in the background or when one of its cards is called. It promises that nothing it
// started outlives Run. Two gateways in one process do not see each other.
//
// A program built with the tag nomcp has the deck, the shipped cards and the surface, and no way to mount a server.
package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/drawbridge-mcp/drawbridge/internal/server"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
	"golang.org/x/sync/errgroup"
)

// Config is what a gateway can be told. The zero value is the gateway that "drawbridge serve" is: the person's own
// configuration, store and settings.
type Config struct {
	// Paths are configuration files or directories that replace the usual ones.
	Paths []string
	// Servers are servers of the program's own, before those of files; where there are any and Paths is empty, no files
	// are looked for. ID is needed, and Command or URL; Hash and Phase are filled in.
	Servers []config.Server
	// Dir is the working directory; empty means the process's.
	Dir string
	// LookupEnv finds a variable of the environment; nil is os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// Store is the path of the store's file, a postgres:// URL, or ":memory:"; empty means what the settings say, and
	// else the usual place.
	Store string
	// Naming is how cards are named; empty means what the settings say, and else qualified.
	Naming deck.NamingStyle
	// Logger is told of what went wrong and nobody else hears of; nil is silence.
	Logger *slog.Logger
	// Version is ours, as clients and servers are told it.
	Version string
	// Token is the bearer token of the HTTP door; empty means the one of the settings' token_file, and else none.
	Token string
	// Origins are the web origins whose pages may call the HTTP door.
	Origins []string
	// OAuth says whose access tokens the HTTP door takes; without issuers it means what the settings say.
	OAuth config.OAuthSettings
	// Tools bounds calls of tools, Shield says how far servers are trusted; zero values mean what the settings say.
	Tools  config.ToolLimits
	Shield config.ShieldSettings
	// Discovery says how cards are found; nil means what the settings say.
	Discovery *config.ToolDiscovery
	// Embedder gives tools their places by meaning, Reranker judges how well they answer; nil means those of the
	// settings, and else none.
	Embedder index.Embedder
	Reranker index.Reranker
	// Guards decide on calls, beside those of the settings: all must allow. Where one wants a person asked, see
	// ApprovalDetails.
	Guards []deck.Guard
	// OnDemand starts no server before a call, Mount or AwaitNew asks for it.
	OnDemand bool
	// Rules say who may call what; nil means what the settings say, and else that everybody may call what their scopes
	// let them.
	Rules *drawbridge.Rules
	// Environ is the environment that servers get theirs from, as "name=value"; nil means the process's.
	Environ []string
}

// A Gateway is the system, opened. Its methods may be called from several goroutines.
type Gateway struct {
	log        *slog.Logger
	owner      drawbridge.Caller
	shared     *Shared
	ownsShared bool // no other gateway stands on the ground: it runs and closes with this one
	deck       *deck.Deck
	fleet      fleet
	starter    *lazyStarter
	ruleGuard  *guards.RuleGuard
	fileGuard  guards.OwnFileGuard
	server     *server.Server
	pinStage   *vetting.PinStage
	blocked    blockedCalls
	config     Config

	// rows are the rows that may be mounted, by name, for those who must not wait for mu.
	rows atomic.Pointer[map[drawbridge.ServerID]*mountableRow]

	// stopTrustWatch ends the deck's hearing of quarantines.
	stopTrustWatch func()

	// mu guards the configuration, which Reload, Attach and Detach change, and the doors.
	mu           sync.Mutex
	set          config.Configuration
	policy       *policy.Policy // nil where there are no rules
	attached     []config.Server
	extraServers []*server.Server

	// runMu is closed to Run once Close was called; stop and ran belong to the Run that is going on.
	runMu   sync.Mutex
	closed  bool
	stop    context.CancelFunc
	runDone chan struct{}
}

// A fleet is what the gateway needs of package bridge, or of its stand-in where that is left out of the build.
type fleet interface {
	deck.Upstream
	runner
	mounter
	accessProvider
	statusReporter
}

// A statusReporter says how its servers are.
type statusReporter interface {
	Status() []drawbridge.ServerStatus
	ReadStderr(ctx context.Context, id drawbridge.ServerID, follow bool, each func(line string) error) error
	// SetRemembered says what is remembered of the servers that are configured now: the last listings and statuses, by
	// row hash.
	SetRemembered(known map[string]drawbridge.Listing, last map[string]drawbridge.ServerStatus)
}

// A accessProvider signs in at its servers.
type accessProvider interface {
	Access(id drawbridge.ServerID, principal string) (drawbridge.SignInManager, error)
}

// A runner is a fleet's life.
type runner interface {
	Run(ctx context.Context) error
	// Running is closed when Run has begun.
	Running() <-chan struct{}
}

// A mounter is what happens in it.
type mounter interface {
	Mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error)
	AwaitFirstAttempt(ctx context.Context, id drawbridge.ServerID) error
	Relist(ctx context.Context, id drawbridge.ServerID) (connected bool, err error)
	Add(row config.Server) error
	Remove(id drawbridge.ServerID) (gone <-chan struct{}, err error)
}

// Open makes a gateway: it reads the configuration, opens the store, replays the ledger and enrols what is remembered
// of each server. Nothing is started yet. The error is a *drawbridge.Fault, with the code InvalidInput for what a
// person can mend in the configuration or on the command line.
func Open(ctx context.Context, c Config) (*Gateway, error) {
	ground, err := OpenShared(ctx, c)
	if err != nil {
		return nil, err
	}
	r, err := ground.LoadConfig(ctx, c)
	if err != nil {
		return nil, errors.Join(err, ground.Close())
	}
	g, err := r.Open(ctx)
	if err != nil {
		return nil, errors.Join(err, ground.Close())
	}
	g.ownsShared = true
	return g, nil
}

// withLogger is the configuration with silence for a logger where it has none.
func (c Config) withLogger() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// readsFiles says whether files are looked for.
func (c Config) readsFiles() bool { return len(c.Paths) > 0 || len(c.Servers) == 0 }

// loadConfigFiles reads the configuration and fills in what c leaves open. Approved says which rows of a project a
// person approved; nil is none.
func loadConfigFiles(c Config, approved func(config.Server) bool) (Config, config.Configuration, error) {
	c = c.withLogger()
	var set config.Configuration
	var err error
	if c.readsFiles() {
		set, err = config.Load(config.Options{Paths: c.Paths, Dir: c.Dir, LookupEnv: c.LookupEnv, Approved: approved})
		if err != nil {
			return c, set, err
		}
	}
	var rows []config.Server
	for _, row := range c.Servers {
		row, err := completeRow(row, rows)
		if err != nil {
			return c, set, err
		}
		rows = append(rows, row)
	}
	for _, row := range set.Servers {
		if len(rows) > 0 && hasRowNamed(rows[:len(c.Servers)], row.ID) {
			set.Shadowed = append(set.Shadowed, row)
			continue
		}
		rows = append(rows, row)
	}
	set.Servers = rows
	if c.Naming == "" {
		c.Naming = deck.NamingStyle(set.Settings.Naming)
	}
	if len(c.OAuth.Issuers) == 0 {
		c.OAuth = set.Settings.OAuth
	}
	if c.Token == "" && set.Settings.TokenFile != "" {
		c.Token, err = readSecretFile("token", set.Settings.TokenFile)
	}
	return c, set, err
}

// open makes all that stands on the store.
func (g *Gateway) open(ctx context.Context, c Config) error {
	db := g.shared.db
	mounts, err := db.MountsOf(ctx, config.ServerHashes(g.set.Mountable()))
	if err != nil {
		return storeFault("read what is remembered of servers", err)
	}
	key, err := db.SharedSecret(ctx, "request-state", 32)
	if err != nil {
		return storeFault("read the key of what passes through callers", err)
	}
	g.ruleGuard.Update(g.policy, g.set.Servers, g.set.Settings.RootURIs())
	g.updateOwnFiles()
	g.starter = newLazyStarter(g.set.Mountable(), mounts, c, g.set.Settings.FirstListWait)
	g.starter.hides, g.starter.onCallEnd = g.ruleGuard.Hides, g.onCallEnd
	view := &cardBackend{g}
	g.deck, err = deck.New(ctx, g.starter, deck.Options{
		Logger: g.log, Naming: c.Naming, Journal: db, Stream: configStream(c, g.set),
		Cards: cards.Catalogue(view, view), Vetter: quarantineVetter{g.vetter(), g}, SealKeys: [][]byte{key},
		Owner: g.owner.Principal,
		Audit: g.shared.auditRecorder(), Approver: g.approvalQueue(), Spotlight: g.spotlightFilter(),
		Inspect: g.shared.vetted.sanitiser.SanitiseText, ResultHolder: heldResults{db},
		Discovery: deckDiscovery(LoadedConfig{config: c, set: g.set}.discoverySettings(),
			g.shared.models.IndexOptions(), g.log), BeforeList: g.starter.waitBeforeList,
		BeforeUnknown: g.starter.waitForUnknownName,
		Guards: slices.Concat(guards.All(guards.Dependencies{
			Rules: g.ruleGuard, OwnFiles: &g.fileGuard, Limiter: g.shared.callLimiter, ServerRate: g.serverRate,
		}), c.Guards),
	})
	if err != nil {
		return storeFault("open the deck", err)
	}
	g.stopTrustWatch = g.watchQuarantines()
	members := g.deckMembers()
	for i, m := range members {
		members[i].Remembered = mounts[m.ConfigHash].Listing
		g.shared.vetted.restore(m.ConfigHash, mounts[m.ConfigHash].Vetted)
	}
	if err := g.deck.Configure(ctx, members); err != nil {
		return storeFault("record the configuration", err)
	}
	if g.fleet, err = g.shared.pool.newFleet(g, c, g.starter.startableRows(), mounts); err != nil {
		return err
	}
	g.starter.fleet = g.fleet
	g.server, err = g.NewServer(c.Token, c.Origins)
	return err
}

// cardBackend is the gateway as the control cards see it.
type cardBackend struct{ g *Gateway }

var (
	_ cards.CardLister    = (*cardBackend)(nil)
	_ cards.SignInServers = (*cardBackend)(nil)
)

func (c *cardBackend) Cards(caller drawbridge.Caller) []drawbridge.Spec {
	return c.g.deck.Cards(caller)
}

// WaitingForSignIn names the servers that wait for somebody to sign in.
func (c *cardBackend) WaitingForSignIn() (ids []drawbridge.ServerID) {
	for _, s := range c.g.fleet.Status() {
		if s.SignIn != "" {
			ids = append(ids, s.Server)
		}
	}
	return ids
}

// ServerSignIn gives how the owner comes to be let in by a server.
func (c *cardBackend) ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error) {
	return c.g.ServerSignIn(id)
}

// Run mounts servers and keeps them, until ctx ends or the gateway is closed. It returns when every process that it
// started is gone. A gateway runs once: what is asked of servers before that waits for it.
func (g *Gateway) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ran := make(chan struct{})
	g.runMu.Lock()
	if g.closed || g.runDone != nil {
		g.runMu.Unlock()
		return errors.New("run the gateway: it is closed, or runs already")
	}
	g.stop, g.runDone = stop, ran
	g.runMu.Unlock()
	defer func() {
		g.runMu.Lock()
		g.stop, g.runDone = nil, nil
		g.runMu.Unlock()
		close(ran)
	}()
	group, ctx := errgroup.WithContext(ctx)
	if g.ownsShared {
		group.Go(func() error { return g.shared.Run(ctx) })
	}
	group.Go(func() error { return g.fleet.Run(ctx) })
	group.Go(func() error { return g.starter.run(ctx, g.log, g.revetStale) })
	if g.Library() != nil {
		group.Go(func() error { return g.embedCards(ctx) })
	}
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Close ends everything in the reverse order of Open, and waits for a Run that is going on. It may be called more than
// once.
func (g *Gateway) Close() error {
	g.runMu.Lock()
	if g.closed {
		g.runMu.Unlock()
		return nil
	}
	g.closed = true
	stop, ran := g.stop, g.runDone
	g.runMu.Unlock()
	g.mu.Lock()
	doors := g.extraServers
	g.mu.Unlock()
	g.stopTrustWatch()
	var errs []error
	for _, door := range doors {
		errs = append(errs, door.Close())
	}
	if stop != nil {
		stop()
		<-ran
	}
	if g.ownsShared {
		errs = append(errs, g.shared.Close())
	}
	return errors.Join(errs...)
}

// Deck gives the deck: list, find and call cards with it.
func (g *Gateway) Deck() *deck.Deck { return g.deck }

// Server gives the surface, to be served over HTTP or standard input and output.
func (g *Gateway) Server() *server.Server { return g.server }

// Owner gives the caller that this process acts for: the user of the operating system, with all scopes, who speaks the
// newest protocol.
func (g *Gateway) Owner() drawbridge.Caller { return g.owner }

// NewCaller makes a caller for a part of the program that servers may ask: like Owner, with a session of its own and
// these capabilities, which are what a client declares at initialize (`{"elicitation":{},"roots":{}}`). Its calls
// carry a Peer that answers; it is asked in the midst of a call, whichever generation the server speaks. end closes
// what was opened for it, once its calls are over.
func (g *Gateway) NewCaller(capabilities json.RawMessage) (caller drawbridge.Caller, end func()) {
	caller = g.owner
	caller.Era, caller.Protocol = drawbridge.Legacy, mcp.Version20251125
	caller.Session, caller.Capabilities = rand.Text(), capabilities
	return caller, func() { g.deck.EndSession(caller) }
}

// Config gives the configuration as it is now.
func (g *Gateway) Config() config.Configuration {
	g.mu.Lock()
	defer g.mu.Unlock()
	set := g.set
	set.Servers = slices.Clone(set.Servers)
	return set
}

// storeFault is the fault of a step that needs the store; one that says so itself passes.
func storeFault(step string, err error) error {
	if _, ok := errors.AsType[*drawbridge.Fault](err); ok {
		return err
	}
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.ServerError, Step: step, Err: err}
}
