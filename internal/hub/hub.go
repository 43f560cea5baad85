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
	"github.com/drawbridge-mcp/drawbridge/internal/command"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

// A hub is the state of the process that runs the servers. Each connection, and the hub's own client, has a reference
// to the hub. The hub ends when the last reference is released or its context ends.
type hub struct {
	o      Options
	log    *slog.Logger
	shared *gateway.Shared
	since  time.Time

	// attachMu is locked while a gateway is looked up, opened, reloaded or closed.
	attachMu    sync.Mutex
	agents      command.AgentSessions
	serving     sync.WaitGroup // connections, and the hub's own client
	gatewayRuns sync.WaitGroup // Run of the gateways

	mu      sync.Mutex
	refs    int
	closing bool
	// ended is closed when the last reference is released. From then on the hub accepts no clients.
	ended chan struct{}
	// newClients holds one value if a client was added and watchConfig does not watch the client's files yet.
	newClients chan struct{}
	gateways   []*sharedGateway
	clients    []*attachedClient
}

// A sharedGateway is the gateway of all clients whose configurations have the same fingerprint.
type sharedGateway struct {
	fingerprint string
	gateway     *gateway.Gateway
	ran         chan struct{} // closed when the gateway's Run has returned
	ended       atomic.Bool   // set before the hub closes the gateway
	useCount    int           // number of clients and of running requests of the command line
	// lingerTimer closes the gateway when it was not used for the time Options.Linger; nil while the gateway is in use.
	lingerTimer *time.Timer
}

// An attachedClient is a client that the hub serves: the hub's own client, or the client of a shim.
type attachedClient struct {
	hello  hello
	config gateway.Config
	loaded gateway.LoadedConfig // the configuration when the client attached
	shared *sharedGateway
	since  time.Time
	shim   *shimConn // nil for the hub's own client, which uses the pipes of this process
	// passed holds the files that the shim passed. It is nil before they arrive, and always if the shim passes none.
	// moved is set when the hub has asked the shim to attach again.
	passed atomic.Pointer[passedConn]
	moved  atomic.Bool
}

// runHub runs the hub until its last reference is released or ctx ends. If the lease l is nil, other processes cannot
// find the hub. runHub calls begun once, as soon as the hub accepts clients. At that time the hub has one reference.
// The caller of runHub must release this reference later; without it, the hub would end when the first client leaves.
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
	groundLife, endGround := context.WithCancel(context.WithoutCancel(ctx))
	var grounded sync.WaitGroup
	var fault error
	grounded.Go(func() { fault = ground.Run(groundLife) })
	life, end := context.WithCancel(ctx)
	var listening sync.WaitGroup
	if l != nil {
		listening.Go(func() { h.accept(life, l.listener) })
	}
	listening.Go(func() { h.watchConfig(life) })
	listening.Go(func() {
		select {
		case <-life.Done():
		case <-time.After(startTime):
			process.ReleaseProgramPages()
		}
	})
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

// startTime is the time after the start of a hub at which it releases the memory that only the start needed.
const startTime = 250 * time.Millisecond

// retain adds a reference to the hub. It returns false if the hub is closing.
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

// closeClients stops listening for connections and ends the conversations with the clients of all shims.
func (h *hub) closeClients(l *hubLease) {
	h.mu.Lock()
	h.closing = true
	clients := slices.Clone(h.clients)
	h.mu.Unlock()
	if l != nil {
		l.stopListening()
	}
	for _, g := range clients {
		g.announceEnd()
	}
}

func (h *hub) closeGateways() {
	h.mu.Lock()
	gateways := h.gateways
	h.gateways = nil
	h.mu.Unlock()
	for _, t := range gateways {
		h.closeGateway(t)
	}
}

// closeGateway closes a gateway and waits for its Run to return.
func (h *hub) closeGateway(t *sharedGateway) {
	if t.lingerTimer != nil {
		t.lingerTimer.Stop()
	}
	t.ended.Store(true)
	if err := t.gateway.Close(); err != nil {
		h.log.Warn("close a gateway", "err", err)
	}
	<-t.ran
}

// acceptRetryPause is the pause after an error of accept.
const acceptRetryPause = 100 * time.Millisecond

