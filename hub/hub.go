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
	"github.com/drawbridge-mcp/drawbridge/hub/resident"
)

// A hub is the one process that holds the servers. It lives for as long as somebody holds it, or its context does.
type hub struct {
	o      Options
	log    *slog.Logger
	ground *gateway.Ground
	since  time.Time

	// opening is held while a tenant is looked for, and made.
	opening sync.Mutex
	work    sync.WaitGroup // whoever is served
	running sync.WaitGroup // the gateways

	mu      sync.Mutex
	holds   int
	closing bool
	// over is closed when nobody holds the hub any more; then it lets nobody in.
	over chan struct{}
	// arrived has a token when there are guests that the watcher does not know.
	arrived chan struct{}
	tenants []*tenant
	guests  []*guest
}

// A tenant is a gateway for those whose configuration comes to the same.
type tenant struct {
	key    string
	g      *gateway.Gateway
	ran    chan struct{} // closed when the gateway's Run has returned
	ended  atomic.Bool   // by us, perhaps before it ran
	guests int
	// rest ends a tenant that nobody came back to.
	rest *time.Timer
}

// A guest is a client that is served: our own, or one of a shim.
type guest struct {
	hello  hello
	config gateway.Config
	read   gateway.Reading // the configuration, as it was when the guest came
	tenant *tenant
	since  time.Time
	voice  *voice // to its shim; nil for our own client, on its own pipes
	// lent is nil where the shim lent nothing, or has not yet; moved says that it was asked to attach anew.
	lent  atomic.Pointer[lent]
	moved atomic.Bool
}

// lead is the life of the hub: from the lease, nil for one that nobody can find, to the end of the last who holds it.
// begun is called once it serves, and has a hold on it from before that, to drop: whoever comes first must not be the last.
func lead(ctx context.Context, o Options, l *lease, begun func(*hub)) (err error) {
	if l != nil {
		defer l.end()
	}
	ground, err := gateway.OpenGround(ctx, o.Config)
	if err != nil {
		return err
	}
	h := &hub{o: o, log: o.logger(), ground: ground, since: time.Now(), holds: 1, over: make(chan struct{}), arrived: make(chan struct{}, 1)}
	groundLife, endGround := context.WithCancel(context.Background())
	var grounded sync.WaitGroup
	var fault error
	grounded.Go(func() { fault = ground.Run(groundLife) })
	life, end := context.WithCancel(ctx)
	var listening sync.WaitGroup
	if l != nil {
		listening.Go(func() { h.accept(life, l.listener) })
	}
	listening.Go(func() { h.watch(life) })
	begun(h)
	select {
	case <-h.over:
	case <-ctx.Done():
	}
	h.close(l)
	end()
	listening.Wait()
	h.work.Wait()
	h.closeTenants()
	h.running.Wait()
	endGround()
	grounded.Wait()
	return errors.Join(fault, ground.Close())
}

// hold keeps the hub alive until drop. It says false where it is at its end.
func (h *hub) hold() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return false
	}
	h.holds++
	return true
}

func (h *hub) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holds--; h.holds == 0 && !h.closing {
		h.closing = true
		close(h.over)
	}
}

// close lets nobody in any more, and ends the conversations.
func (h *hub) close(l *lease) {
	h.mu.Lock()
	h.closing = true
	guests := slices.Clone(h.guests)
	h.mu.Unlock()
	if l != nil {
		l.deaf()
	}
	for _, g := range guests {
		g.bye()
	}
}

func (h *hub) closeTenants() {
	h.mu.Lock()
	tenants := h.tenants
	h.tenants = nil
	h.mu.Unlock()
	for _, t := range tenants {
		h.end(t)
	}
}

// end closes a tenant.
func (h *hub) end(t *tenant) {
	if t.rest != nil {
		t.rest.Stop()
	}
	t.ended.Store(true)
	if err := t.g.Close(); err != nil {
		h.log.Warn("a gateway did not close in good order", "err", err)
	}
	<-t.ran
}

// acceptAgain is the pause after somebody could not be let in.
const acceptAgain = 100 * time.Millisecond

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
			case <-time.After(acceptAgain):
				continue
			case <-ctx.Done():
				return
			}
		}
		if !h.hold() {
			_ = conn.Close()
			return
		}
		h.work.Go(func() {
			defer h.drop()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			h.receive(ctx, conn)
		})
	}
}

