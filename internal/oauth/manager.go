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

// ManagerOptions are the optional settings of a Manager.
type ManagerOptions struct {
	// Vault stores the credentials; nil means in memory, until Close.
	Vault Vault
	// Client sends the requests to authorization servers; nil means a client of safehttp.NewClient.
	Client *http.Client
	// Version is Drawbridge's version, which authorization servers receive at registration.
	Version string
	// Logger receives failures that are not returned to a caller; nil discards them.
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// ExpiryTime returns the time by which a sign-in is judged to have expired, given that of Now: a later one where the
	// clock was put back. Nil returns the same.
	ExpiryTime func(now time.Time) time.Time
}

// A Manager holds the credentials for all servers of a process, and receives the browsers of their sign-ins. Its
// methods may be called from several goroutines.
type Manager struct {
	o         ManagerOptions
	callbacks *callbackServer

	running *cancelGroup // ends at most closeGrace after Close has begun

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

// NewManager returns a manager, which opens no port before a sign-in begins. Close it when it is no longer used.
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
	d.running = newCancelGroup()
	d.callbacks = &callbackServer{running: d.running, waiting: map[string]callbackWaiter{}}
	return d
}

// String returns a fixed text, without any credential.
func (d *Manager) String() string { return "sign-in manager" }

// Format writes String, whatever the verb.
func (d *Manager) Format(f fmt.State, _ rune) { fmt.Fprint(f, d.String()) }

// closeGrace is how long renewals that are running may go on when the manager closes.
const closeGrace = 3 * time.Second

// Close stops the listeners and waits for the work that is running, which is cancelled after closeGrace.
func (d *Manager) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	defer time.AfterFunc(closeGrace, d.running.end).Stop()
	d.callbacks.close()
	d.work.Wait()
	d.running.end()
}

// runDetached runs work that must not end with ctx, and returns its error, or ctx's error if ctx ends first.
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
		defer d.running.add(cancel)()
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

// Credential returns the credential for a server; all callers get the same one. find resolves the references in the
// auth of the server's row; it is nil if s holds all values.
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

// A cancelGroup cancels the work of a manager that is running when the group ends.
type cancelGroup struct {
	mu      sync.Mutex
	ended   bool
	next    int
	cancels map[int]context.CancelFunc
}

func newCancelGroup() *cancelGroup { return &cancelGroup{cancels: map[int]context.CancelFunc{}} }

// add has the end of the group call cancel until remove is called. If the group has ended, it calls cancel at once.
func (g *cancelGroup) add(cancel context.CancelFunc) (remove func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		cancel()
		return func() {}
	}
	key := g.next
	g.next++
	g.cancels[key] = cancel
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.cancels, key)
	}
}

// end cancels the work in the group, and all that is added later.
func (g *cancelGroup) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for _, cancel := range g.cancels {
		cancel()
	}
}
