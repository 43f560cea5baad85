// Package upstream mounts MCP servers, detects the protocol era of each, lists what they offer, and makes calls to
// them. It has side effects: it starts processes and opens connections.
//
// A broken server does not affect the others: each is mounted on its own, with its own time limits. Nothing outlives
// [Fleet.Run], which owns every goroutine and child process and returns when all have ended. Package process handles
// the case that Drawbridge is killed. Of a call's bytes only the members of _meta that belong to one hop change, and of
// a result's the server's name for itself.
//
// What a server holds for one principal is never shown to another. Connections are shared only between callers of one
// principal, unless the server's row says otherwise. Server requests during a call (sampling, elicitation, roots) reach
// only the caller of that call.
//
// A call ends when its server is silent for the time limit, and at the latest after ten times that; the time stands
// still while the caller is asked. A slow caller does not block the connection for others, and notifications reach a
// caller before the answer does. A sent call is repeated only if its fault allows that, see drawbridge.Fault. No error
// contains a resolved secret value.
//
// The package does not decide which servers may be mounted, how tools are named, or who may call them.
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

// RunReaperProcess must be called first in main, and in TestMain of tests that mount servers. Our executable is run
// again to end the processes that a server leaves behind (see package process). In that process it never returns; in
// all others it does nothing. If a program does not call it, its servers are killed when it dies, but their children
// may stay.
func RunReaperProcess() { process.RunIfReaper() }

// MountedVariable is the environment variable that tells a server that a fleet started it.
const MountedVariable = process.MountedVariable

// A MountStore keeps the outcome of mounts for the next process. Its errors are logged and have no other effect.
type MountStore interface {
	// RecordAttempt records that a server is about to be mounted, before anything of it is started.
	RecordAttempt(ctx context.Context, row string, id drawbridge.ServerID) error
	// SaveListing records what the server offers.
	SaveListing(ctx context.Context, listing drawbridge.Listing) error
	// SaveStatus records the server's status. It is called at each change of state.
	SaveStatus(ctx context.Context, row string, status drawbridge.ServerStatus) error
}

// FleetOptions configure one fleet, even if it shares its servers with others. The zero value works.
type FleetOptions struct {
	// KnownListings holds the last listing of servers by row hash. LastStatuses holds their last status by row hash;
	// its fault is reported until another occurs.
	KnownListings map[string]drawbridge.Listing
	LastStatuses  map[string]drawbridge.ServerStatus
	// OnListed is called with every listing, OnNotification with the server's notifications outside calls except list
	// changes. Both may be called for several servers at once; for one server OnListed is called in order.
	// OnNotification must not block. Either may be nil.
	OnListed       func(context.Context, drawbridge.Listing)
	OnNotification func(drawbridge.ServerNotification)
	// AdmitCall refuses calls that the last published listing does not allow. If it is set, a call waits until the
	// listing of a new connection was published. It may be nil.
	AdmitCall func(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) error
	// CallObservers are told of the end of each call, unless the caller left before.
	CallObservers []CallObserver
	// Environ is the environment from which stdio servers get theirs, as "name=value"; nil means the process's.
	Environ []string
}

// A CallObserver is told how each call of a server ended. It must not block.
type CallObserver interface {
	CallEnded(id drawbridge.ServerID, call drawbridge.Call, result drawbridge.Result, err error)
}

// Options configure a Fleet. The zero value works.
type Options struct {
	FleetOptions
	// Logger receives errors that are reported nowhere else; nil discards them.
	Logger *slog.Logger
	// Version is the version that Drawbridge reports to servers.
	Version string
	// MountStore may be nil.
	MountStore MountStore
	// Principal owns the mounts that the fleet keeps and lists. Callers of other principals get their own connections.
	Principal string
	// Roots are the directories with which shared connections answer roots/list.
	Roots []Root
	// InheritEnv passes our whole environment to stdio servers, unless their row decides otherwise.
	InheritEnv bool
	// Keeper resolves ${keychain:NAME} in rows; nil resolves none.
	Keeper secrets.SecretGetter
	// Elicitation decides which servers may ask people questions, and how many.
	Elicitation ElicitationRules
	// OnDemand mounts a server at its first call instead of at the start.
	OnDemand bool
	// Vault keeps sign-in credentials; nil keeps them in memory until the fleet ends.
	Vault Vault
	// ExpiryTime returns the time by which a sign-in that began is judged to have expired; nil is the time itself.
	ExpiryTime func(now time.Time) time.Time
	// HTTPClient sends the requests to HTTP servers; nil means one of the fleet's own. It must have no Timeout.
	HTTPClient *http.Client

	// Zero durations mean the defaults given here. Negative ones are refused, except IdleStop: never.

	// ProbeTimeout is how long a server has to answer whether it is stateless: 3 s.
	ProbeTimeout time.Duration
	// ConnectTimeout bounds a mount up to the handshake, and again the listing: 60 s.
	ConnectTimeout time.Duration
	// CallTimeout is how long a call may go without an answer or progress: 60 s. Ten times as long ends any call.
	CallTimeout time.Duration
	// IdleStop is how long a stdio server may go uncalled before it is stopped: 15 min.
	IdleStop time.Duration
	// RefreshEvery is the least time between two refreshes caused by the server's list_changed: 5 s.
	RefreshEvery time.Duration
	// ParkTime is how long a stateless caller's call waits for answers to server requests: 10 min.
	ParkTime time.Duration
	// CloseGrace is how long each step of stopping a stdio server waits: 1 s.
	CloseGrace time.Duration
}

// A Root is a directory that servers learn of: a file URI, and a name for people, which may be empty.
type Root = interop.Root

