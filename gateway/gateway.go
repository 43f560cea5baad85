// Package gateway opens all parts of Drawbridge from one Config, and closes them in reverse order with one Close. Go
// programs can embed it; the command line is built on it.
//
// A program needs four things:
//
//   - [RunReaperProcess], first in main: without it, processes that a server started may continue to run after the
//     program is killed, on systems other than Linux on amd64 and arm64. PDF files and Python scripts need it anywhere;
//   - [Open] and [Gateway.Close], and between them [Gateway.Run] in a separate goroutine;
//   - [Gateway.Deck], to list and call tools: a call needs a caller, such as [Gateway.Owner], and an empty
//     drawbridge.Call.Method means "tools/call";
//   - [Gateway.Server], to serve clients: its Handler is an http.Handler for a mux of your own.
//
// To allow or refuse calls by code of your own, add a deck.Guard to Config.Guards. All other names of this package are
// for the command line.
//
// Open starts no process and waits for no server. The first list request is answered from the listings of the servers
// in the store. Servers start in the background, or on the first call of one of their tools. When Run returns, every
// process that the gateway started has ended. Two gateways in one process share no state, unless both were opened on
// one [Shared].
//
// A program built with the tag nomcp contains the deck, the shipped cards and the MCP server, but cannot mount servers.
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
	"github.com/drawbridge-mcp/drawbridge/internal/addons"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/notify"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/drawbridge-mcp/drawbridge/internal/server"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
	"golang.org/x/sync/errgroup"
)

// Config configures a gateway. The zero value uses the configuration, store and settings of the user, as "drawbridge
// serve" does.
type Config struct {
	// Paths are configuration files or directories that replace the default configuration files.
	Paths []string
	// Servers are additional servers, which come before the servers in files. If Servers is not empty and Paths is
	// empty, no files are read. Each server needs an ID, and a Command or a URL. Open sets Phase, and sets Hash if it
	// is empty.
	Servers []config.Server
	// Dir is the working directory; empty means the working directory of the process.
	Dir string
	// LookupEnv looks up an environment variable; nil means os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// Store is a file path, a postgres:// URL, or [MemoryStore]. Empty means the store in the settings, or else the
	// default file, see [StoreLocation].
	Store string
	// Naming is the style of card names. Empty means the style in the settings, or else qualified names.
	Naming deck.NamingStyle
	// Logger receives errors that are not returned to any caller; nil discards them.
	Logger *slog.Logger
	// Version is the version of the program that clients and servers see.
	Version string
	// Token is the bearer token of the HTTP endpoint. Empty means the token in the token_file of the settings, or none.
	Token string
	// Origins are the web origins whose pages may call the HTTP endpoint.
	Origins []string
	// OAuth lists the issuers whose access tokens the HTTP endpoint accepts. If it lists no issuers, the OAuth settings
	// in the settings file are used.
	OAuth config.OAuthSettings
	// Tools limits tool calls. Shield sets how far servers are trusted. If a field has the zero value, the settings
	// file is used instead.
	Tools  config.ToolLimits
	Shield config.ShieldSettings
	// Discovery sets how callers find cards. If it is nil, the settings file is used.
	Discovery *config.ToolDiscovery
	// Flow sets how values are judged by where they come from. If it is nil, the settings file is used.
	Flow *config.FlowSettings
	// Embedder embeds tools for search; Reranker sorts the results of a search. For nil, the models in the settings
	// file are used, if there are any.
	Embedder index.Embedder
	Reranker index.Reranker
	// Guards decide on calls in addition to the built-in guards: all guards must allow a call. If a guard asks for
	// approval, a person sees the [ApprovalDetails] of the call.
	Guards []deck.Guard
	// Interceptors run code before and after calls of tools. They are called before the interceptors of addons.
	Interceptors []deck.Interceptor
	// OnDemand is true if a server must not start before a call, or a method such as Mount, needs it.
	OnDemand bool
	// LeaveStatus is true if this gateway must not change the stored status of servers, because another process, such
	// as the hub, runs the same servers.
	LeaveStatus bool
	// Rules allow or deny calls. If Rules is nil, the rules in the settings file are used. Without any rules, only
	// scopes restrict calls.
	Rules *drawbridge.Rules
	// Environ is the environment, as "name=value", from which the environments of servers are made; nil means the
	// environment of the process.
	Environ []string
	// withoutFlow leaves the guard of information flow out, for benchmarks.
	withoutFlow bool
}

