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
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/hop"
	"github.com/drawbridge-mcp/drawbridge/bridge/process"
	"github.com/drawbridge-mcp/drawbridge/bridge/talk"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/secrets"
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

// A Part is what a fleet has for itself, also where it shares its servers with others. The zero value works.
type Part struct {
	// Known has what is remembered of servers: the last listing by row hash. Last has how each server was last, by row hash:
	// its last fault is told until another comes.
	Known map[string]drawbridge.Listing
	Last  map[string]drawbridge.Status
	// OnListed is told of every listing, OnNotice of what a server says outside any call but for changes of its lists.
	// Both may be called for several servers at once; for one server OnListed is called in order. OnNotice must not
	// block. Either may be nil.
	OnListed func(context.Context, drawbridge.Listing)
	OnNotice func(drawbridge.Notice)
	// Admit refuses what may not be called, by what OnListed was told last. Where it is set, a call waits until what its server
	// lists on a new connection was told. It may be nil.
	Admit func(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) error
	// Environ is the environment that stdio servers get theirs from, as "name=value"; nil means the process's.
	Environ []string
}

// Options are what a Fleet can do without. The zero value works.
type Options struct {
	Part
	// Logger is told what went wrong and nobody else hears of; nil is silence.
	Logger *slog.Logger
	// Version is what Drawbridge calls itself by towards servers.
	Version string
	// Memory may be nil.
	Memory Memory
	// Principal is whose mounts the fleet keeps and lists. Callers of others get connections of their own.
	Principal string
	// Roots are the directories that shared connections answer roots/list with.
	Roots []Root
	// InheritEnv gives stdio servers all of our environment where their row does not say.
	InheritEnv bool
	// Keeper has what rows refer to as ${keychain:NAME}; nil has nothing.
	Keeper secrets.Keeper
	// Elicitation says which servers may put questions before people, and how many.
	Elicitation Elicitation
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
type Root = hop.Root

// Elicitation says which servers may put questions before people, and how many.
type Elicitation = talk.Rules

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

// A Fleet is mounted servers in configuration order, each by its name. Its methods may be called from several goroutines.
type Fleet struct {
	pool *Pool
	part Part
	// alone says that no other fleet has the pool: it runs with this one.
	alone bool
	// up is closed when Run has begun.
	up chan struct{}

	members sync.Mutex // guards what is below
	active  bool       // Run runs, and is not told to end
	names   []drawbridge.ServerID
	byName  map[drawbridge.ServerID]*endpoint
}

// New makes a fleet of rows in configuration order, with a pool of its own. Nothing is started before Run. The error is for
// an option that means nothing, and for rows that no configuration should give: two of one name, one that may not be mounted.
func New(rows []config.Server, o Options) (*Fleet, error) {
	p, err := NewPool(o)
	if err != nil {
		return nil, err
	}
	f, err := p.Fleet(rows, o.Part)
	if err != nil {
		return nil, err
	}
	f.alone = true
	return f, nil
}

// Fleet makes a fleet whose servers are shared with the pool's other fleets. Its Run is to end before the pool's does. The
// error is as for New.
func (p *Pool) Fleet(rows []config.Server, part Part) (*Fleet, error) {
	if part.Environ == nil {
		part.Environ = os.Environ()
	}
	f := &Fleet{pool: p, part: part, up: make(chan struct{}), byName: map[drawbridge.ServerID]*endpoint{}}
	for _, row := range rows {
		if err := f.Add(row); err != nil {
			f.quit()
			return nil, err
		}
	}
	return f, nil
}

// Recall has what is remembered of servers take the place of Known and Last of the fleet's Part, for the servers that it is given from
// now on.
func (f *Fleet) Recall(known map[string]drawbridge.Listing, last map[string]drawbridge.Status) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	f.part.Known, f.part.Last = known, last
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
	f.members.Lock()
	if f.byName[row.ID] != nil {
		f.members.Unlock()
		return fmt.Errorf("add %s: the name is taken", row.ID)
	}
	e := f.pool.join(f, row)
	f.byName[row.ID] = e
	f.names = append(f.names, row.ID)
	active := f.active
	f.members.Unlock()
	if active {
		f.attach(e)
	}
	return nil
}

// attach has a server mounted, and tells the fleet of it where it is already.
func (f *Fleet) attach(e *endpoint) {
	if !f.pool.o.OnDemand {
		e.mount()
	}
	if !f.alone {
		f.pool.start(func() { e.catchUp(f) })
	}
}

// Remove takes a server out of the fleet at once: later calls do not find it. Calls in flight go on to their end, and then
// everything of the server ends, unless another fleet has it too; gone is closed after that. The error is for an unknown
// name.
func (f *Fleet) Remove(id drawbridge.ServerID) (gone <-chan struct{}, err error) {
	f.members.Lock()
	e := f.byName[id]
	delete(f.byName, id)
	f.names = slices.DeleteFunc(f.names, func(other drawbridge.ServerID) bool { return other == id })
	f.members.Unlock()
	if e == nil {
		return nil, unknown(id)
	}
	return f.release(e), nil
}

// release gives the fleet's part in a server up. Who has the last one ends it, after the calls in flight.
func (f *Fleet) release(e *endpoint) (gone <-chan struct{}) {
	done := make(chan struct{})
	if !f.pool.leave(f, e) {
		e.unwatch(f)
		close(done)
		return done
	}
	ended := f.pool.start(func() {
		defer close(done)
		e.drain()
		e.end()
		e.work.Wait()
		f.pool.forget(e)
	})
	if !ended { // nothing runs
		e.end()
		f.pool.forget(e)
		close(done)
	}
	return done
}

// Run mounts every server beside the others and keeps them mounted until ctx ends. It returns when every connection is
// closed and every child process is gone, but for those of servers that another fleet has too; the error is for a fleet
// that was run before.
func (f *Fleet) Run(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	f.members.Lock()
	f.active = false
	f.members.Unlock()
	if f.alone {
		f.pool.finish()
		return nil
	}
	f.quit()
	return nil
}

// begin begins the pool's life with the fleet's own, or waits for it.
func (f *Fleet) begin(ctx context.Context) error {
	if f.alone {
		if err := f.pool.begin(); err != nil {
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
	f.members.Lock()
	defer f.members.Unlock()
	if isClosed(f.up) {
		return errRunning
	}
	f.active = true
	close(f.up)
	for _, id := range f.names {
		f.attach(f.byName[id])
	}
	return nil
}

// quit leaves all servers to those who have them too, and ends the others at once.
func (f *Fleet) quit() {
	var ends []<-chan struct{}
	for _, e := range f.mine() {
		gone := f.release(e)
		if len(e.sharing.All()) == 0 {
			e.end()
		}
		ends = append(ends, gone)
	}
	for _, end := range ends {
		<-end
	}
}

// Running is closed when Run has begun: what is asked of the fleet before that is refused.
func (f *Fleet) Running() <-chan struct{} { return f.up }

func (f *Fleet) endpoint(id drawbridge.ServerID) (*endpoint, error) {
	f.members.Lock()
	defer f.members.Unlock()
	e := f.byName[id]
	if e == nil {
		return nil, unknown(id)
	}
	return e, nil
}

// mine gives the fleet's endpoints in order.
func (f *Fleet) mine() []*endpoint {
	f.members.Lock()
	defer f.members.Unlock()
	all := make([]*endpoint, 0, len(f.names))
	for _, id := range f.names {
		all = append(all, f.byName[id])
	}
	return all
}