// ElicitationRules decide which servers may ask people questions, and how many.
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
			return o, fmt.Errorf("%s must not be negative: %v", d.name, *d.value)
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

// A Fleet is a set of mounted servers in configuration order, each with a unique name. Its methods may be called from
// several goroutines.
type Fleet struct {
	pool    *Pool
	options FleetOptions
	// ownsPool is set if no other fleet uses the pool: the pool then runs with this fleet.
	ownsPool bool
	// started is closed when Run has begun.
	started chan struct{}

	mu     sync.Mutex // guards what is below
	active bool       // Run runs and was not told to end
	order  []drawbridge.ServerID
	byName map[drawbridge.ServerID]*managedServer
	held   map[drawbridge.ServerID]config.Server // the rows of servers that Hold keeps from starting
}

// NewFleet returns a fleet of rows in configuration order, with a pool of its own. It starts nothing before Run. It
// returns an error for an invalid option, for two rows of one name, and for a row that may not be mounted.
func NewFleet(ctx context.Context, rows []config.Server, o Options) (*Fleet, error) {
	p, err := NewPool(ctx, o)
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

// NewFleet returns a fleet that shares its servers with the pool's other fleets. Its Run must end before the pool's
// does. The error is as for the function NewFleet.
func (p *Pool) NewFleet(rows []config.Server, part FleetOptions) (*Fleet, error) {
	if part.Environ == nil {
		part.Environ = os.Environ()
	}
	f := &Fleet{pool: p, options: part, started: make(chan struct{}), byName: map[drawbridge.ServerID]*managedServer{},
		held: map[drawbridge.ServerID]config.Server{}}
	for _, row := range rows {
		if err := f.Add(row); err != nil {
			f.detachAll()
			return nil, err
		}
	}
	return f, nil
}

// SetRemembered replaces KnownListings and LastStatuses for servers that are added from now on.
func (f *Fleet) SetRemembered(known map[string]drawbridge.Listing, last map[string]drawbridge.ServerStatus) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	f.options.KnownListings, f.options.LastStatuses = known, last
}

// Add adds a server to the fleet; while Run runs, it is mounted. It returns an error for a name in use and for a row
// that may not be mounted.
func (f *Fleet) Add(row config.Server) error {
	f.mu.Lock()
	if err := f.checkRow(row); err != nil {
		f.mu.Unlock()
		return err
	}
	f.addAndUnlock(row)
	return nil
}

// checkRow returns an error for a row that the fleet cannot add. It needs mu.
func (f *Fleet) checkRow(row config.Server) error {
	if err := row.ID.Validate(); err != nil {
		return err
	}
	if row.Phase != drawbridge.Idle && row.Phase != "" {
		return fmt.Errorf("add %s: the server is %s: %s", row.ID, row.Phase, row.Reason)
	}
	if _, held := f.held[row.ID]; held || f.byName[row.ID] != nil {
		return fmt.Errorf("add %s: the name is in use", row.ID)
	}
	return nil
}

// addAndUnlock adds the server of a row that checkRow accepted. It needs mu, and unlocks it before the server is
// mounted.
func (f *Fleet) addAndUnlock(row config.Server) {
	e := f.pool.attachFleet(f, row)
	f.byName[row.ID] = e
	f.order = append(f.order, row.ID)
	active := f.active
	f.mu.Unlock()
	if active {
		f.mountOrNotify(e)
	}
}

// mountOrNotify mounts a server, and publishes its listing to the fleet if it is mounted already.
func (f *Fleet) mountOrNotify(e *managedServer) {
	if !f.pool.o.OnDemand {
		e.mount()
	}
	if !f.ownsPool {
		f.pool.startWorker(func() { e.notifyLateFleet(f) })
	}
}

// Remove takes a server out of the fleet at once: later calls do not find it. Calls in flight finish; then the server
// ends, unless another fleet uses it, and gone is closed. The error is for an unknown name.
func (f *Fleet) Remove(id drawbridge.ServerID) (gone <-chan struct{}, err error) {
	f.mu.Lock()
	e := f.byName[id]
	_, held := f.held[id]
	delete(f.held, id)
	delete(f.byName, id)
	f.order = slices.DeleteFunc(f.order, func(other drawbridge.ServerID) bool { return other == id })
	f.mu.Unlock()
	switch {
	case held: // it never started
		done := make(chan struct{})
		close(done)
		return done, nil
	case e == nil:
		return nil, unknownServerFault(id)
	}
	return f.detachServer(e), nil
}

// detachServer ends the fleet's use of a server. The last fleet to leave ends the server after the calls in flight.
func (f *Fleet) detachServer(e *managedServer) (gone <-chan struct{}) {
	done := make(chan struct{})
	if !f.pool.detachFleet(f, e) {
		e.watch.removeFleet(f)
		close(done)
		return done
	}
	ended := f.pool.startWorker(func() {
		defer close(done)
		e.waitForCalls()
		e.shutDown()
		e.workers.wait()
		f.pool.dropServer(e)
	})
	if !ended { // nothing runs
		e.shutDown()
		f.pool.dropServer(e)
		close(done)
	}
	return done
}

// Run mounts all servers concurrently and keeps them mounted until ctx ends. It returns when every connection is closed
// and every child process is gone, except those of servers that another fleet uses. It returns an error if the fleet
// was run before.
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

// startPool starts the pool if the fleet owns it, or waits for its start.
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

// detachAll leaves servers that other fleets use to them, and ends the others at once.
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

// Running is closed when Run has begun. Calls that come earlier wait for that.
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

// servers returns the fleet's servers in order.
func (f *Fleet) servers() []*managedServer {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*managedServer, 0, len(f.order))
	for _, id := range f.order {
		all = append(all, f.byName[id])
	}
	return all
}
