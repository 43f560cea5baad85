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

// A Pool is the servers that several fleets share: two rows that say the same, with the same values put in, are one
// server for all of them. A server ends with the last fleet that has it. Its methods may be called from several
// goroutines.
type Pool struct {
	o              Options
	dial           dialFunc
	work           sync.WaitGroup // every goroutine; only start adds to it
	parkedCalls    *interop.ParkedCalls
	callerSessions callerSessionRegistry
	clients        clientTraitsCache
	// begun is closed when Run begins.
	begun chan struct{}
	// secrets finds what rows refer to.
	secrets secrets.Resolver
	// signIns has the credentials of all servers.
	signIns *oauth.Manager

	mu            sync.Mutex
	running       bool // Run runs, and is not told to end
	finished      bool
	byFingerprint map[string]*managedServer // by fingerprint
	order         []*managedServer
}

// NewPool makes a pool without servers. Of the options it takes all but the Part. The error is for one that means
// nothing.
func NewPool(o Options) (*Pool, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Pool{
		o: o, dial: newDialFunc(o), parkedCalls: interop.NewParkedCalls(o.ParkTime, interop.MaxParkedCalls),
		begun:   make(chan struct{}),
		secrets: secrets.Resolver{Keychain: o.Keeper}, byFingerprint: map[string]*managedServer{},
		signIns: oauth.NewManager(oauth.ManagerOptions{Vault: o.Vault, Version: o.Version, Logger: o.Logger}),
	}, nil
}

// errRunning is for what is run twice.
var errRunning = errors.New("it runs already, or has run")

// Run lets servers be mounted until ctx ends. It returns when every connection is closed and every child process is
// gone; the error is for a pool that was run before.
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

// shutDown ends everything and waits for it.
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
}

// startWorker runs work in a goroutine that Run waits for. It says false, and runs nothing, unless Run runs.
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

// servers gives the endpoints in the order in which they came.
func (p *Pool) servers() []*managedServer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.order)
}

// attachFleet gives the fleet a part in the server of a row, which is made where there is none yet.
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

// detachFleet takes the fleet's part in a server away. It says whether nobody has one any more: then the server is to
// be ended, and is not found again.
func (p *Pool) detachFleet(f *Fleet, e *managedServer) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last = e.fleets.remove(f); last {
		delete(p.byFingerprint, e.fingerprint)
	}
	return last
}

// dropServer drops an endpoint that has ended.
func (p *Pool) dropServer(e *managedServer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order = slices.DeleteFunc(p.order, func(other *managedServer) bool { return other == e })
}

// fingerprint tells servers apart: by everything that their row says, with its values put in, and, where a server
// inherits the environment, by all of that. It is made of secrets and kept in memory only.
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

// inheritsEnv says whether the server of a row is given all of the environment.
func (p *Pool) inheritsEnv(row config.Server) bool {
	if row.EnvIsolation != nil {
		return !*row.EnvIsolation
	}
	return p.o.InheritEnv
}

// notifyListed tells the fleets that have the server what it offers.
func (e *managedServer) notifyListed(l drawbridge.Listing) {
	e.notifyMu.Lock()
	defer e.notifyMu.Unlock()
	for _, f := range e.fleets.snapshot() {
		if f.options.OnListed != nil {
			f.options.OnListed(e.ctx, l)
		}
	}
}

// notifyLateFleet tells a fleet that came later what the server offers, if that is known from this process.
func (e *managedServer) notifyLateFleet(f *Fleet) {
	e.notifyMu.Lock()
	defer e.notifyMu.Unlock()
	e.mu.Lock()
	l, fresh := e.listing, e.listedThisRun
	e.mu.Unlock()
	if fresh && f.options.OnListed != nil && slices.Contains(e.fleets.snapshot(), f) {
		f.options.OnListed(e.ctx, *l)
	}
}

// notifyFleets tells the fleets that have the server what it said.
func (e *managedServer) notifyFleets(n drawbridge.ServerNotification) {
	for _, f := range e.fleets.snapshot() {
		if f.options.OnNotification != nil {
			f.options.OnNotification(n)
		}
	}
}
