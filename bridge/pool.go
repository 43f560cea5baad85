package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/callers"
	"github.com/drawbridge-mcp/drawbridge/bridge/signin"
	"github.com/drawbridge-mcp/drawbridge/bridge/talk"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/secrets"
)

// A Pool is the servers that several fleets share: two rows that say the same, with the same values put in, are one server
// for all of them. A server ends with the last fleet that has it. Its methods may be called from several goroutines.
type Pool struct {
	o       Options
	dial    dialer
	work    sync.WaitGroup // every goroutine; only start adds to it
	parking *talk.Parking
	callers callers.Register
	// begun is closed when Run begins.
	begun chan struct{}
	// secrets finds what rows refer to.
	secrets secrets.Resolver
	// desk has the credentials of all servers.
	desk *signin.Desk

	mu        sync.Mutex
	running   bool // Run runs, and is not told to end
	over      bool
	endpoints map[string]*endpoint // by fingerprint
	order     []*endpoint
}

// NewPool makes a pool without servers. Of the options it takes all but the Part. The error is for one that means nothing.
func NewPool(o Options) (*Pool, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Pool{
		o: o, dial: newDialer(o), parking: talk.NewParking(o.ParkTime, talk.MaxParked), begun: make(chan struct{}),
		secrets: secrets.Resolver{Keeper: o.Keeper}, endpoints: map[string]*endpoint{},
		desk: signin.New(signin.Options{Vault: o.Vault, Version: o.Version, Logger: o.Logger}),
	}, nil
}

// errRunning is for what is run twice.
var errRunning = errors.New("it runs already, or has run")

// Run lets servers be mounted until ctx ends. It returns when every connection is closed and every child process is gone;
// the error is for a pool that was run before.
func (p *Pool) Run(ctx context.Context) error {
	if err := p.begin(); err != nil {
		return err
	}
	<-ctx.Done()
	p.finish()
	return nil
}

func (p *Pool) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running || p.over {
		return errRunning
	}
	p.running = true
	close(p.begun)
	return nil
}

// finish ends everything and waits for it.
func (p *Pool) finish() {
	p.mu.Lock()
	p.running, p.over = false, true
	p.mu.Unlock()
	p.parking.Close()
	p.desk.Close()
	for _, e := range p.all() {
		e.end()
	}
	p.work.Wait()
}

// start runs work in a goroutine that Run waits for. It says false, and runs nothing, unless Run runs.
func (p *Pool) start(work func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running {
		p.work.Go(work)
	}
	return p.running
}

func (p *Pool) runs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// all gives the endpoints in the order in which they came.
func (p *Pool) all() []*endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.order)
}

// join gives the fleet a part in the server of a row, which is made where there is none yet.
func (p *Pool) join(f *Fleet, row config.Server) *endpoint {
	name := p.fingerprint(row, f.part.Environ)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.endpoints[name]
	if e == nil {
		e = newEndpoint(p, row, name, f.part)
		p.endpoints[name] = e
		p.order = append(p.order, e)
	}
	e.sharing.Add(f)
	return e
}

// leave takes the fleet's part in a server away. It says whether nobody has one any more: then the server is to be ended,
// and is not found again.
func (p *Pool) leave(f *Fleet, e *endpoint) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last = e.sharing.Remove(f); last {
		delete(p.endpoints, e.fingerprint)
	}
	return last
}

// forget drops an endpoint that has ended.
func (p *Pool) forget(e *endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order = slices.DeleteFunc(p.order, func(other *endpoint) bool { return other == e })
}

// fingerprint tells servers apart: by everything that their row says, with its values put in, and, where a server
// inherits the environment, by all of that. It is made of secrets and kept in memory only.
func (p *Pool) fingerprint(row config.Server, environ []string) string {
	inherited := ""
	if p.inheritsEnv(row) {
		inherited = strings.Join(slices.Sorted(slices.Values(environ)), "\x00")
	}
	row = row.Essence()
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

// listed tells the fleets that have the server what it offers.
func (e *endpoint) listed(l drawbridge.Listing) {
	e.telling.Lock()
	defer e.telling.Unlock()
	for _, f := range e.sharing.All() {
		if f.part.OnListed != nil {
			f.part.OnListed(e.ctx, l)
		}
	}
}

// catchUp tells a fleet that came later what the server offers, if that is known from this process.
func (e *endpoint) catchUp(f *Fleet) {
	e.telling.Lock()
	defer e.telling.Unlock()
	e.mu.Lock()
	l, fresh := e.listing, e.fresh
	e.mu.Unlock()
	if fresh && f.part.OnListed != nil && slices.Contains(e.sharing.All(), f) {
		f.part.OnListed(e.ctx, *l)
	}
}

// notice tells the fleets that have the server what it said.
func (e *endpoint) notice(n drawbridge.Notice) {
	for _, f := range e.sharing.All() {
		if f.part.OnNotice != nil {
			f.part.OnNotice(n)
		}
	}
}