// A Gateway is an open Drawbridge. Its methods may be called from several goroutines.
type Gateway struct {
	// id tells the gateways of one Shared apart.
	id         string
	log        *slog.Logger
	owner      drawbridge.Caller
	shared     *Shared
	ownsShared bool // no other gateway uses shared: Run runs it, and Close closes it
	deck       *deck.Deck
	fleet      fleet
	starter    *lazyStarter
	ruleGuard  *guards.RuleGuard
	fileGuard  guards.OwnFileGuard
	toolGuard  guards.OwnToolGuard
	flow       *guards.FlowGuard
	rowLabels  guards.RowLabels
	server     *server.Server
	pinStage   *vetting.PinStage
	blocked    vetting.BlockedCalls
	enroller   *enroller
	notifier   *notify.Notifier // nil if the settings turn notifications off
	ownTools   *deck.Provisioned
	// scriptTasks are the scripts that run as tasks.
	scriptTasks *cards.ScriptTasks
	catalogue   *deck.Catalogue // the catalogue that ownTools was made from
	addons      []*addons.Addon
	// sessionEvents is the queue of session events for the addons; nil without addons.
	sessionEvents chan sessionEvent
	config        Config
	trail         *deck.ReadTrail
	crossing      atomic.Bool // the deck has the cards of a workspace

	// serverTable and serverTrust hold the data of mountable servers that every call needs. Calls read them without
	// locking mu.
	serverTable guards.ServerTable
	serverTrust *vetting.ServerTrust

	// stopTrustWatch ends the calls of the function that watchQuarantines registered.
	stopTrustWatch func()

	// mu guards extraServers and the configuration, which Reload, AddServer and RemoveServer change.
	mu           sync.Mutex
	set          config.Configuration
	policy       *policy.Policy // nil without rules
	attached     []config.Server
	extraServers []*server.Server

	// runMu guards closed, stop and runDone. Close sets closed. While Run runs, stop cancels it, and runDone is a
	// channel that is closed when Run returns.
	runMu   sync.Mutex
	closed  bool
	stop    context.CancelFunc
	runDone chan struct{}
}

// A fleet connects to servers: upstream.Fleet, or noFleet in a build with the tag nomcp.
type fleet interface {
	deck.Upstream
	runner
	mounter
	accessProvider
	statusReporter
}

// A statusReporter reports the status of its servers.
type statusReporter interface {
	Status() []drawbridge.ServerStatus
	// Notifications returns the notifications of a server, and ReadStderr its standard error output.
	Notifications(id drawbridge.ServerID) (drawbridge.NotificationReport, error)
	ReadStderr(ctx context.Context, id drawbridge.ServerID, follow bool, each func(line string) error) error
	// SetRemembered replaces the stored listings and statuses of the configured servers. The keys are configuration
	// hashes.
	SetRemembered(known map[string]drawbridge.Listing, last map[string]drawbridge.ServerStatus)
}

// An accessProvider returns sign-in managers for its servers.
type accessProvider interface {
	Access(id drawbridge.ServerID, principal string) (drawbridge.SignInManager, error)
}

// A runner runs until its context ends.
type runner interface {
	Run(ctx context.Context) error
	// Running returns a channel that is closed when Run has begun.
	Running() <-chan struct{}
}

// A mounter mounts and lists its servers.
type mounter interface {
	serverSet
	Mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error)
	AwaitFirstAttempt(ctx context.Context, id drawbridge.ServerID) error
	Relist(ctx context.Context, id drawbridge.ServerID) (connected bool, err error)
	Reconnect(ctx context.Context, id drawbridge.ServerID) error
}

// A serverSet adds and removes servers.
type serverSet interface {
	Add(row config.Server) error
	// Hold adds a server that does not start before Release is called for it, or before the server itself is called.
	Hold(row config.Server) error
	Release(id drawbridge.ServerID)
	Remove(id drawbridge.ServerID) (gone <-chan struct{}, err error)
}

// Open opens a gateway. It reads the configuration, opens the store, reads the ledger and enrols the stored listing of
// each server. It starts no server. The error is a *drawbridge.Fault. Its code is InvalidInput for mistakes in the
// configuration or on the command line.
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

