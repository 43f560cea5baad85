package oauth

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// ManagerOptions are what a Desk can do without.
type ManagerOptions struct {
	// Vault keeps credentials; nil is memory that ends with the desk.
	Vault Vault
	// Client carries the requests to authorization servers; nil is one that is guarded as safehttp.NewClient says.
	Client *http.Client
	// Version is ours, as authorization servers are told it.
	Version string
	// Logger is told what went wrong and nobody else hears of; nil is silence.
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// ExpiryTime returns the time by which a sign-in is judged to have expired, given that of Now: a later one where the
	// clock was put back. Nil returns the same.
	ExpiryTime func(now time.Time) time.Time
}

// A Manager is where sign-ins are begun and credentials kept, for all servers of a process. Its methods may be called
// from several goroutines.
type Manager struct {
	o         ManagerOptions
	callbacks *callbackServer

	// ctx ends some time after Close has begun.
	ctx    context.Context
	cancel context.CancelFunc

	mu          sync.Mutex
	credentials map[Server]*Credential
	closed      bool
	work        sync.WaitGroup // grows under mu, and not after closed
}

// times returns the time, and that by which expiry is judged.
func (d *Manager) times() (now, seen time.Time) {
	now = d.o.Now()
	return now, d.o.ExpiryTime(now)
}

// NewManager makes a desk. Nothing is opened before a sign-in is begun.
func NewManager(o ManagerOptions) *Manager {
	if o.Vault == nil {
		o.Vault = newMemoryVault()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ExpiryTime == nil {
		o.ExpiryTime = func(now time.Time) time.Time { return now }
	}
	o.Version = cmp.Or(o.Version, "dev")
	d := &Manager{o: o, credentials: map[Server]*Credential{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.callbacks = &callbackServer{ctx: d.ctx, waiting: map[string]callbackWaiter{}}
	return d
}

// String says what it is, without what is kept.
func (d *Manager) String() string { return "a desk of sign-ins" }

// Format is String, whatever the verb.
func (d *Manager) Format(f fmt.State, _ rune) { fmt.Fprint(f, d.String()) }

// closeGrace is how long a renewal that is on its way may go on when the desk closes.
const closeGrace = 3 * time.Second

// Close ends the waiting for people, and returns when nothing of the desk is left.
func (d *Manager) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	defer time.AfterFunc(closeGrace, d.cancel).Stop()
	d.callbacks.close()
	d.work.Wait()
	d.cancel()
}

// runDetached does some work that is not to end with the one who wanted it, and gives its error, or ctx's.
func (d *Manager) runDetached(ctx context.Context, work func(context.Context) error) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return work(ctx)
	}
	done := make(chan error, 1)
	d.work.Go(func() {
		calm, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*safehttp.RequestTimeout)
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

// Credential gives the credential of a server: the same one for all who ask for it. Find finds what the row of the
// server refers to for its client; nil where that stands in s.
func (d *Manager) Credential(s Server, find func(context.Context) (config.Auth, error)) *Credential {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.credentials[s]
	if c == nil {
		c = &Credential{
			manager: d, server: s, resolveAuth: find, name: s.vaultName(), client: d.o.Client, busy: make(chan struct{},
				1), changed: make(chan struct{}),
			log: d.o.Logger.With("server", string(s.ID)), vault: d.o.Vault,
		}
		if s.ExchangesCallerToken {
			c.vault = newMemoryVault()
		}
		if c.client == nil {
			c.client = safehttp.NewClient(s.URL, s.Issuer, s.AuthorizationURL, s.TokenURL, s.DeviceURL,
				s.RegistrationURL, s.IDP)
		}
		d.credentials[s] = c
	}
	return c
}
