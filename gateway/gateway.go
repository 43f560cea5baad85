// Package gateway is the whole system as one value: a configuration goes in, everything is opened in its order, and one
// Close ends it in reverse. It is what a Go program embeds, and all that the command line stands on.
//
// It promises that Open starts no process and waits for no server: the first list is answered from what is remembered of
// each server, which starts in the background or when one of its cards is called. It promises that nothing it started
// outlives Run. Two gateways in one process do not see each other.
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
	"github.com/drawbridge-mcp/drawbridge/gateway/keep"
	"github.com/drawbridge-mcp/drawbridge/gateway/pins"
	"github.com/drawbridge-mcp/drawbridge/gateway/warden"
	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/policy"
	"github.com/drawbridge-mcp/drawbridge/server"
	"github.com/drawbridge-mcp/drawbridge/wire"
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
	Naming deck.Naming
	// Logger is told of what went wrong and nobody else hears of; nil is silence.
	Logger *slog.Logger
	// Version is ours, as clients and servers are told it.
	Version string
	// Token is the bearer token of the HTTP door; empty means the one of the settings' token_file, and else none.
	Token string
	// Origins are the web origins whose pages may call the HTTP door.
	Origins []string
	// OAuth says whose access tokens the HTTP door takes; without issuers it means what the settings say.
	OAuth config.OAuth
	// Tools bounds calls of tools, Shield says how far servers are trusted; zero values mean what the settings say.
	Tools  config.Tools
	Shield config.Shield
	// Discovery says how cards are found; nil means what the settings say.
	Discovery *config.Discovery
	// Embedder gives tools their places by meaning, Reranker judges how well they answer; nil means those of the settings, and
	// else none.
	Embedder index.Embedder
	Reranker index.Reranker
	// Guards decide on calls, beside those of the settings: all must allow. Where one wants a person asked, see AskDetails.
	Guards []deck.Guard
	// OnDemand starts no server before a call, Mount or AwaitNew asks for it.
	OnDemand bool
	// Rules say who may call what; nil means what the settings say, and else that everybody may call what their scopes let
	// them.
	Rules *drawbridge.Rules
	// Environ is the environment that servers get theirs from, as "name=value"; nil means the process's.
	Environ []string
}

// A Gateway is the system, opened. Its methods may be called from several goroutines.
type Gateway struct {
	log     *slog.Logger
	owner   drawbridge.Caller
	ground  *Ground
	alone   bool // no other gateway stands on the ground: it runs and closes with this one
	deck    *deck.Deck
	fleet   fleet
	starter *starter
	warden  *warden.Warden
	keep    keep.Keep
	server  *server.Server
	pins    *pins.Stage
	bars    bars
	c       Config

	// rows are the rows that may be mounted, by name, for those who must not wait for mu.
	rows atomic.Pointer[map[drawbridge.ServerID]*mountable]

	// unwatch ends the deck's hearing of quarantines.
	unwatch func()

	// mu guards the configuration, which Reload, Attach and Detach change, and the doors.
	mu       sync.Mutex
	set      config.Set
	policy   *policy.Policy // nil where there are no rules
	attached []config.Server
	doors    []*server.Server

	// life is closed to Run once Close was called; stop and ran belong to the Run that is going on.
	life   sync.Mutex
	closed bool
	stop   context.CancelFunc
	ran    chan struct{}
}

// A fleet is what the gateway needs of package bridge, or of its stand-in where that is left out of the build.
type fleet interface {
	deck.Upstream
	runner
	mounter
	signer
	teller
}

// A teller says how its servers are.
type teller interface {
	Status() []drawbridge.Status
	Stderr(ctx context.Context, id drawbridge.ServerID, follow bool, each func(line string) error) error
	// Recall says what is remembered of the servers that are configured now: the last listings and statuses, by row hash.
	Recall(known map[string]drawbridge.Listing, last map[string]drawbridge.Status)
}