// withLogger returns the configuration with a logger. If c has no logger, it is a logger that discards everything.
func (c Config) withLogger() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// readsFiles reports whether the configuration includes files: Paths are named, or no Servers are given.
func (c Config) readsFiles() bool { return len(c.Paths) > 0 || len(c.Servers) == 0 }

// loadConfigFiles reads the configuration files and sets the empty fields of c from them. approved reports whether a
// person has approved a server that a project configures; nil means that none is approved.
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
	c.Token, err = EndpointToken(c, set.Settings)
	return c, set, err
}

// open creates the parts of g that need the open store: guards, fleet, addons, deck and server.
func (g *Gateway) open(ctx context.Context, c Config, found []FoundAddon) error {
	db := g.shared.db
	mounts, err := db.MountsOf(ctx, config.ServerHashes(g.set.Mountable()))
	if err != nil {
		return storeFault("read the stored listings", err)
	}
	key, err := db.SharedSecret(ctx, "request-state", 32)
	if err != nil {
		return storeFault("read the key that seals request states", err)
	}
	g.updateRows(g.policy, g.set.Servers, g.set.Settings.RootURIs())
	g.updateOwnFiles()
	g.starter = newLazyStarter(g.set.Mountable(), mounts, c, g.set.Settings.FirstListWait)
	g.starter.hides = g.ruleGuard.Hides
	g.serverTrust = vetting.NewServerTrust(g.shared.trustAccounts)
	if g.fleet, err = g.shared.pool.newFleet(g, c, mounts); err != nil {
		return err
	}
	g.starter.fleet = g.fleet
	if g.notifier, err = newNotifier(g.set.Settings, g.log); err != nil {
		return err
	}
	view, pipeline := &cardBackend{g}, g.newPipeline()
	g.followLabels(ctx, c)
	if err := g.openAddons(c, found); err != nil {
		return err
	}
	if len(g.addons) > 0 {
		g.sessionEvents = make(chan sessionEvent, maxSessionEvents)
	}
	discovery := LoadedConfig{config: c, set: g.set}.discoverySettings()
	own, err := g.newOwnParts(ctx, view, discovery)
	if err != nil {
		return err
	}
	if g.catalogue, err = g.newToolCatalogue(); err != nil {
		return err
	}
	if g.ownTools, err = g.provisionTools(c, own.workspace); err != nil {
		return err
	}
	if g.toolGuard, err = g.newOwnToolGuard(c, g.set.Settings); err != nil {
		return err
	}
	g.deck, err = deck.New(ctx, g.fleet, deck.Options{
		Logger: g.log, Naming: c.Naming, Journal: db, Stream: configStream(c, g.set),
		Cards: own.listed, Tools: g.insideTools(discovery), ReadTrail: g.trail, Boundary: own.boundary, Resources: own.templates, Interceptors: g.interceptors(),
		FilterSkill: pipeline.FilterSkill, SealKeys: [][]byte{key},
		Owner: g.owner.Principal,
		Audit: g.shared.auditRecorder(), Approver: g.approvalQueue(), Spotlight: g.spotlightFilter().Selects,
		Inspect: g.shared.vetted.sanitiser.SanitiseText, ResultHolder: heldResults{db},
		ResultScanner: g.shared.scanner, OutputLearner: g.shared.outputs, OwnTasks: g.scriptTasks,
		ScanForeignCards: g.scansForeignTexts(),
		Discovery: deckDiscovery(discovery,
			g.shared.models.IndexOptions(), g.log), BeforeList: g.starter.waitBeforeList,
		BeforeUnknown: g.starter.waitForUnknownName,
		Guards:        slices.Concat(g.guardsOf(c), c.Guards),
	})
	if err != nil {
		return storeFault("open the deck", err)
	}
	g.enroller = &enroller{deck: g.deck, pipeline: pipeline}
	g.stopTrustWatch = g.watchQuarantines()
	members := g.deckMembers()
	for _, m := range members {
		g.shared.vetted.restore(m.ConfigHash, mounts[m.ConfigHash].Vetted)
	}
	if err := g.enroller.configure(ctx, members, mounts); err != nil {
		return storeFault("record the configuration", err)
	}
	if err := g.starter.addRows(); err != nil {
		return err
	}
	g.server, err = g.NewServer(ctx, c.Token, c.Origins)
	return err
}

