// Package upstream is the side-effecting half: it mounts MCP servers, finds out what each speaks, lists them, and
// carries calls to them and everything they say back, as bytes.
//
// It promises that one bad server costs the others nothing: every server is mounted beside the others, with time limits
// of its own. It promises that nothing it started outlives it: [Fleet.Run] owns every goroutine and every child
// process, and returns when all of them are gone; see package process for what happens when we are killed. Of a call's
// bytes only members of _meta change that belong to one hop, and of a result's the server's name for itself.
//
// What a server holds for one principal is never shown to another: connections are shared only between callers of one
// principal, unless the server's row says otherwise, and what is asked in the course of a call (sampling, elicitation,
// roots) goes to the caller of that call and nobody else.
//
// Which servers may be mounted, how cards are named and who may call them is decided elsewhere.
package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// RunReaperProcess must be called first thing in main, and in TestMain of tests that mount servers: our own executable
// is run again to end what a server leaves behind (see package process). In that process it never returns; in all
// others it does nothing. A program that does not call it has its servers killed when it dies, but not always what
// they started.
func RunReaperProcess() { process.RunIfReaper() }

// MountedVariable is the environment variable by which a server knows that a fleet started it.
const MountedVariable = process.MountedVariable

// A MountStore remembers how mounts went, for the next process. Its errors are logged and cost nothing else.
type MountStore interface {
	// RecordAttempt records that a server is about to be mounted, before anything of it is started.
	RecordAttempt(ctx context.Context, row string, id drawbridge.ServerID) error
	// SaveListing records what the server offers.
	SaveListing(ctx context.Context, listing drawbridge.Listing) error
	// SaveStatus records how the server is. It is called at each change of phase.
	SaveStatus(ctx context.Context, row string, status drawbridge.ServerStatus) error
}

// A FleetOptions is what a fleet has for itself, also where it shares its servers with others. The zero value works.
type FleetOptions struct {
	// KnownListings has what is remembered of servers: the last listing by row hash. Last has how each server was
	// last, by row hash: its last fault is told until another comes.
	KnownListings map[string]drawbridge.Listing
	LastStatuses  map[string]drawbridge.ServerStatus
	// OnListed is told of every listing, OnNotice of what a server says outside any call but for changes of its lists.
	// Both may be called for several servers at once; for one server OnListed is called in order. OnNotice must not
	// block. Either may be nil.
	OnListed       func(context.Context, drawbridge.Listing)
	OnNotification func(drawbridge.ServerNotification)
	// AdmitCall refuses what may not be called, by what OnListed was told last. Where it is set, a call waits until
	// what its server lists on a new connection was told. It may be nil.
	AdmitCall func(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) error
	// Environ is the environment that stdio servers get theirs from, as "name=value"; nil means the process's.
	Environ []string
}

// Options are what a Fleet can do without. The zero value works.
type Options struct {
	FleetOptions
	// Logger is told what went wrong and nobody else hears of; nil is silence.
	Logger *slog.Logger
	// Version is what Drawbridge calls itself by towards servers.
	Version string
	// MountStore may be nil.
	MountStore MountStore
	// Principal is whose mounts the fleet keeps and lists. Callers of others get connections of their own.
	Principal string
	// Roots are the directories that shared connections answer roots/list with.
	Roots []Root
	// InheritEnv gives stdio servers all of our environment where their row does not say.
	InheritEnv bool
	// Keeper has what rows refer to as ${keychain:NAME}; nil has nothing.
	Keeper secrets.SecretGetter
	// Elicitation says which servers may put questions before people, and how many.
	Elicitation ElicitationRules
	// OnDemand mounts a server when it is first called, and none by itself.
	OnDemand bool
	// Vault keeps what signing in comes to; nil is memory that ends with the fleet.
	Vault Vault
	// HTTPClient carries the requests to servers over HTTP; nil means one of the fleet's own. It must have no Timeout.
	HTTPClient *http.Client

	// Zero durations are their defaults; below zero has no meaning but for IdleStop: never.

	// ProbeTimeout is how long a server has to say whether it is of the modern generation: 3 s.
	ProbeTimeout time.Duration
	// ConnectTimeout bounds a mount up to the handshake, and again the listing: 60 s.
	ConnectTimeout time.Duration
	// CallTimeout is how long a call may go without an answer or progress: 60 s. Ten times as long ends any call.
	CallTimeout time.Duration
	// IdleStop is how long a stdio server may go uncalled before it is stopped: 15 min.
	IdleStop time.Duration
	// RefreshEvery is the least time between two refreshes that a server's own list_changed brings about: 5 s.
	RefreshEvery time.Duration
	// ParkTime is how long a call of a stateless caller waits for the answers to what its server asked: 10 min.
	ParkTime time.Duration
	// CloseGrace is how long each step of the ending of a stdio server waits: 1 s.
	CloseGrace time.Duration
}