// accept accepts connections until ctx ends, and handles each in a separate goroutine.
func (h *hub) accept(ctx context.Context, l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // for example too many open files; continue to accept
			h.log.Warn("accept a connection to the hub", "err", err)
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

// handleConn handles one connection: it checks the user of the peer, reads the hello and carries out the verb.
func (h *hub) handleConn(ctx context.Context, conn *net.UnixConn) {
	if err := checkPeer(conn); err != nil {
		h.log.Warn("refused a process of another user at the hub", "err", err)
		return
	}
	said, l, err := readHello(conn)
	if err != nil {
		if l != nil {
			_ = l.sendWelcome(0, err) // the peer may have closed the connection
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
	case wantReconnect:
		err = h.sendReconnect(ctx, said, l)
	case wantNotifications:
		err = h.sendNotifications(said, l)
	case wantCall:
		err = h.sendCall(ctx, said, l)
	case wantApprove:
		err = h.sendApprove(ctx, said, l)
	case wantSubscribe:
		err = h.sendChanges(ctx, l)
	case wantProfile:
		err = h.sendProfile(ctx, said, l)
	}
	if err != nil && ctx.Err() == nil {
		h.log.Debug("a connection to the hub ended with an error", "want", said.Want, "pid", said.PID, "err", err)
	}
}

// serveShim handles the verb attach: it serves the MCP client of a shim.
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
	process.ReleaseProgramPages()
	if !said.PassesFiles {
		return g.shared.gateway.Server().ServeStdio(ctx, v, v)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	passed, err := receivePassedConn(v, l, said.HubNumber, cancel)
	if err != nil {
		return err
	}
	defer passed.release()
	h.setPassed(g, passed)
	return g.shared.gateway.Server().ServeStdio(ctx, passed, passed)
}

// setPassed stores the files that a client's shim passed. Before the files arrived, the hub may have asked the shim to
// attach again, or have begun to end. Then setPassed also sets moving or leaving of l.
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

// refuseShim responds with the reason for a refusal. If the hub is ending, it sends nothing, so that the shim looks for
// the next hub.
func (h *hub) refuseShim(ctx context.Context, l *lineConn, why error) error {
	if ctx.Err() != nil {
		return why
	}
	return errors.Join(why, l.sendWelcome(0, why))
}

// servePassedListener handles the verb http: it receives a listener from the shim, and serves the client's gateway on
// it until the shim closes the connection.
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
			_, _ = l.in.Next() // returns when the shim closes the connection; it sends nothing more
		})
		return nil
	})
}

// serveHTTP serves the client's gateway on a listener. It first calls ready once, with nil or with the reason why it
// cannot serve on the listener. If ready returns an error, serveHTTP returns that error.
func (g *attachedClient) serveHTTP(ctx context.Context, listener net.Listener, ready func(error) error) error {
	endpoint, err := g.loaded.NewServer(ctx, g.shared.gateway, g.hello.Token, g.hello.Origins)
	if err == nil {
		defer func() { _ = g.shared.gateway.CloseServer(endpoint) }() // Close returns no error
		err = endpoint.CheckListener(listener)
	}
	if err := ready(err); err != nil {
		return err
	}
	return endpoint.Serve(ctx, listener)
}

