package signin

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/bridge/egress"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// Options are what a Desk can do without.
type Options struct {
	// Vault keeps credentials; nil is memory that ends with the desk.
	Vault Vault
	// Client carries the requests to authorization servers; nil is one that is guarded as egress.Client says.
	Client *http.Client
	// Version is ours, as authorization servers are told it.
	Version string
	// Logger is told what went wrong and nobody else hears of; nil is silence.
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// A Desk is where sign-ins are begun and credentials kept, for all servers of a process. Its methods may be called from
// several goroutines.
type Desk struct {
	o     Options
	lobby *lobby

	// ctx ends some time after Close has begun.
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	creds  map[Server]*Credential
	closed bool
	work   sync.WaitGroup // grows under mu, and not after closed
}

// New makes a desk. Nothing is opened before a sign-in is begun.
func New(o Options) *Desk {
	if o.Vault == nil {
		o.Vault = newMemory()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Version = cmp.Or(o.Version, "dev")
	d := &Desk{o: o, creds: map[Server]*Credential{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.lobby = &lobby{life: d.ctx, waits: map[string]wait{}}
	return d
}

// String says what it is, without what is kept.
func (d *Desk) String() string { return "a desk of sign-ins" }

// Format is String, whatever the verb.
func (d *Desk) Format(f fmt.State, _ rune) { fmt.Fprint(f, d.String()) }

// closeGrace is how long a renewal that is on its way may go on when the desk closes.
const closeGrace = 3 * time.Second

// Close ends the waiting for people, and returns when nothing of the desk is left.
func (d *Desk) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	defer time.AfterFunc(closeGrace, d.cancel).Stop()
	d.lobby.close()
	d.work.Wait()
	d.cancel()
}

// carryOn does some work that is not to end with the one who wanted it, and gives its error, or ctx's.
func (d *Desk) carryOn(ctx context.Context, work func(context.Context) error) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return work(ctx)
	}
	done := make(chan error, 1)
	d.work.Go(func() {
		calm, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*egress.Time)
		defer cancel()
		defer context.AfterFunc(d.ctx, cancel)()
		done <- work(calm)
	})
	d.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Credential gives the credential of a server: the same one for all who ask for it. Find finds what the row of the server
// refers to for its client; nil where that stands in s.
func (d *Desk) Credential(s Server, find func(context.Context) (config.Auth, error)) *Credential {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.creds[s]
	if c == nil {
		c = &Credential{
			desk: d, site: s, find: find, name: s.name(), client: d.o.Client, busy: make(chan struct{}, 1), changed: make(chan struct{}),
			log: d.o.Logger.With("server", string(s.ID)), vault: d.o.Vault,
		}
		if s.Vouched {
			c.vault = newMemory()
		}
		if c.client == nil {
			c.client = egress.Client(s.URL, s.Issuer, s.AuthorizationURL, s.TokenURL, s.DeviceURL, s.RegistrationURL, s.IDP)
		}
		d.creds[s] = c
	}
	return c
}
