// Package upstream mounts MCP servers and makes calls to them. A row is the configuration of one server. To mount a
// server means to connect to it, detect its protocol era, do the handshake, and read its lists. The package starts
// processes and opens connections.
//
// A broken server does not affect the others: each server is mounted independently, with its own time limits.
// [Fleet.Run] owns all goroutines and child processes, and returns when all of them have ended. If Drawbridge is
// killed, package process ends the child processes. In the params of a call, only the members of _meta that concern a
// single connection are changed. From a result, the server info and Drawbridge's own members in _meta are removed.
//
// Data that a server stores for one principal is never shown to another principal. Only callers of the same principal
// share a connection, unless the server's row permits all callers to share it. Server requests during a call (sampling,
// elicitation, roots) reach only the caller of that call.
//
// A call fails if the server sends no response and no progress within the time limit. It also fails after ten times
// that limit. While a server request waits for the caller's answer, only the second limit counts. A slow caller does
// not block the connection for other callers. A caller receives all notifications of a call before its result. A sent
// call is repeated only if its fault permits that, see drawbridge.Fault. No error contains a resolved secret value.
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
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// RunReaperProcess must be called first in main, and in TestMain of tests that mount servers. Where Drawbridge cannot
// use its supervisor, it runs its own executable again as a reaper, which ends the processes that a server leaves behind
// (see package process). In a reaper process RunReaperProcess never returns; in all other processes it returns at once.
// If a program does not call it, no reaper is used. If that program is killed, such a system may keep the servers' child
// processes running.
func RunReaperProcess() { process.RunIfReaper() }

// MountedVariable is the environment variable that a fleet sets for each server that it starts. A Drawbridge that finds
// it in its environment was started by another Drawbridge.
const MountedVariable = process.MountedVariable

// A MountStore stores the results of mounts, so that a later process can read them. The parameter row is the hash of
// the server's row, see config.Server.Hash. An error is logged and has no other effect.
type MountStore interface {
	// RecordAttempt stores that a server is about to be mounted. It is called before the server is started or
	// connected.
	RecordAttempt(ctx context.Context, row string, id drawbridge.ServerID) error
	// SaveListing stores the listing of a server.
	SaveListing(ctx context.Context, listing drawbridge.Listing) error
	// SaveStatus stores the status of a server. It is called at each change of state.
	SaveStatus(ctx context.Context, row string, status drawbridge.ServerStatus) error
}

// FleetOptions configure one fleet. Fleets that share servers may have different FleetOptions. The zero value works.
type FleetOptions struct {
	// KnownListings contains the last listing of each server that an earlier process stored. LastStatuses contains the
	// last stored status of each server. The keys are config.Server.Hash. The fault of a last status is reported until
	// another fault occurs.
	KnownListings map[string]drawbridge.Listing
	LastStatuses  map[string]drawbridge.ServerStatus
	// OnListed is called with each new listing of a server. OnNotification is called with the notifications that a
	// server sends outside calls, except list changes. Both may be called for several servers concurrently; for one
	// server, OnListed is called in order. OnNotification must not block. Both may be nil.
	OnListed       func(context.Context, drawbridge.Listing)
	OnNotification func(drawbridge.ServerNotification)
	// AdmitCall is called before a call is sent; if it returns an error, the call fails with that error. It must return
	// an error for a call that the last published listing does not permit. Before AdmitCall is called on a new
	// connection, the call waits until the listing for that connection was published. AdmitCall may be nil.
	AdmitCall func(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) error
	// CallObservers are called at the end of each call, unless the caller cancelled it.
	CallObservers []CallObserver
	// Environ is the environment from which the environment of stdio servers is made, as "name=value" pairs. Nil means
	// the environment of this process.
	Environ []string
}

// A CallObserver receives the result or the error of each call. CallEnded must not block.
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
	// MountStore stores the results of mounts; nil stores none.
	MountStore MountStore
	// Principal is the owner of the primary session of each server. The server is listed on that session. Callers of
	// other principals get their own connections.
	Principal string
	// Roots are the directories with which Drawbridge itself answers a server's roots/list on shared connections.
	Roots []Root
	// InheritEnv passes Drawbridge's whole environment to stdio servers, except known secrets. A row can override it
	// with EnvIsolation.
	InheritEnv bool
	// Keeper returns the secrets for references of the form ${keychain:NAME} in rows. If it is nil, such references
	// cannot be resolved.
	Keeper secrets.SecretGetter
	// Elicitation determines which servers may send elicitation requests, and how many.
	Elicitation ElicitationRules
	// OnDemand mounts a server at its first call instead of at the start.
	OnDemand bool
	// Vault stores sign-in credentials; nil stores them in memory until the pool ends.
	Vault Vault
	// ExpiryTime returns the time with which the expiry of a sign-in is compared: now, or a later time if the clock was
	// set back. Nil means now.
	ExpiryTime func(now time.Time) time.Time
	// HTTPClient sends the requests to HTTP servers; nil means a new client for each connection. Its Timeout must be 0,
	// since a Timeout would also end event streams.
	HTTPClient *http.Client

	// Answers bounds the memory of the answers in flight of all servers; nil means no bound.
	Answers *mcp.AnswerBudget

	// For the durations below, zero means the default that the comment states. A negative duration is an error, except
	// for IdleStop, where it means that servers are never stopped.

	// ProbeTimeout is how long a server has to answer server/discover: 3 s. After that time, initialize is sent to the
	// server, as to a stateful server.
	ProbeTimeout time.Duration
	// ConnectTimeout bounds connecting and the handshake, and separately the reading of the lists: 60 s.
	ConnectTimeout time.Duration
	// CallTimeout is how long a call may continue without a response or progress: 60 s. Every call ends after ten times
	// that duration.
	CallTimeout time.Duration
	// IdleStop is how long a stdio server may be without calls before it is stopped: 15 min.
	IdleStop time.Duration
	// RefreshEvery is the minimum time between two listings of a server that its list_changed notifications cause: 5 s.
	RefreshEvery time.Duration
	// ParkTime is how long a call of a stateless caller waits for the caller's answers to server requests: 10 min.
	ParkTime time.Duration
	// CloseGrace is how long Drawbridge waits after each step of stopping a stdio server: 1 s.
	CloseGrace time.Duration
}

