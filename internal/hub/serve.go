package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
)

// Options describe a process of the hub. Config is required; the zero value of every other field works.
type Options struct {
	// Config is the process's own configuration. Store, Logger, Version and OnDemand count for the whole hub.
	Config gateway.Config
	// Host is the name of the program that started this process, for people.
	Host string
	// Linger is how long servers run without a client while the hub has others; 0 is a minute.
	Linger time.Duration
	// WhileHub runs while this process is the hub for its own client; it may be nil. It must return when ctx ends.
	WhileHub func(ctx context.Context, g *gateway.Gateway)
}

// defaultLinger is longer than hosts take to restart a server.
const defaultLinger = time.Minute

func (o Options) linger() time.Duration {
	if o.Linger > 0 {
		return o.Linger
	}
	return defaultLinger
}

func (o Options) logger() *slog.Logger {
	if o.Config.Logger != nil {
		return o.Config.Logger
	}
	return slog.New(slog.DiscardHandler)
}

// newHello returns the hello of this process for a verb.
func (o Options) newHello(want string) hello {
	environ := o.Config.Environ
	if environ == nil {
		environ = os.Environ()
	}
	return hello{
		Want: want, PID: os.Getpid(), Host: o.Host, Paths: o.Config.Paths, Dir: o.Config.Dir,
		Naming: string(o.Config.Naming), Environ: environ,
	}
}

// ServeStdio serves MCP on a pair of pipes until in or ctx ends: as the hub, which lives on for others after that, or
// through it. The error is nil at the end of in.
func ServeStdio(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	s, err := newHubFinder(o)
	if err != nil {
		return err
	}
	complete, through := newShim(in, out)
	first, l, err := s.connectOrLead(ctx, complete(o.newHello(wantAttach)))
	switch {
	case err != nil:
		return err
	case first == nil:
		return s.runHubWith(ctx, l, func(ctx context.Context, h *hub) error {
			return h.serveOwnClient(ctx, o.newHello(wantAttach), func(ctx context.Context, g *attachedClient) error {
				return g.shared.gateway.Server().ServeStdio(ctx, in, out)
			})
		})
	}
	err = through(ctx, func(ctx context.Context) (*lineConn, error) {
		if first != nil {
			l := first
			first = nil
			return l, nil
		}
		return s.attachNext(ctx, complete(o.newHello(wantAttach)))
	})
	return errors.Join(err, s.waitForHub())
}

// newShim returns a function that completes a hello for each hub, and one that runs the shim. The shim passes its
// client's input and output to the hub if the system can; otherwise it relays lines.
func newShim(in io.Reader, out io.Writer) (complete func(hello) hello, through func(context.Context,
	func(context.Context) (*lineConn, error)) error) {
	from, passesIn := passableFile(in)
	to, passesOut := passableFile(out)
	if canPassFiles && passesIn && passesOut {
		c := &shimClient{in: from, out: to, conv: newConversation(), replayTimeout: replayTimeout}
		return c.completeHello, c.serve
	}
	c := newRelayClient(out)
	return c.completeHello, func(ctx context.Context, attach func(context.Context) (*lineConn, error)) error {
		return c.serve(ctx, in, attach)
	}
}

// passableFile returns v as a file and reports whether it can be passed to another process. A terminal cannot: it stops
// processes of the background that read it.
func passableFile(v any) (*os.File, bool) {
	f, ok := v.(*os.File)
	if !ok {
		return nil, false
	}
	info, err := f.Stat()
	return f, err == nil && info.Mode()&fs.ModeCharDevice == 0
}

// ServeHTTP serves MCP on a listener until ctx ends, as the hub or through it, and closes it. ready is called when the
// listener is served. The error is a *drawbridge.Fault where the listener may not be served as it is: beyond loopback
// callers must prove who they are.
func ServeHTTP(ctx context.Context, o Options, listener *net.TCPListener, ready func()) error {
	s, err := newHubFinder(o)
	if err != nil {
		return err
	}
	said := o.newHello(wantHTTP)
	said.Token, said.Origins = o.Config.Token, o.Config.Origins
	l, lease, err := s.connectOrLead(ctx, said)
	if err != nil {
		return err
	}
	if l == nil {
		return s.runHubWith(ctx, lease, func(ctx context.Context, h *hub) error {
			return h.serveOwnClient(ctx, said, func(ctx context.Context, g *attachedClient) error {
				return g.serveHTTP(ctx, listener, func(refusal error) error {
					if refusal == nil {
						ready()
					}
					return refusal
				})
			})
		})
	}
	defer listener.Close()
	var once sync.Once
	for err == nil {
		if err = passListener(ctx, l, listener, func() { once.Do(ready) }); err == nil {
			l, err = s.attachNext(ctx, said)
		}
	}
	return errors.Join(err, s.waitForHub())
}

