package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
)

// A hub is the one process that holds the servers. It lives for as long as somebody holds it, or its context does.
type hub struct {
	o      Options
	log    *slog.Logger
	shared *gateway.Shared
	since  time.Time

	// tenantMu is held while a tenant is looked for, and made.
	tenantMu    sync.Mutex
	serving     sync.WaitGroup // whoever is served
	gatewayRuns sync.WaitGroup // the gateways

	mu      sync.Mutex
	refs    int
	closing bool
	// ended is closed when nobody holds the hub any more; then it lets nobody in.
	ended chan struct{}
	// newClients has a token when there are guests that the watcher does not know.
	newClients chan struct{}
	gateways   []*sharedGateway
	clients    []*attachedClient
}

// A sharedGateway is a gateway for those whose configuration comes to the same.
type sharedGateway struct {
	fingerprint string
	gateway     *gateway.Gateway
	ran         chan struct{} // closed when the gateway's Run has returned
	ended       atomic.Bool   // by us, perhaps before it ran
	clientCount int
	// lingerTimer ends a tenant that nobody came back to.
	lingerTimer *time.Timer
}

// A attachedClient is a client that is served: our own, or one of a shim.
type attachedClient struct {
	hello  hello
	config gateway.Config
	loaded gateway.LoadedConfig // the configuration, as it was when the guest came
	shared *sharedGateway
	since  time.Time
	shim   *shimConn // to its shim; nil for our own client, on its own pipes
	// passed is nil where the shim lent nothing, or has not yet; moved says that it was asked to attach anew.
	passed atomic.Pointer[passedConn]
	moved  atomic.Bool
}

// runHub is the life of the hub: from the lease, nil for one that nobody can find, to the end of the last who holds it.
// begun is called once it serves, and has a hold on it from before that, to drop: whoever comes first must not be the
// last.
func runHub(ctx context.Context, o Options, l *hubLease, begun func(*hub)) (err error) {
	if l != nil {
		defer l.release()
	}
	ground, err := gateway.OpenShared(ctx, o.Config)
	if err != nil {
		return err
	}
	h := &hub{o: o, log: o.logger(), shared: ground, since: time.Now(), refs: 1, ended: make(chan struct{}),
		newClients: make(chan struct{}, 1)}
	groundLife, endGround := context.WithCancel(context.Background())
	var grounded sync.WaitGroup
	var fault error
	grounded.Go(func() { fault = ground.Run(groundLife) })
	life, end := context.WithCancel(ctx)
	var listening sync.WaitGroup
	if l != nil {
		listening.Go(func() { h.accept(life, l.listener) })
	}
	listening.Go(func() { h.watchConfig(life) })
	begun(h)
	select {
	case <-h.ended:
	case <-ctx.Done():
	}
	h.closeClients(l)
	end()
	listening.Wait()
	h.serving.Wait()
	h.closeGateways()
	h.gatewayRuns.Wait()
	endGround()
	grounded.Wait()
	return errors.Join(fault, ground.Close())
}

// retain keeps the hub alive until drop. It says false where it is at its end.
func (h *hub) retain() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return false
	}
	h.refs++
	return true
}

func (h *hub) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refs--; h.refs == 0 && !h.closing {
		h.closing = true
		close(h.ended)
	}
}

// closeClients lets nobody in any more, and ends the conversations.
func (h *hub) closeClients(l *hubLease) {
	h.mu.Lock()
	h.closing = true
	guests := slices.Clone(h.clients)
	h.mu.Unlock()
	if l != nil {
		l.stopListening()
	}
	for _, g := range guests {
		g.announceEnd()
	}
}

func (h *hub) closeGateways() {
	h.mu.Lock()
	tenants := h.gateways
	h.gateways = nil
	h.mu.Unlock()
	for _, t := range tenants {
		h.closeGateway(t)
	}
}

// closeGateway closes a tenant.
func (h *hub) closeGateway(t *sharedGateway) {
	if t.lingerTimer != nil {
		t.lingerTimer.Stop()
	}
	t.ended.Store(true)
	if err := t.gateway.Close(); err != nil {
		h.log.Warn("a gateway did not close in good order", "err", err)
	}
	<-t.ran
}

// acceptRetryPause is the pause after somebody could not be let in.
const acceptRetryPause = 100 * time.Millisecond

// accept serves whoever comes, until ctx ends.
func (h *hub) accept(ctx context.Context, l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many open files, for one: whoever comes later is not to wait for a hub that hears nobody
			h.log.Warn("somebody who came to the hub could not be let in", "err", err)
			select {
			case <-time.After(acceptRetryPause):
				continue
			case <-ctx.Done():
				return
			}
		}
		if !h.retain() {
			_ = conn.Close()
			return
		}
		h.serving.Go(func() {
			defer h.release()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			h.handleConn(ctx, conn)
		})
	}
}