// A Root is a directory that servers are told of: a file URI, and a name for people, which may be empty.
type Root = interop.Root

// ElicitationRules says which servers may put questions before people, and how many.
type ElicitationRules = interop.ElicitationRules

// The defaults of Options.
const (
	DefaultProbeTimeout   = 3 * time.Second
	DefaultConnectTimeout = 60 * time.Second
	DefaultCallTimeout    = 60 * time.Second
	DefaultIdleStop       = 15 * time.Minute
	DefaultRefreshEvery   = 5 * time.Second
	DefaultParkTime       = 10 * time.Minute
	DefaultCloseGrace     = process.DefaultGrace
)

func (o Options) withDefaults() (Options, error) {
	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
		never bool
	}{
		{"ProbeTimeout", &o.ProbeTimeout, DefaultProbeTimeout, false},
		{"ConnectTimeout", &o.ConnectTimeout, DefaultConnectTimeout, false},
		{"CallTimeout", &o.CallTimeout, DefaultCallTimeout, false},
		{"IdleStop", &o.IdleStop, DefaultIdleStop, true},
		{"RefreshEvery", &o.RefreshEvery, DefaultRefreshEvery, false},
		{"ParkTime", &o.ParkTime, DefaultParkTime, false},
		{"CloseGrace", &o.CloseGrace, DefaultCloseGrace, false},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
		if *d.value < 0 && !d.never {
			return o, fmt.Errorf("%s is below zero: %v", d.name, *d.value)
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	return o, nil
}

// A Fleet is mounted servers in configuration order, each by its name. Its methods may be called from several
// goroutines.
type Fleet struct {
	pool    *Pool
	options FleetOptions
	// ownsPool says that no other fleet has the pool: it runs with this one.
	ownsPool bool
	// started is closed when Run has begun.
	started chan struct{}

	mu     sync.Mutex // guards what is below
	active bool       // Run runs, and is not told to end
	order  []drawbridge.ServerID
	byName map[drawbridge.ServerID]*managedServer
}

// NewFleet makes a fleet of rows in configuration order, with a pool of its own. Nothing is started before Run. The
// error is for an option that means nothing, and for rows that no configuration should give: two of one name, one that
// may not be mounted.
func NewFleet(rows []config.Server, o Options) (*Fleet, error) {
	p, err := NewPool(o)
	if err != nil {
		return nil, err
	}
	f, err := p.NewFleet(rows, o.FleetOptions)
	if err != nil {
		return nil, err
	}
	f.ownsPool = true
	return f, nil
}

// NewFleet makes a fleet whose servers are shared with the pool's other fleets. Its Run is to end before the pool's
// does. The error is as for New.
func (p *Pool) NewFleet(rows []config.Server, part FleetOptions) (*Fleet, error) {
	if part.Environ == nil {
		part.Environ = os.Environ()
	}
	f := &Fleet{pool: p, options: part, started: make(chan struct{}), byName: map[drawbridge.ServerID]*managedServer{}}
	for _, row := range rows {
		if err := f.Add(row); err != nil {
			f.detachAll()
			return nil, err
		}
	}
	return f, nil
}

// SetRemembered has what is remembered of servers take the place of Known and Last of the fleet's Part, for the
// servers that it is given from now on.
func (f *Fleet) SetRemembered(known map[string]drawbridge.Listing, last map[string]drawbridge.ServerStatus) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	f.options.KnownListings, f.options.LastStatuses = known, last
}