// receive does what somebody wants.
func (h *hub) receive(ctx context.Context, conn *net.UnixConn) {
	if err := checkPeer(conn); err != nil {
		h.log.Warn("a process of another user came to the hub", "err", err)
		return
	}
	said, l, err := hear(conn)
	if err != nil {
		if l != nil {
			_ = l.welcome(0, err) // whoever said something wrong may be gone again
		}
		return
	}
	switch said.Want {
	case wantAttach:
		err = h.serveShim(ctx, said, l)
	case wantHTTP:
		err = h.serveListener(ctx, said, l)
	case wantState:
		err = h.tellState(l)
	case wantReload:
		err = h.tellReload(ctx, said, l)
	case wantLogs:
		err = h.tellLogs(ctx, said, l)
	}
	if err != nil && ctx.Err() == nil {
		h.log.Debug("a connection to the hub ended with an error", "want", said.Want, "pid", said.PID, "err", err)
	}
}

// serveShim serves the client of a shim.
func (h *hub) serveShim(ctx context.Context, said hello, l *line) error {
	v := &voice{conn: l.conn}
	g, err := h.enter(ctx, said, v)
	if err != nil {
		return h.refuse(ctx, l, err)
	}
	defer h.leave(g)
	if err := l.welcome(os.Getpid(), nil); err != nil {
		return err
	}
	resident.EaseOff()
	if !said.Lends {
		return g.tenant.g.Server().ServeStdio(ctx, v, v)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lent, err := borrow(v, l, said.Turn, cancel)
	if err != nil {
		return err
	}
	defer lent.giveBack()
	h.lends(g, lent)
	return g.tenant.g.Server().ServeStdio(ctx, lent, lent)
}

// lends notes what a guest has lent, which is told what the guest was told before that.
func (h *hub) lends(g *guest, l *lent) {
	g.lent.Store(l)
	if g.moved.Load() {
		l.moving.Store(true)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		l.leaving.Store(true)
	}
}

// refuse tells a shim why it is not served. At the end of the hub that is no reason: the shim hears nothing, and looks for the
// next hub.
func (h *hub) refuse(ctx context.Context, l *line, why error) error {
	if ctx.Err() != nil {
		return why
	}
	return errors.Join(why, l.welcome(0, why))
}

// serveListener serves on the listener of a shim, for as long as it is there.
func (h *hub) serveListener(ctx context.Context, said hello, l *line) error {
	g, err := h.enter(ctx, said, &voice{conn: l.conn})
	if err != nil {
		return h.refuse(ctx, l, err)
	}
	defer h.leave(g)
	if err := l.welcome(os.Getpid(), nil); err != nil {
		return err
	}
	f, err := receiveFile(l.conn)
	if err != nil {
		return errors.Join(err, l.welcome(0, err))
	}
	listener, err := net.FileListener(f)
	err = errors.Join(err, f.Close())
	if err != nil {
		return errors.Join(err, l.welcome(0, err))
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return g.serveHTTP(ctx, listener, func(refusal error) error {
		if err := l.welcome(os.Getpid(), refusal); err != nil || refusal != nil {
			return errors.Join(err, refusal)
		}
		h.work.Go(func() {
			defer cancel()
			_, _ = l.in.Next() // the shim says nothing more: this ends with it
		})
		return nil
	})
}

// serveHTTP serves the guest's gateway on a listener. ready is told before that, or why not.
func (g *guest) serveHTTP(ctx context.Context, listener net.Listener, ready func(error) error) error {
	door, err := g.read.Door(g.tenant.g, g.hello.Token, g.hello.Origins)
	if err == nil {
		defer func() { _ = g.tenant.g.Shut(door) }() // nothing of it can fail to close
		err = door.CheckListener(listener)
	}
	if err := ready(err); err != nil {
		return err
	}
	return door.Serve(ctx, listener)
}

// enter finds the tenant of a guest, or makes it.
func (h *hub) enter(ctx context.Context, said hello, v *voice) (*guest, error) {
	h.opening.Lock()
	defer h.opening.Unlock()
	g := &guest{hello: said, config: said.config(h.o.Config), voice: v, since: time.Now()}
	var err error
	if g.read, err = h.ground.Read(ctx, g.config); err != nil {
		return nil, err
	}
	key, err := g.read.Fingerprint()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	i := slices.IndexFunc(h.tenants, func(t *tenant) bool { return t.key == key })
	if i >= 0 {
		h.settle(g, h.tenants[i])
		h.mu.Unlock()
		return g, nil
	}
	h.mu.Unlock()
	made, err := g.read.Open(ctx)
	if err != nil {
		return nil, err
	}
	t := &tenant{key: key, g: made, ran: make(chan struct{})}
	h.running.Go(func() {
		defer close(t.ran)
		if err := made.Run(context.WithoutCancel(ctx)); err != nil && !t.ended.Load() {
			h.log.Error("a gateway ended", "err", err)
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tenants = append(h.tenants, t)
	h.settle(g, t)
	return g, nil
}

// settle notes where a guest is. It needs mu.
func (h *hub) settle(g *guest, t *tenant) {
	g.tenant = t
	t.guests++
	if t.rest != nil {
		t.rest.Stop()
		t.rest = nil
	}
	h.guests = append(h.guests, g)
	select {
	case h.arrived <- struct{}{}:
	default:
	}
}

// leave notes that a guest is gone. A tenant without guests stays for a while: hosts start their servers anew all the time.
func (h *hub) leave(g *guest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.guests = slices.DeleteFunc(h.guests, func(other *guest) bool { return other == g })
	t := g.tenant
	if t.guests--; t.guests == 0 && !h.closing {
		t.rest = time.AfterFunc(h.o.linger(), func() { h.evict(t) })
	}
}

// evict ends a tenant that has no guests.
func (h *hub) evict(t *tenant) {
	h.opening.Lock()
	defer h.opening.Unlock()
	h.mu.Lock()
	i := slices.Index(h.tenants, t)
	if t.guests > 0 || h.closing || i < 0 {
		h.mu.Unlock()
		return
	}
	h.tenants = slices.Delete(h.tenants, i, i+1)
	h.mu.Unlock()
	h.end(t)
}

// bye tells a shim that the hub ends, and ends the conversation: what is said from now on is to reach nobody.
func (g *guest) bye() {
	if g.voice == nil {
		return
	}
	if l := g.lent.Load(); l != nil {
		l.leaving.Store(true)
	}
	g.voice.notice(noteBye)
	_ = g.voice.conn.CloseRead()
}

// move asks a shim to attach anew.
func (g *guest) move() {
	g.moved.Store(true)
	if l := g.lent.Load(); l != nil {
		l.moving.Store(true)
	}
	g.voice.notice(noteMove)
}

// A voice is a shim's connection: the surface writes to it, and the hub has a word in between.
type voice struct {
	conn *net.UnixConn
	mu   sync.Mutex // is held by who writes

	// due are notices that wait for who writes to end.
	noting sync.Mutex
	due    []byte
}

func (v *voice) Read(p []byte) (int, error) { return v.conn.Read(p) }

// Write says whole lines, and then the notices that came meanwhile.
func (v *voice) Write(p []byte) (int, error) {
	v.mu.Lock()
	n, err := v.conn.Write(p)
	v.mu.Unlock()
	v.sayDue()
	return n, err
}

func (v *voice) Close() error { return v.conn.Close() }

// notice tells the shim something, between the lines of the surface. It waits for nobody: where something is being said to a shim
// that reads slowly, whoever says that says the notice behind it.
func (v *voice) notice(method string) {
	v.noting.Lock()
	v.due = fmt.Appendf(v.due, `{"jsonrpc":"2.0","method":%q}`+"\n", method)
	v.noting.Unlock()
	v.sayDue()
}

// sayDue says the notices, unless somebody else writes, who does it then.
func (v *voice) sayDue() {
	for v.isDue() && v.mu.TryLock() {
		v.noting.Lock()
		due := v.due
		v.due = nil
		v.noting.Unlock()
		_ = v.conn.SetWriteDeadline(time.Now().Add(lastWords))
		_, _ = v.conn.Write(due)
		_ = v.conn.SetWriteDeadline(time.Time{})
		v.mu.Unlock()
	}
}

func (v *voice) isDue() bool {
	v.noting.Lock()
	defer v.noting.Unlock()
	return len(v.due) > 0
}
