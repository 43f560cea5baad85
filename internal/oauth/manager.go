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
	// Vault stores the credentials; nil means that they are stored in memory only.
	Vault Vault
	// Client sends the requests to authorization servers; nil means a client of safehttp.NewClient.
	Client *http.Client
	// Version is Drawbridge's version, which authorization servers receive at registration.
	Version string
	// Logger receives failures that are not returned to a caller; nil discards them.
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// ExpiryTime returns the time that is compared with the expiry of a pending sign-in. now is the result of Now. If
	// the clock was set back, the returned time is later than now, so that an expired sign-in stays expired. If
	// ExpiryTime is nil, now itself is compared.
	ExpiryTime func(now time.Time) time.Time
}

// A Manager manages the credentials for all servers of a process, and receives the browser requests of their sign-ins.
// Its methods may be called from several goroutines.
type Manager struct {
	o         ManagerOptions
	callbacks *callbackServer

	running *cancelGroup // ended at the latest closeGrace after the call of Close

	mu          sync.Mutex
	credentials map[Server]*Credential
	closed      bool
	work        sync.WaitGroup // increased only under mu, before closed is set
}

// times returns the current time, and the time that is compared with the expiry of a sign-in (see
// ManagerOptions.ExpiryTime).
func (d *Manager) times() (now, seen time.Time) {
	now = d.o.Now()
	return now, d.o.ExpiryTime(now)
}

// NewManager returns a manager. It does not open a port before a sign-in begins. The caller must call Close when the
// manager is no longer used.
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

// Format writes the result of String for every verb.
func (d *Manager) Format(f fmt.State, _ rune) { fmt.Fprint(f, d.String()) }

// closeGrace is how long running renewals may continue after Close is called.
const closeGrace = 3 * time.Second

// Close stops the callback listeners and waits for running renewals and callbacks. After closeGrace, it cancels them.
func (d *Manager) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	defer time.AfterFunc(closeGrace, d.running.end).Stop()
	d.callbacks.close()
	d.work.Wait()
	d.running.end()
}

// runDetached runs work with a context that does not end when ctx ends. It returns the error of work, or ctx's error if
// ctx ends first. After Close, it calls work with ctx itself.
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

// Credential returns the credential for a server. It returns the same *Credential for equal servers. find returns the
// auth section of the server's configuration with its references resolved; it is nil if s contains all values.
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

// A cancelGroup cancels the running work of a manager when the method end is called.
type cancelGroup struct {
	mu      sync.Mutex
	ended   bool
	next    int
	cancels map[int]context.CancelFunc
}

func newCancelGroup() *cancelGroup { return &cancelGroup{cancels: map[int]context.CancelFunc{}} }

// add registers the function cancel, which end calls unless remove is called before end. If end was called already, add
// calls cancel at once.
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

// end cancels all work in the group, and work that is added later.
func (g *cancelGroup) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for _, cancel := range g.cancels {
		cancel()
	}
}
