package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
	"github.com/drawbridge-mcp/drawbridge/internal/oauth"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// A Pool contains servers that several fleets share. Two rows with the same content, after variables were expanded, are
// treated as one server. A server is shut down when it was removed from its last fleet. The methods may be called from
// several goroutines.
type Pool struct {
	o    Options
	dial dialFunc
	// ctx is the context of NewPool without its cancellation, since only shutDown ends the servers.
	ctx            context.Context
	work           sync.WaitGroup // all goroutines; only startWorker adds to it
	parkedCalls    *interop.ParkedCalls
	callerSessions callerSessionRegistry
	clients        clientTraitsCache
	starts         *startGate
	// begun is closed when Run begins.
	begun chan struct{}
	// secrets resolves references in rows.
	secrets secrets.Resolver
	// signIns manages the sign-in credentials of all servers.
	signIns *oauth.Manager

	mu            sync.Mutex
	running       bool // Run is running and its ctx has not ended
	finished      bool
	byFingerprint map[string]*managedServer // by fingerprint
	order         []*managedServer
}

// NewPool returns a pool without servers. It ignores the FleetOptions in o, and the cancellation of ctx. It returns an
// error for an invalid option.
func NewPool(ctx context.Context, o Options) (*Pool, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Pool{
		o: o, dial: newDialFunc(o), ctx: context.WithoutCancel(ctx), parkedCalls: interop.NewParkedCalls(o.ParkTime,
			interop.MaxParkedCalls),
		begun:   make(chan struct{}),
		starts:  newStartGate(),
		secrets: secrets.Resolver{Keychain: o.Keeper}, byFingerprint: map[string]*managedServer{},
		signIns: oauth.NewManager(oauth.ManagerOptions{Vault: o.Vault, Version: o.Version, Logger: o.Logger,
			ExpiryTime: o.ExpiryTime}),
	}, nil
}

// errRunning is returned by a second Run.
var errRunning = errors.New("it is running or was run before")

// Run permits the fleets to mount servers until ctx ends. It returns when every connection is closed and every child
// process has ended. It returns an error if the pool was run before.
func (p *Pool) Run(ctx context.Context) error {
	if err := p.startRun(); err != nil {
		return err
	}
	<-ctx.Done()
	p.shutDown()
	return nil
}

func (p *Pool) startRun() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running || p.finished {
		return errRunning
	}
	p.running = true
	close(p.begun)
	return nil
}

// shutDown ends all calls, servers and goroutines of the pool, and waits until they have ended.
func (p *Pool) shutDown() {
	p.mu.Lock()
	p.running, p.finished = false, true
	p.mu.Unlock()
	p.parkedCalls.Close()
	p.signIns.Close()
	for _, e := range p.servers() {
		e.shutDown()
	}
	p.work.Wait()
	p.o.Answers.Close()
}

// startWorker runs work in a goroutine that Run waits for. If Run is not running, it returns false and does not run
// work.
func (p *Pool) startWorker(work func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running {
		p.work.Go(work)
	}
	return p.running
}

func (p *Pool) isRunning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// servers returns the servers in the order in which they were added.
func (p *Pool) servers() []*managedServer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.order)
}

// attachFleet adds the fleet to the server of a row, and returns the server. The server is created if the pool does not
// contain it.
func (p *Pool) attachFleet(f *Fleet, row config.Server) *managedServer {
	name := p.fingerprint(row, f.options.Environ)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.byFingerprint[name]
	if e == nil {
		e = newManagedServer(p, row, name, f.options)
		p.byFingerprint[name] = e
		p.order = append(p.order, e)
	}
	e.fleets.add(f)
	return e
}

// detachFleet removes the fleet from a server. It reports whether the server now has no fleet. The caller must then
// shut down the server; attachFleet does not return that server any more.
func (p *Pool) detachFleet(f *Fleet, e *managedServer) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last = e.fleets.remove(f); last {
		delete(p.byFingerprint, e.fingerprint)
	}
	return last
}

// dropServer removes a server that has ended from the list of servers.
func (p *Pool) dropServer(e *managedServer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order = slices.DeleteFunc(p.order, func(other *managedServer) bool { return other == e })
}

// fingerprint returns a key for servers with the same row. If a server inherits Drawbridge's environment, servers with
// different environments have different keys. The key is a hash of secrets and must not be stored on disk.
func (p *Pool) fingerprint(row config.Server, environ []string) string {
	inherited := ""
	if p.inheritsEnv(row) {
		inherited = strings.Join(slices.Sorted(slices.Values(environ)), "\x00")
	}
	row = row.WithoutOrigin()
	row.Phase = ""
	text, _ := json.Marshal([]any{row, inherited}) // plain data always encodes
	sum := sha256.Sum256(text)
	return string(sum[:])
}

// inheritsEnv reports whether a row's server receives Drawbridge's whole environment, except known secrets.
func (p *Pool) inheritsEnv(row config.Server) bool {
	if row.EnvIsolation != nil {
		return !*row.EnvIsolation
	}
	return p.o.InheritEnv
}

// notifyListed publishes a listing to the fleets that use the server.
func (e *managedServer) notifyListed(l drawbridge.Listing) {
	e.notifyMu.Lock()
	defer e.notifyMu.Unlock()
	for _, f := range e.fleets.snapshot() {
		if f.options.OnListed != nil {
			f.options.OnListed(e.ctx, l)
		}
	}
}

// notifyLateFleet publishes the server's listing to a fleet that was added after the server was listed. It does nothing
// if the listing was made by an earlier process.
func (e *managedServer) notifyLateFleet(f *Fleet) {
	e.notifyMu.Lock()
	defer e.notifyMu.Unlock()
	l, fresh := e.listing.get()
	if fresh && f.options.OnListed != nil && slices.Contains(e.fleets.snapshot(), f) {
		f.options.OnListed(e.ctx, *l)
	}
}

// notifyFleets passes a server's notification to the fleets that use the server.
func (e *managedServer) notifyFleets(n drawbridge.ServerNotification) {
	for _, f := range e.fleets.snapshot() {
		if f.options.OnNotification != nil {
			f.options.OnNotification(n)
		}
	}
}
