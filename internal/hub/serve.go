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

// Options configure a process that uses the hub. Config is required; all other fields may be zero.
type Options struct {
	// Config is the configuration of this process. If the process becomes the hub, its fields Store, Logger, Version
	// and OnDemand apply to the whole hub.
	Config gateway.Config
	// Host is the name of the program that started this process, for messages to people.
	Host string
	// Linger is how long a gateway without clients stays open, with its servers, while the hub has other clients; 0
	// means one minute.
	Linger time.Duration
	// WhileHub is called in a separate goroutine when this process is the hub and begins to serve its own client; it
	// may be nil. It must return when ctx ends.
	WhileHub func(ctx context.Context, g *gateway.Gateway)
}

// defaultLinger is the default of Options.Linger. It is longer than the time that hosts need to restart a server.
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

// newHello returns a hello with the verb want and the data of this process.
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

// ServeStdio serves MCP on a pair of pipes until in or ctx ends. If there is no hub, this process becomes the hub;
// otherwise it connects the client to the running hub. A hub with other clients continues after in has ended.
// ServeStdio returns nil at the end of in.
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

// newShim returns two functions. complete sets the fields of a hello that depend on the kind of shim. through runs the
// shim. If the system supports it, the shim passes its client's input and output to the hub. Otherwise it passes every
// line between the client and the hub.
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

// passableFile returns v as a file, and true if the file may be passed to another process. A terminal must not be
// passed, because it stops background processes that read from it.
func passableFile(v any) (*os.File, bool) {
	f, ok := v.(*os.File)
	if !ok {
		return nil, false
	}
	info, err := f.Stat()
	return f, err == nil && info.Mode()&fs.ModeCharDevice == 0
}

// ServeHTTP serves MCP on a listener until ctx ends, and then closes the listener. If there is no hub, this process
// becomes the hub; otherwise it passes the listener to the running hub. ready is called once, when the listener is
// served. The error is a *drawbridge.Fault if the listener may not be served. For example, other machines can reach it
// and callers need not authenticate.
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

// passListener passes the listener to the hub, and waits until the hub or ctx ends. It calls ready when the hub serves
// the listener. The error is the hub's refusal, or the cause of ctx's end.
func passListener(ctx context.Context, l *lineConn, listener *net.TCPListener, ready func()) error {
	defer l.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = l.conn.Close() })()
	f, err := listener.File()
	if err != nil {
		return err
	}
	err = sendFile(l.conn, f)
	_ = f.Close() // this closes only the copy; the listener stays open
	switch {
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET), errors.Is(err, net.ErrClosed):
		return context.Cause(ctx) // the hub is gone, or ctx has ended
	case err != nil:
		return err
	}
	answer, err := l.in.Next()
	if err == nil {
		if err := readWelcome(answer); err != nil {
			return err
		}
		ready()
		_, _ = l.in.Next() // returns when the hub ends; it sends nothing more
	}
	return context.Cause(ctx)
}

// A hubFinder connects this process to the hub, or makes this process the hub if there is none.
type hubFinder struct {
	o         Options
	file      hubFile
	shareable bool // other processes can find the hub file
	// hub is the hub that this process became while it was a shim; nil if it did not. hubRun waits for the end of that
	// hub, and hubErr is the error with which it ended.
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

// The minimum and maximum pause between two attempts to find a hub or to become the hub, and the time limit for all
// attempts. The limit is long enough for a hub that is ending to close its servers.
const (
	minConnectPause = time.Millisecond
	maxConnectPause = 50 * time.Millisecond
	connectTimeout  = 20 * time.Second
)

// connectOrLead connects to the running hub, or returns the lease with which this process becomes the hub. If other
// processes cannot find the hub, it returns neither: then this process becomes a hub without a lease. The error is a
// *drawbridge.Fault or the cause of ctx's end.
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

// connect connects to the running hub and sends the hello. The error is errNoHub if there is no hub, the cause of ctx's
// end, or the hub's refusal.
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

// runHubWith runs the hub in this process, and calls own once, in a goroutine, to serve this process's own client. The
// hub does not end before own returns. runHubWith returns the errors of own and of the hub.
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

// serveOwnClient attaches this process's own client to the hub and calls serve, which serves the client.
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

// attachNext connects to the next hub. If there is none, this process becomes the hub in the background, and attachNext
// connects to it.
func (s *hubFinder) attachNext(ctx context.Context, said hello) (*lineConn, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		l, lease, err := s.connectOrLead(ctx, said)
		if l != nil || err != nil {
			return l, err
		}
		s.hubRun.Wait() // an earlier hub of this process, which has ended
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

// waitForHub waits until the hub that this process became in the background has ended, and returns its error. That hub
// runs as long as other clients need it. If this process did not become a hub, waitForHub returns immediately.
func (s *hubFinder) waitForHub() error {
	if s.hub != nil {
		s.hub.release()
	}
	s.hubRun.Wait()
	return s.hubErr
}