// A Root is a directory that Drawbridge returns to servers for roots/list: a file URI, and a display name, which may be
// empty.
type Root = interop.Root

// ElicitationRules determine which servers may send elicitation requests, and how many.
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
	// ownsPool is set if no other fleet uses the pool. The pool then starts and ends with this fleet.
	ownsPool bool
	// started is closed when the fleet's Run has begun.
	started chan struct{}

	mu     sync.Mutex // guards the fields below
	active bool       // Run is running and its ctx is not done
	order  []drawbridge.ServerID
	byName map[drawbridge.ServerID]*managedServer
	held   map[drawbridge.ServerID]config.Server // the rows that Hold added, before Release
}

// NewFleet returns a fleet for rows in configuration order, with a pool of its own. It starts nothing before Run. It
// returns an error for an invalid option, for two rows with the same name, and for a row whose Phase is not Idle.
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

// NewFleet returns a fleet that shares its servers with the pool's other fleets. part contains the options of this
// fleet. The fleet's Run must end before the pool's Run ends. The errors are the same as for the function NewFleet.
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

// SetRemembered replaces the options KnownListings and LastStatuses of the fleet. The new values apply to servers that
// are added later.
func (f *Fleet) SetRemembered(known map[string]drawbridge.Listing, last map[string]drawbridge.ServerStatus) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	f.options.KnownListings, f.options.LastStatuses = known, last
}

// Add adds a server to the fleet. If Run is running and OnDemand is not set, Add starts to mount the server. Add
// returns an error for a name in use and for a row whose Phase is not Idle.
func (f *Fleet) Add(row config.Server) error {
	f.mu.Lock()
	if err := f.checkRow(row); err != nil {
		f.mu.Unlock()
		return err
	}
	f.addAndUnlock(row)
	return nil
}

// checkRow returns an error for a row that the fleet cannot add. mu must be held.
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

// addAndUnlock adds the server of a row that checkRow accepted. mu must be held; addAndUnlock unlocks it before the
// server is mounted.
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

// mountOrNotify starts to mount a server, unless OnDemand is set. If the pool has several fleets, another fleet may
// have mounted the server before. mountOrNotify then publishes the existing listing to this fleet.
func (f *Fleet) mountOrNotify(e *managedServer) {
	if !f.pool.o.OnDemand {
		e.mount()
	}
	if !f.ownsPool {
		f.pool.startWorker(func() { e.notifyLateFleet(f) })
	}
}

// Remove removes a server from the fleet at once: later calls do not find it. If no other fleet uses the server, it is
// shut down after the calls in flight. gone is closed when the removal is complete. Remove returns an error for an
// unknown name.
func (f *Fleet) Remove(id drawbridge.ServerID) (gone <-chan struct{}, err error) {
	f.mu.Lock()
	e := f.byName[id]
	_, held := f.held[id]
	delete(f.held, id)
	delete(f.byName, id)
	f.order = slices.DeleteFunc(f.order, func(other drawbridge.ServerID) bool { return other == id })
	f.mu.Unlock()
	switch {
	case held: // the server was never started
		done := make(chan struct{})
		close(done)
		return done, nil
	case e == nil:
		return nil, unknownServerFault(id)
	}
	return f.detachServer(e), nil
}

// detachServer ends the fleet's use of a server. If no other fleet uses the server, it is shut down after the calls in
// flight. gone is closed when that is complete.
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
	if !ended { // the pool is not running
		e.shutDown()
		f.pool.dropServer(e)
		close(done)
	}
	return done
}

// Run mounts all servers concurrently and keeps them mounted until ctx ends. It returns when every connection is closed
// and every child process has ended, except those of servers that another fleet uses. It returns an error if the fleet
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

// startPool starts the pool if the fleet owns it; otherwise it waits until the pool has started. Then it starts the
// fleet.
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

// detachAll detaches the fleet from all its servers. It shuts down the servers that no other fleet uses, without
// waiting for calls in flight, and returns when they have ended.
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

// Running returns a channel that is closed when Run has begun. Calls wait until then.
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

// servers returns the fleet's servers in configuration order.
func (f *Fleet) servers() []*managedServer {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*managedServer, 0, len(f.order))
	for _, id := range f.order {
		all = append(all, f.byName[id])
	}
	return all
}