// A cardBackend connects the control cards of package cards to a gateway. It implements the interfaces that these cards
// use.
type cardBackend struct{ g *Gateway }

var (
	_ cards.CardLister    = (*cardBackend)(nil)
	_ cards.SignInServers = (*cardBackend)(nil)
)

func (c *cardBackend) Cards(caller drawbridge.Caller) []drawbridge.Spec {
	return c.g.deck.Cards(caller)
}

// WaitingForSignIn returns the servers that wait for a sign-in.
func (c *cardBackend) WaitingForSignIn() (ids []drawbridge.ServerID) {
	for _, s := range c.g.fleet.Status() {
		if s.SignIn != "" {
			ids = append(ids, s.Server)
		}
	}
	return ids
}

// ServerSignIn returns the owner's sign-in manager for a server.
func (c *cardBackend) ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error) {
	return c.g.ServerSignIn(id)
}

// Run mounts servers and keeps them connected until ctx ends or the gateway is closed. It returns when every process
// that it started has ended. Run may be called only once. Calls to servers wait until Run has begun.
func (g *Gateway) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ran := make(chan struct{})
	g.runMu.Lock()
	if g.closed || g.runDone != nil {
		g.runMu.Unlock()
		return errors.New("run the gateway: it is closed, or was run before")
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
	group.Go(func() error { return g.starter.run(ctx, g.revetStale) })
	if g.sessionEvents != nil {
		group.Go(func() error { return g.tellOfSessions(ctx) })
	}
	if g.notifier != nil {
		group.Go(func() error { return g.notifier.Run(ctx) })
	}
	if g.Library() != nil {
		group.Go(func() error { return g.embedCards(ctx) })
	}
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Close stops Run, waits until Run has returned, and closes the parts of the gateway in the reverse order of Open. It
// may be called more than once.
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
	servers := g.extraServers
	g.mu.Unlock()
	g.stopTrustWatch()
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.Close())
	}
	if stop != nil {
		stop()
		<-ran
	}
	errs = append(errs, g.scriptTasks.Close())
	if g.ownTools != nil {
		errs = append(errs, g.ownTools.Close())
	}
	errs = append(errs, g.closeAddons(g.shared.closing))
	if g.ownsShared {
		errs = append(errs, g.shared.Close())
	}
	return errors.Join(errs...)
}

// Deck returns the deck, which lists, finds and calls cards.
func (g *Gateway) Deck() *deck.Deck { return g.deck }

// Server returns the MCP server, to be served over HTTP or standard input and output.
func (g *Gateway) Server() *server.Server { return g.server }

// Owner returns the caller for calls that this process makes itself: the user of the operating system, with all scopes
// and the newest protocol version.
func (g *Gateway) Owner() drawbridge.Caller { return g.owner }

// NewCaller returns a caller to which servers may send requests: a copy of Owner with a new session. capabilities are
// the client capabilities of initialize, such as `{"elicitation":{},"roots":{}}`. Each call of this caller needs a
// Peer, which answers the requests that a server of any protocol version sends during the call. end closes the sessions
// with servers that were opened for the caller; call end after the caller's last call.
func (g *Gateway) NewCaller(capabilities json.RawMessage) (caller drawbridge.Caller, end func()) {
	caller = g.owner
	caller.Era, caller.Protocol = drawbridge.Legacy, mcp.Version20251125
	caller.Session, caller.Capabilities = rand.Text(), capabilities
	return caller, func() {
		g.deck.EndSession(caller)
		g.shared.results.EndSession(caller)
	}
}

// Config returns the current configuration.
func (g *Gateway) Config() config.Configuration {
	g.mu.Lock()
	defer g.mu.Unlock()
	set := g.set
	set.Servers = slices.Clone(set.Servers)
	return set
}

// storeFault returns err as a fault with the step that failed because of the store. If err is or wraps a
// *drawbridge.Fault, it is returned unchanged.
func storeFault(step string, err error) error {
	if _, ok := errors.AsType[*drawbridge.Fault](err); ok {
		return err
	}
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.ServerError, Step: step, Err: err}
}