// Add takes one more server into the fleet; while Run runs, it is mounted. The error is for a name that the fleet has,
// and for a row that may not be mounted.
func (f *Fleet) Add(row config.Server) error {
	if err := row.ID.Validate(); err != nil {
		return err
	}
	if row.Phase != drawbridge.Idle && row.Phase != "" {
		return fmt.Errorf("add %s: the row is %s: %s", row.ID, row.Phase, row.Reason)
	}
	f.mu.Lock()
	if f.byName[row.ID] != nil {
		f.mu.Unlock()
		return fmt.Errorf("add %s: the name is taken", row.ID)
	}
	e := f.pool.attachFleet(f, row)
	f.byName[row.ID] = e
	f.order = append(f.order, row.ID)
	active := f.active
	f.mu.Unlock()
	if active {
		f.mountOrNotify(e)
	}
	return nil
}

// mountOrNotify has a server mounted, and tells the fleet of it where it is already.
func (f *Fleet) mountOrNotify(e *managedServer) {
	if !f.pool.o.OnDemand {
		e.mount()
	}
	if !f.ownsPool {
		f.pool.startWorker(func() { e.notifyLateFleet(f) })
	}
}

// Remove takes a server out of the fleet at once: later calls do not find it. Calls in flight go on to their end, and
// then everything of the server ends, unless another fleet has it too; gone is closed after that. The error is for an
// unknown name.
func (f *Fleet) Remove(id drawbridge.ServerID) (gone <-chan struct{}, err error) {
	f.mu.Lock()
	e := f.byName[id]
	delete(f.byName, id)
	f.order = slices.DeleteFunc(f.order, func(other drawbridge.ServerID) bool { return other == id })
	f.mu.Unlock()
	if e == nil {
		return nil, unknownServerFault(id)
	}
	return f.detachServer(e), nil
}

// detachServer gives the fleet's part in a server up. Who has the last one ends it, after the calls in flight.
func (f *Fleet) detachServer(e *managedServer) (gone <-chan struct{}) {
	done := make(chan struct{})
	if !f.pool.detachFleet(f, e) {
		e.removeWatches(f)
		close(done)
		return done
	}
	ended := f.pool.startWorker(func() {
		defer close(done)
		e.waitForCalls()
		e.shutDown()
		e.work.Wait()
		f.pool.dropServer(e)
	})
	if !ended { // nothing runs
		e.shutDown()
		f.pool.dropServer(e)
		close(done)
	}
	return done
}

// Run mounts every server beside the others and keeps them mounted until ctx ends. It returns when every connection is
// closed and every child process is gone, but for those of servers that another fleet has too; the error is for a fleet
// that was run before.
func (f *Fleet) Run(ctx context.Context) error {
	if err := f.startPool(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	f.mu.Lock()
	f.active = false
	f.mu.Unlock()
	if f.ownsPool {
		f.pool.shutDown()
		return nil
	}
	f.detachAll()
	return nil
}

// startPool begins the pool's life with the fleet's own, or waits for it.
func (f *Fleet) startPool(ctx context.Context) error {
	if f.ownsPool {
		if err := f.pool.startRun(); err != nil {
			return err
		}
		return f.activate()
	}
	select {
	case <-f.pool.begun:
		return f.activate()
	case <-ctx.Done():
		return nil
	}
}

func (f *Fleet) activate() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if isClosed(f.started) {
		return errRunning
	}
	f.active = true
	close(f.started)
	for _, id := range f.order {
		f.mountOrNotify(f.byName[id])
	}
	return nil
}

// detachAll leaves all servers to those who have them too, and ends the others at once.
func (f *Fleet) detachAll() {
	var ends []<-chan struct{}
	for _, e := range f.servers() {
		gone := f.detachServer(e)
		if len(e.fleets.snapshot()) == 0 {
			e.shutDown()
		}
		ends = append(ends, gone)
	}
	for _, end := range ends {
		<-end
	}
}

// Running is closed when Run has begun: what is asked of the fleet before that is refused.
func (f *Fleet) Running() <-chan struct{} { return f.started }

func (f *Fleet) serverByID(id drawbridge.ServerID) (*managedServer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.byName[id]
	if e == nil {
		return nil, unknownServerFault(id)
	}
	return e, nil
}

// servers gives the fleet's endpoints in order.
func (f *Fleet) servers() []*managedServer {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*managedServer, 0, len(f.order))
	for _, id := range f.order {
		all = append(all, f.byName[id])
	}
	return all
}