// handleConn does what somebody wants.
func (h *hub) handleConn(ctx context.Context, conn *net.UnixConn) {
	if err := checkPeer(conn); err != nil {
		h.log.Warn("a process of another user came to the hub", "err", err)
		return
	}
	said, l, err := readHello(conn)
	if err != nil {
		if l != nil {
			_ = l.sendWelcome(0, err) // whoever said something wrong may be gone again
		}
		return
	}
	switch said.Want {
	case wantAttach:
		err = h.serveShim(ctx, said, l)
	case wantHTTP:
		err = h.servePassedListener(ctx, said, l)
	case wantState:
		err = h.sendState(l)
	case wantReload:
		err = h.sendReload(ctx, said, l)
	case wantLogs:
		err = h.sendLogs(ctx, said, l)
	}
	if err != nil && ctx.Err() == nil {
		h.log.Debug("a connection to the hub ended with an error", "want", said.Want, "pid", said.PID, "err", err)
	}
}

// serveShim serves the client of a shim.
func (h *hub) serveShim(ctx context.Context, said hello, l *lineConn) error {
	v := &shimConn{conn: l.conn}
	g, err := h.attachClient(ctx, said, v)
	if err != nil {
		return h.refuseShim(ctx, l, err)
	}
	defer h.removeClient(g)
	if err := l.sendWelcome(os.Getpid(), nil); err != nil {
		return err
	}
	releaseTextPages()
	if !said.PassesFiles {
		return g.shared.gateway.Server().ServeStdio(ctx, v, v)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lent, err := receivePassedConn(v, l, said.HubNumber, cancel)
	if err != nil {
		return err
	}
	defer lent.release()
	h.setPassed(g, lent)
	return g.shared.gateway.Server().ServeStdio(ctx, lent, lent)
}

// setPassed notes what a guest has lent, which is told what the guest was told before that.
func (h *hub) setPassed(g *attachedClient, l *passedConn) {
	g.passed.Store(l)
	if g.moved.Load() {
		l.moving.Store(true)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		l.leaving.Store(true)
	}
}

// refuseShim tells a shim why it is not served. At the end of the hub that is no reason: the shim hears nothing, and
// looks for the next hub.
func (h *hub) refuseShim(ctx context.Context, l *lineConn, why error) error {
	if ctx.Err() != nil {
		return why
	}
	return errors.Join(why, l.sendWelcome(0, why))
}

// servePassedListener serves on the listener of a shim, for as long as it is there.
func (h *hub) servePassedListener(ctx context.Context, said hello, l *lineConn) error {
	g, err := h.attachClient(ctx, said, &shimConn{conn: l.conn})
	if err != nil {
		return h.refuseShim(ctx, l, err)
	}
	defer h.removeClient(g)
	if err := l.sendWelcome(os.Getpid(), nil); err != nil {
		return err
	}
	f, err := receiveFile(l.conn)
	if err != nil {
		return errors.Join(err, l.sendWelcome(0, err))
	}
	listener, err := net.FileListener(f)
	err = errors.Join(err, f.Close())
	if err != nil {
		return errors.Join(err, l.sendWelcome(0, err))
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return g.serveHTTP(ctx, listener, func(refusal error) error {
		if err := l.sendWelcome(os.Getpid(), refusal); err != nil || refusal != nil {
			return errors.Join(err, refusal)
		}
		h.serving.Go(func() {
			defer cancel()
			_, _ = l.in.Next() // the shim says nothing more: this ends with it
		})
		return nil
	})
}

// serveHTTP serves the guest's gateway on a listener. ready is told before that, or why not.
func (g *attachedClient) serveHTTP(ctx context.Context, listener net.Listener, ready func(error) error) error {
	door, err := g.loaded.NewServer(g.shared.gateway, g.hello.Token, g.hello.Origins)
	if err == nil {
		defer func() { _ = g.shared.gateway.CloseServer(door) }() // nothing of it can fail to close
		err = door.CheckListener(listener)
	}
	if err := ready(err); err != nil {
		return err
	}
	return door.Serve(ctx, listener)
}

// attachClient finds the tenant of a guest, or makes it.
func (h *hub) attachClient(ctx context.Context, said hello, v *shimConn) (*attachedClient, error) {
	h.tenantMu.Lock()
	defer h.tenantMu.Unlock()
	g := &attachedClient{hello: said, config: said.gatewayConfig(h.o.Config), shim: v, since: time.Now()}
	var err error
	if g.loaded, err = h.shared.LoadConfig(ctx, g.config); err != nil {
		return nil, err
	}
	key, err := g.loaded.Fingerprint()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	i := slices.IndexFunc(h.gateways, func(t *sharedGateway) bool { return t.fingerprint == key })
	if i >= 0 {
		h.addClient(g, h.gateways[i])
		h.mu.Unlock()
		return g, nil
	}
	h.mu.Unlock()
	made, err := g.loaded.Open(ctx)
	if err != nil {
		return nil, err
	}
	t := &sharedGateway{fingerprint: key, gateway: made, ran: make(chan struct{})}
	h.gatewayRuns.Go(func() {
		defer close(t.ran)
		if err := made.Run(context.WithoutCancel(ctx)); err != nil && !t.ended.Load() {
			h.log.Error("a gateway ended", "err", err)
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gateways = append(h.gateways, t)
	h.addClient(g, t)
	return g, nil
}

// addClient notes where a guest is. It needs mu.
func (h *hub) addClient(g *attachedClient, t *sharedGateway) {
	g.shared = t
	t.clientCount++
	if t.lingerTimer != nil {
		t.lingerTimer.Stop()
		t.lingerTimer = nil
	}
	h.clients = append(h.clients, g)
	select {
	case h.newClients <- struct{}{}:
	default:
	}
}

// removeClient notes that a guest is gone. A tenant without guests stays for a while: hosts start their servers anew
// all the time.
func (h *hub) removeClient(g *attachedClient) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients = slices.DeleteFunc(h.clients, func(other *attachedClient) bool { return other == g })
	t := g.shared
	if t.clientCount--; t.clientCount == 0 && !h.closing {
		t.lingerTimer = time.AfterFunc(h.o.linger(), func() { h.closeIdleGateway(t) })
	}
}

// closeIdleGateway ends a tenant that has no guests.
func (h *hub) closeIdleGateway(t *sharedGateway) {
	h.tenantMu.Lock()
	defer h.tenantMu.Unlock()
	h.mu.Lock()
	i := slices.Index(h.gateways, t)
	if t.clientCount > 0 || h.closing || i < 0 {
		h.mu.Unlock()
		return
	}
	h.gateways = slices.Delete(h.gateways, i, i+1)
	h.mu.Unlock()
	h.closeGateway(t)
}

// announceEnd tells a shim that the hub ends, and ends the conversation: what is said from now on is to reach nobody.
func (g *attachedClient) announceEnd() {
	if g.shim == nil {
		return
	}
	if l := g.passed.Load(); l != nil {
		l.leaving.Store(true)
	}
	g.shim.sendNotice(noticeHubEnds)
	_ = g.shim.conn.CloseRead()
}

// askToMove asks a shim to attach anew.
func (g *attachedClient) askToMove() {
	g.moved.Store(true)
	if l := g.passed.Load(); l != nil {
		l.moving.Store(true)
	}
	g.shim.sendNotice(noticeMove)
}

// A shimConn is a shim's connection: the surface writes to it, and the hub has a word in between.
type shimConn struct {
	conn *net.UnixConn
	mu   sync.Mutex // is held by who writes

	// due are notices that wait for who writes to end.
	dueMu sync.Mutex
	due   []byte
}

func (v *shimConn) Read(p []byte) (int, error) { return v.conn.Read(p) }

// Write says whole lines, and then the notices that came meanwhile.
func (v *shimConn) Write(p []byte) (int, error) {
	v.mu.Lock()
	n, err := v.conn.Write(p)
	v.mu.Unlock()
	v.writeDueNotices()
	return n, err
}

func (v *shimConn) Close() error { return v.conn.Close() }

// sendNotice tells the shim something, between the lines of the surface. It waits for nobody: where something is being
// said to a shim that reads slowly, whoever says that says the notice behind it.
func (v *shimConn) sendNotice(method string) {
	v.dueMu.Lock()
	v.due = fmt.Appendf(v.due, `{"jsonrpc":"2.0","method":%q}`+"\n", method)
	v.dueMu.Unlock()
	v.writeDueNotices()
}

// writeDueNotices says the notices, unless somebody else writes, who does it then.
func (v *shimConn) writeDueNotices() {
	for v.hasDueNotices() && v.mu.TryLock() {
		v.dueMu.Lock()
		due := v.due
		v.due = nil
		v.dueMu.Unlock()
		_ = v.conn.SetWriteDeadline(time.Now().Add(finalWriteTimeout))
		_, _ = v.conn.Write(due)
		_ = v.conn.SetWriteDeadline(time.Time{})
		v.mu.Unlock()
	}
}

func (v *shimConn) hasDueNotices() bool {
	v.dueMu.Lock()
	defer v.dueMu.Unlock()
	return len(v.due) > 0
}