// passListener has the hub serve on our listener, until the hub or ctx is gone. The error is the hub's refusal, or
// ctx's.
func passListener(ctx context.Context, l *lineConn, listener *net.TCPListener, ready func()) error {
	defer l.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = l.conn.Close() })()
	f, err := listener.File()
	if err != nil {
		return err
	}
	err = sendFile(l.conn, f)
	_ = f.Close() // the listener itself stays
	switch {
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET), errors.Is(err, net.ErrClosed):
		return context.Cause(ctx) // the hub is gone again, or we are to go
	case err != nil:
		return err
	}
	answer, err := l.in.Next()
	if err == nil {
		if err := readWelcome(answer); err != nil {
			return err
		}
		ready()
		_, _ = l.in.Next() // the hub sends nothing more: this returns when it ends
	}
	return context.Cause(ctx)
}

// A hubFinder connects a process to the hub, or makes it the hub if there is none.
type hubFinder struct {
	o         Options
	file      hubFile
	shareable bool // other processes can find the hub file
	// hubRun waits for the hub that this process became behind its own client; hubErr is that hub's error.
	hubRun sync.WaitGroup
	hub    *hub
	hubErr error
}

func newHubFinder(o Options) (*hubFinder, error) {
	store, err := gateway.StoreLocationFor(o.Config)
	if err != nil {
		return nil, err
	}
	s := &hubFinder{o: o}
	s.file, s.shareable, err = hubFileFor(store, o.Config.LookupEnv)
	return s, err
}

// The pauses between attempts to find a hub, or become it, and how long that may take in all: the end of one that
// closes its servers in good order.
const (
	minConnectPause = time.Millisecond
	maxConnectPause = 50 * time.Millisecond
	connectTimeout  = 20 * time.Second
)

// connectOrLead connects to the hub, or returns the lease to become it; both are nil for a hub that others cannot find.
// The error is a *drawbridge.Fault or the cause of ctx.
func (s *hubFinder) connectOrLead(ctx context.Context, said hello) (*lineConn, *hubLease, error) {
	if !s.shareable {
		return nil, nil, nil
	}
	limit := time.NewTimer(connectTimeout)
	defer limit.Stop()
	for pause := minConnectPause; ; pause = min(2*pause, maxConnectPause) {
		if err := context.Cause(ctx); err != nil {
			return nil, nil, err
		}
		l, err := s.connect(ctx, said)
		if err == nil || !errors.Is(err, errNoHub) {
			return l, nil, err
		}
		lease, err := s.file.acquire()
		if err == nil {
			return nil, lease, nil
		}
		if !errors.Is(err, errTaken) {
			dir := filepath.Dir(s.file.path)
			return nil, nil,
				unreachableFault(err,
					fmt.Sprintf("see that %s can be written and the disk has room, or name another place with --store",
						dir))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		case <-limit.C:
			return nil, nil, unreachableFault(errors.New("the hub does not answer"), "drawbridge ps")
		}
	}
}

// connect connects to the running hub and sends the hello. The error is errNoHub if there is none, or the cause of ctx.
func (s *hubFinder) connect(ctx context.Context, said hello) (*lineConn, error) {
	conn, err := s.file.dialHub()
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	l, err := said.send(conn)
	if err != nil {
		_ = conn.Close()
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	return l, nil
}

func unreachableFault(err error, next string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.Transient, Step: "find the hub", Err: err, Next: next,
	}
}

// runHubWith runs the hub in the process of its own client, who is served like any other client. The hub's shared parts
// stay open until this client is gone.
func (s *hubFinder) runHubWith(ctx context.Context, l *hubLease, own func(context.Context, *hub) error) error {
	var fault error
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := runHub(ctx, s.o, l, func(h *hub) {
		h.serving.Go(func() {
			defer h.release()
			fault = own(ctx, h)
		})
	})
	return errors.Join(fault, err)
}

// serveOwnClient serves the hub's own client.
func (h *hub) serveOwnClient(ctx context.Context, said hello, serve func(context.Context,
	*attachedClient) error) error {
	g, err := h.attachClient(ctx, said, nil)
	if err != nil {
		return err
	}
	defer h.removeClient(g)
	if h.o.WhileHub != nil {
		beside, stop := context.WithCancel(ctx)
		var work sync.WaitGroup
		work.Go(func() { h.o.WhileHub(beside, g.shared.gateway) })
		defer work.Wait()
		defer stop()
	}
	return serve(ctx, g)
}

// attachNext connects to the next hub, or becomes it if there is none: then the own client attaches like any other.
func (s *hubFinder) attachNext(ctx context.Context, said hello) (*lineConn, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		l, lease, err := s.connectOrLead(ctx, said)
		if l != nil || err != nil {
			return l, err
		}
		s.hubRun.Wait() // a hub of ours that ended
		begun := make(chan *hub, 1)
		s.hubRun.Go(func() {
			defer close(begun)
			s.hubErr = runHub(ctx, s.o, lease, func(h *hub) { begun <- h })
		})
		if s.hub = <-begun; s.hub == nil {
			s.hubRun.Wait()
			return nil, s.hubErr
		}
	}
}

// waitForHub waits for the end of the hub that this process became, which runs while others need it.
func (s *hubFinder) waitForHub() error {
	if s.hub != nil {
		s.hub.release()
	}
	s.hubRun.Wait()
	return s.hubErr
}