// A signer signs in at its servers.
type signer interface {
	Access(id drawbridge.ServerID, principal string) (drawbridge.Access, error)
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
	Attempted(ctx context.Context, id drawbridge.ServerID) error
	Relist(ctx context.Context, id drawbridge.ServerID) (connected bool, err error)
	Add(row config.Server) error
	Remove(id drawbridge.ServerID) (gone <-chan struct{}, err error)
}

// Open makes a gateway: it reads the configuration, opens the store, replays the ledger and enrols what is remembered of
// each server. Nothing is started yet. The error is a *drawbridge.Fault, with the code InvalidInput for what a person can
// mend in the configuration or on the command line.
func Open(ctx context.Context, c Config) (*Gateway, error) {
	ground, err := OpenGround(ctx, c)
	if err != nil {
		return nil, err
	}
	r, err := ground.Read(ctx, c)
	if err != nil {
		return nil, errors.Join(err, ground.Close())
	}
	g, err := r.Open(ctx)
	if err != nil {
		return nil, errors.Join(err, ground.Close())
	}
	g.alone = true
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

// load reads the configuration and fills in what c leaves open. Approved says which rows of a project a person approved; nil
// is none.
func load(c Config, approved func(config.Server) bool) (Config, config.Set, error) {
	c = c.withLogger()
	var set config.Set
	var err error
	if c.readsFiles() {
		set, err = config.Load(config.Options{Paths: c.Paths, Dir: c.Dir, LookupEnv: c.LookupEnv, Approved: approved})
		if err != nil {
			return c, set, err
		}
	}
	var rows []config.Server
	for _, row := range c.Servers {
		row, err := ownRow(row, rows)
		if err != nil {
			return c, set, err
		}
		rows = append(rows, row)
	}
	for _, row := range set.Servers {
		if len(rows) > 0 && named(rows[:len(c.Servers)], row.ID) {
			set.Shadowed = append(set.Shadowed, row)
			continue
		}
		rows = append(rows, row)
	}
	set.Servers = rows
	if c.Naming == "" {
		c.Naming = deck.Naming(set.Settings.Naming)
	}
	if len(c.OAuth.Issuers) == 0 {
		c.OAuth = set.Settings.OAuth
	}
	if c.Token == "" && set.Settings.TokenFile != "" {
		c.Token, err = readLine("token", set.Settings.TokenFile)
	}
	return c, set, err
}

// open makes all that stands on the store.
func (g *Gateway) open(ctx context.Context, c Config) error {
	db := g.ground.db
	mounts, err := db.MountsOf(ctx, config.Hashes(g.set.Mountable()))
	if err != nil {
		return backend("read what is remembered of servers", err)
	}
	key, err := db.Secret(ctx, "request-state", 32)
	if err != nil {
		return backend("read the key of what passes through callers", err)
	}
	g.warden.Take(g.policy, g.set.Servers, g.set.Settings.RootURIs())
	g.takeOwn()
	g.starter = newStarter(g.set.Mountable(), mounts, c, g.set.Settings.Grace)
	g.starter.hides, g.starter.ended = g.warden.Hides, g.ended
	view := &control{g}
	g.deck, err = deck.New(ctx, g.starter, deck.Options{
		Logger: g.log, Naming: c.Naming, Journal: db, Stream: streamOf(c, g.set),
		Cards: cards.Catalogue(view, view), Vetter: quarantine{g.vetter(), g}, StateKeys: [][]byte{key}, Owner: g.owner.Principal,
		Audit: g.ground.recorder(), Approver: g.approver(), Fence: g.fenced(), Look: g.ground.vetted.sanitiser.Read, Holder: heldResults{db},
		Discovery: discovery(Reading{c: c, set: g.set}.discovery(), g.ground.models.Index(), g.log), BeforeList: g.starter.beforeList, BeforeUnknown: g.starter.beforeUnknown,
		Guards: slices.Concat([]deck.Guard{g.warden, &g.keep}, c.Guards, []deck.Guard{g.ground.meter.Guard(g.pace)}),
	})
	if err != nil {
		return backend("open the deck", err)
	}
	g.unwatch = g.watchTrust()
	members := g.members()
	for i, m := range members {
		members[i].Remembered = mounts[m.Row].Listing
		g.ground.vetted.remember(m.Row, mounts[m.Row].Vetted)
	}
	if err := g.deck.Configure(ctx, members); err != nil {
		return backend("record the configuration", err)
	}
	if g.fleet, err = g.ground.pool.fleet(g, c, g.starter.ready(), mounts); err != nil {
		return err
	}
	g.starter.fleet = g.fleet
	g.server, err = g.Door(c.Token, c.Origins)
	return err
}

// control is the gateway as the control cards see it.
type control struct{ g *Gateway }

var (
	_ cards.Deck  = (*control)(nil)
	_ cards.Doors = (*control)(nil)
)

func (c *control) Cards(caller drawbridge.Caller) []drawbridge.Spec { return c.g.deck.Cards(caller) }

// Barred names the servers that wait for somebody to sign in.
func (c *control) Barred() (ids []drawbridge.ServerID) {
	for _, s := range c.g.fleet.Status() {
		if s.SignIn != "" {
			ids = append(ids, s.Server)
		}
	}
	return ids
}

// Access gives how the owner comes to be let in by a server.
func (c *control) Access(id drawbridge.ServerID) (drawbridge.Access, error) {
	return c.g.Access(id)
}

// Run mounts servers and keeps them, until ctx ends or the gateway is closed. It returns when every process that it
// started is gone. A gateway runs once: what is asked of servers before that waits for it.
func (g *Gateway) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ran := make(chan struct{})
	g.life.Lock()
	if g.closed || g.ran != nil {
		g.life.Unlock()
		return errors.New("run the gateway: it is closed, or runs already")
	}
	g.stop, g.ran = stop, ran
	g.life.Unlock()
	defer func() {
		g.life.Lock()
		g.stop, g.ran = nil, nil
		g.life.Unlock()
		close(ran)
	}()
	group, ctx := errgroup.WithContext(ctx)
	if g.alone {
		group.Go(func() error { return g.ground.Run(ctx) })
	}
	group.Go(func() error { return g.fleet.Run(ctx) })
	group.Go(func() error { return g.starter.run(ctx, g.log, g.lookAgain) })
	if g.Library() != nil {
		group.Go(func() error { return g.embedAhead(ctx) })
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
	g.life.Lock()
	if g.closed {
		g.life.Unlock()
		return nil
	}
	g.closed = true
	stop, ran := g.stop, g.ran
	g.life.Unlock()
	g.mu.Lock()
	doors := g.doors
	g.mu.Unlock()
	g.unwatch()
	var errs []error
	for _, door := range doors {
		errs = append(errs, door.Close())
	}
	if stop != nil {
		stop()
		<-ran
	}
	if g.alone {
		errs = append(errs, g.ground.Close())
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

// Client makes a caller for a part of the program that servers may ask: like Owner, with a session of its own and these
// capabilities, which are what a client declares at initialize (`{"elicitation":{},"roots":{}}`). Its calls carry a Peer
// that answers; it is asked in the midst of a call, whichever generation the server speaks. end closes what was opened for
// it, once its calls are over.
func (g *Gateway) Client(capabilities json.RawMessage) (caller drawbridge.Caller, end func()) {
	caller = g.owner
	caller.Era, caller.Protocol = drawbridge.Legacy, wire.Version20251125
	caller.Session, caller.Capabilities = rand.Text(), capabilities
	return caller, func() { g.deck.EndSession(caller) }
}

// Config gives the configuration as it is now.
func (g *Gateway) Config() config.Set {
	g.mu.Lock()
	defer g.mu.Unlock()
	set := g.set
	set.Servers = slices.Clone(set.Servers)
	return set
}

// backend is the fault of a step that needs the store; one that says so itself passes.
func backend(step string, err error) error {
	if _, ok := errors.AsType[*drawbridge.Fault](err); ok {
		return err
	}
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.ServerError, Step: step, Err: err}
}