// attachClient adds a client and returns it. The client uses the gateway for its configuration; attachClient opens the
// gateway if it is not open.
func (h *hub) attachClient(ctx context.Context, said hello, v *shimConn) (*attachedClient, error) {
	g := &attachedClient{hello: said, config: said.gatewayConfig(h.o.Config), shim: v, since: time.Now()}
	err := h.useGateway(ctx, g.config, func(loaded gateway.LoadedConfig, t *sharedGateway) {
		g.loaded = loaded
		h.addClient(g, t)
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// borrowGateway returns the gateway for the configuration in a hello, for one request. It opens the gateway if it is
// not open. The sender does not become a client. The caller must call returnGateway after the request.
func (h *hub) borrowGateway(ctx context.Context, said hello) (shared *sharedGateway, err error) {
	err = h.useGateway(ctx, said.gatewayConfig(h.o.Config), func(_ gateway.LoadedConfig, t *sharedGateway) {
		t.retain()
		shared = t
	})
	return shared, err
}

// useGateway calls use with the gateway for the configuration c. It opens the gateway if it is not open. The hub's mu
// is locked while use runs.
func (h *hub) useGateway(ctx context.Context, c gateway.Config, use func(gateway.LoadedConfig,
	*sharedGateway)) error {
	h.attachMu.Lock()
	defer h.attachMu.Unlock()
	loaded, err := h.shared.LoadConfig(ctx, c)
	if err != nil {
		return err
	}
	key, err := loaded.Fingerprint()
	if err != nil {
		return err
	}
	h.mu.Lock()
	i := slices.IndexFunc(h.gateways, func(t *sharedGateway) bool { return t.fingerprint == key })
	if i >= 0 {
		defer h.mu.Unlock()
		use(loaded, h.gateways[i])
		return nil
	}
	h.mu.Unlock()
	made, err := loaded.Open(ctx)
	if err != nil {
		return err
	}
	t := &sharedGateway{fingerprint: key, gateway: made, ran: make(chan struct{})}
	h.gatewayRuns.Go(func() {
		defer close(t.ran)
		if err := made.Run(context.WithoutCancel(ctx)); err != nil && !t.ended.Load() {
			h.log.Error("a gateway ended with an error", "err", err)
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gateways = append(h.gateways, t)
	use(loaded, t)
	return nil
}

// retain adds one use of the gateway, so that the gateway is not closed. The caller must hold the hub's mu.
func (t *sharedGateway) retain() {
	t.useCount++
	if t.lingerTimer != nil {
		t.lingerTimer.Stop()
		t.lingerTimer = nil
	}
}

// addClient attaches a client to a gateway. The caller must hold mu.
func (h *hub) addClient(g *attachedClient, t *sharedGateway) {
	g.shared = t
	t.retain()
	h.clients = append(h.clients, g)
	select {
	case h.newClients <- struct{}{}:
	default:
	}
}

// removeClient removes a client. Its gateway stays open for the time Options.Linger even if it has no other clients,
// because hosts often restart their servers.
func (h *hub) removeClient(g *attachedClient) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients = slices.DeleteFunc(h.clients, func(other *attachedClient) bool { return other == g })
	h.releaseGateway(g.shared)
}

// returnGateway ends the use of a gateway that began with borrowGateway.
func (h *hub) returnGateway(t *sharedGateway) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.releaseGateway(t)
}

// releaseGateway removes one use of a gateway. After the last use, the gateway is closed when the time Options.Linger
// has passed without another use. The caller must hold mu.
func (h *hub) releaseGateway(t *sharedGateway) {
	if t.useCount--; t.useCount == 0 && !h.closing {
		t.lingerTimer = time.AfterFunc(h.o.linger(), func() { h.closeIdleGateway(t) })
	}
}

// closeIdleGateway closes a gateway, unless it is in use again.
func (h *hub) closeIdleGateway(t *sharedGateway) {
	h.attachMu.Lock()
	defer h.attachMu.Unlock()
	h.mu.Lock()
	i := slices.Index(h.gateways, t)
	if t.useCount > 0 || h.closing || i < 0 {
		h.mu.Unlock()
		return
	}
	h.gateways = slices.Delete(h.gateways, i, i+1)
	h.mu.Unlock()
	h.closeGateway(t)
}

// announceEnd tells a shim that the hub ends, and ends the conversation with the shim's client. Later output to the
// client is dropped.
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

// askToMove asks a shim to attach again, because its configuration has changed.
func (g *attachedClient) askToMove() {
	g.moved.Store(true)
	if l := g.passed.Load(); l != nil {
		l.moving.Store(true)
	}
	g.shim.sendNotice(noticeMove)
}

// A shimConn is the hub's connection to a shim. The MCP server writes lines to it, and the hub sends notices between
// the lines.
type shimConn struct {
	conn *net.UnixConn
	mu   sync.Mutex // held while writing

	// due holds the notices that are not written yet.
	dueMu sync.Mutex
	due   []byte
}

func (v *shimConn) Read(p []byte) (int, error) { return v.conn.Read(p) }

// Write writes p, which consists of whole lines, and then the notices that were added meanwhile.
func (v *shimConn) Write(p []byte) (int, error) {
	v.mu.Lock()
	n, err := v.conn.Write(p)
	v.mu.Unlock()
	v.writeDueNotices()
	return n, err
}

func (v *shimConn) Close() error { return v.conn.Close() }

// sendNotice sends a notice to the shim, between two lines of the server. It does not block: if another goroutine is
// writing, that goroutine sends the notice afterwards.
func (v *shimConn) sendNotice(method string) {
	v.dueMu.Lock()
	v.due = fmt.Appendf(v.due, `{"jsonrpc":"2.0","method":%q}`+"\n", method)
	v.dueMu.Unlock()
	v.writeDueNotices()
}

// writeDueNotices writes the notices in due. If another goroutine is writing, it returns, and that goroutine writes
// them.
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
