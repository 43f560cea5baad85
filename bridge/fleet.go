// Package bridge is the side-effecting half: it mounts MCP servers, finds out what each speaks, lists them, and carries
// calls to them and everything they say back, as bytes.
//
// It promises that one bad server costs the others nothing: every server is mounted beside the others, with time limits
// of its own. It promises that nothing it started outlives it: [Fleet.Run] owns every goroutine and every child process,
// and returns when all of them are gone; see package process for what happens when we are killed. Of a call's bytes only
// members of _meta change that belong to one hop, and of a result's the server's name for itself.
//
// What a server holds for one principal is never shown to another: connections are shared only between callers of one
// principal, unless the server's row says otherwise, and what is asked in the course of a call (sampling, elicitation,
// roots) goes to the caller of that call and nobody else.
//
// Which servers may be mounted, how cards are named and who may call them is decided elsewhere.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/process"
	"github.com/drawbridge-mcp/drawbridge/bridge/talk"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// Reap must be called first thing in main, and in TestMain of tests that mount servers: our own executable is run again
// to end what a server leaves behind (see package process). In that process it never returns; in all others it does
// nothing. A program that does not call it has its servers killed when it dies, but not always what they started.
func Reap() { process.Reap() }

// Mounted is the environment variable by which a server knows that a fleet started it.
const Mounted = process.Mounted

// A Memory remembers how mounts went, for the next process. Its errors are logged and cost nothing else.
type Memory interface {
	// Attempt records that a server is about to be mounted, before anything of it is started.
	Attempt(ctx context.Context, row string, id drawbridge.ServerID) error
	// SaveListing records what the server offers.
	SaveListing(ctx context.Context, listing drawbridge.Listing) error
	// SaveStatus records how the server is. It is called at each change of phase.
	SaveStatus(ctx context.Context, row string, status drawbridge.Status) error
}

// Options are what a Fleet can do without. The zero value works.
type Options struct {
	// Logger is told what went wrong and nobody else hears of; nil is silence.
	Logger *slog.Logger
	// Version is what Drawbridge calls itself by towards servers.
	Version string
	// Memory may be nil. Known has what it remembered: the last listing by row hash.
	Memory Memory
	Known  map[string]drawbridge.Listing
	// Last has how each server was last, by row hash: its last fault is told until another comes.
	Last map[string]drawbridge.Status
	// OnListed is told of every listing, OnNotice of what a server says outside any call but for changes of its lists.
	// Both may be called for several servers at once; for one server OnListed is called in order. OnNotice must not
	// block. Either may be nil.
	OnListed func(context.Context, drawbridge.Listing)
	OnNotice func(drawbridge.Notice)
	// Principal is whose mounts the fleet keeps and lists. Callers of others get connections of their own.
	Principal string
	// Roots are file URIs that shared connections answer roots/list with.
	Roots []string
	// InheritEnv gives stdio servers all of our environment where their row does not say.
	InheritEnv bool
	// OnDemand mounts a server when it is first called, and none by itself.
	OnDemand bool
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

// A Fleet is all mounted servers. Its methods may be called from several goroutines.
type Fleet struct {
	o       Options
	dial    dialer
	work    sync.WaitGroup // every goroutine; only start adds to it
	parking *talk.Parking
	// begun is closed when Run begins.
	begun chan struct{}

	mu        sync.Mutex
	running   bool // Run runs, and is not told to end
	over      bool
	order     []drawbridge.ServerID
	endpoints map[drawbridge.ServerID]*endpoint
	levels    map[string]string    // the level of log lines, by the caller's session
	ended     map[string]time.Time // the sessions that ended a moment ago
}

// New makes a fleet of rows in configuration order. Nothing is started before Run. The error is for an option that means
// nothing, and for rows that no configuration should give: two of one name, one that may not be mounted.
func New(rows []config.Server, o Options) (*Fleet, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	f := &Fleet{o: o, dial: newDialer(o), endpoints: map[drawbridge.ServerID]*endpoint{}, levels: map[string]string{}, ended: map[string]time.Time{}, begun: make(chan struct{})}
	f.parking = talk.NewParking(o.ParkTime, talk.MaxParked)
	for _, row := range rows {
		if err := f.Add(row); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Add takes one more server into the fleet; while Run runs, it is mounted. The error is for a name that the fleet has,
// and for a row that may not be mounted.
func (f *Fleet) Add(row config.Server) error {
	if err := row.ID.Valid(); err != nil {
		return err
	}
	if row.Phase != drawbridge.Idle && row.Phase != "" {
		return fmt.Errorf("add %s: the row is %s: %s", row.ID, row.Phase, row.Reason)
	}
	e := newEndpoint(f, row)
	f.mu.Lock()
	if f.endpoints[row.ID] != nil {
		f.mu.Unlock()
		return fmt.Errorf("add %s: the name is taken", row.ID)
	}
	f.endpoints[row.ID] = e
	f.order = append(f.order, row.ID)
	mount := f.running && !f.o.OnDemand
	f.mu.Unlock()
	if mount {
		e.mount()
	}
	return nil
}

// Remove ends everything of a server and forgets it. The error is for an unknown name, or ctx's.
func (f *Fleet) Remove(ctx context.Context, id drawbridge.ServerID) error {
	f.mu.Lock()
	e := f.endpoints[id]
	delete(f.endpoints, id)
	f.order = slices.DeleteFunc(f.order, func(other drawbridge.ServerID) bool { return other == id })
	f.mu.Unlock()
	if e == nil {
		return unknown(id)
	}
	e.end()
	return e.wait(ctx)
}

// errRunning is for a fleet that is run twice.
var errRunning = errors.New("the fleet runs already, or has run")

// Run mounts every server beside the others and keeps them mounted until ctx ends. It returns when every connection is
// closed and every child process is gone; the error is for a fleet that was run before.
func (f *Fleet) Run(ctx context.Context) error {
	f.mu.Lock()
	if f.running || f.over {
		f.mu.Unlock()
		return errRunning
	}
	f.running = true
	f.mu.Unlock()
	close(f.begun)
	if !f.o.OnDemand {
		for _, e := range f.all() {
			e.mount()
		}
	}
	<-ctx.Done()
	f.mu.Lock()
	f.running, f.over = false, true
	f.mu.Unlock()
	f.parking.Close()
	for _, e := range f.all() {
		e.end()
	}
	f.work.Wait()
	return nil
}

// Running is closed when Run has begun: what is asked of the fleet before that is refused.
func (f *Fleet) Running() <-chan struct{} { return f.begun }

// start runs work in a goroutine that Run waits for. It says false, and runs nothing, unless Run runs.
func (f *Fleet) start(work func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running {
		f.work.Go(work)
	}
	return f.running
}

func (f *Fleet) runs() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running
}

func (f *Fleet) endpoint(id drawbridge.ServerID) (*endpoint, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.endpoints[id]
	if e == nil {
		return nil, unknown(id)
	}
	return e, nil
}

// all gives the endpoints in order.
func (f *Fleet) all() []*endpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*endpoint, 0, len(f.order))
	for _, id := range f.order {
		all = append(all, f.endpoints[id])
	}
	return all
}
