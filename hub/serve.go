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

// Options say whose hub it is. The zero value of each field but Config works.
type Options struct {
	// Config is the process's own configuration. Store, Logger, Version and OnDemand count for the whole hub.
	Config gateway.Config
	// Host is the name of the program that started this process, for people.
	Host string
	// Linger is how long servers stay whose last client is gone, while the hub has others: a minute.
	Linger time.Duration
	// Beside runs while this process is the hub for its own client; nil is nothing. It ends with ctx.
	Beside func(ctx context.Context, g *gateway.Gateway)
}

// defaultLinger is how long hosts take to start a server anew, and some more.
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

// hello is what this process says of itself.
func (o Options) hello(want string) hello {
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
	s, err := newStation(o)
	if err != nil {
		return err
	}
	complete, through := shimFor(in, out)
	first, l, err := s.reach(ctx, complete(o.hello(wantAttach)))
	switch {
	case err != nil:
		return err
	case first == nil:
		return s.leadWith(ctx, l, func(ctx context.Context, h *hub) error {
			return h.serveOwn(ctx, o.hello(wantAttach), func(ctx context.Context, g *guest) error {
				return g.tenant.g.Server().ServeStdio(ctx, in, out)
			})
		})
	}
	err = through(ctx, func(ctx context.Context) (*line, error) {
		if first != nil {
			l := first
			first = nil
			return l, nil
		}
		return s.attach(ctx, complete(o.hello(wantAttach)))
	})
	return errors.Join(err, s.end())
}

// shimFor gives what passes a client on to hubs, and what completes the hello to each: its input and output are lent where
// they can be.
func shimFor(in io.Reader, out io.Writer) (complete func(hello) hello, through func(context.Context, func(context.Context) (*line, error)) error) {
	from, lendsIn := lendable(in)
	to, lendsOut := lendable(out)
	if canLend && lendsIn && lendsOut {
		c := &lender{in: from, out: to, talk: newTalk(), patience: settleTime}
		return c.hello, c.serve
	}
	c := newClient(out)
	return c.hello, func(ctx context.Context, attach func(context.Context) (*line, error)) error {
		return c.serve(ctx, in, attach)
	}
}

// lendable gives what can be lent to another process. A terminal cannot: it stops whoever reads it from the background.
func lendable(v any) (*os.File, bool) {
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
	s, err := newStation(o)
	if err != nil {
		return err
	}
	said := o.hello(wantHTTP)
	said.Token, said.Origins = o.Config.Token, o.Config.Origins
	l, lease, err := s.reach(ctx, said)
	if err != nil {
		return err
	}
	if l == nil {
		return s.leadWith(ctx, lease, func(ctx context.Context, h *hub) error {
			return h.serveOwn(ctx, said, func(ctx context.Context, g *guest) error {
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
		if err = lend(ctx, l, listener, func() { once.Do(ready) }); err == nil {
			l, err = s.attach(ctx, said)
		}
	}
	return errors.Join(err, s.end())
}

// lend has the hub serve on our listener, until the hub or ctx is gone. The error is the hub's refusal, or ctx's.
func lend(ctx context.Context, l *line, listener *net.TCPListener, ready func()) error {
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
		_, _ = l.in.Next() // it says nothing more: this ends with the hub
	}
	return context.Cause(ctx)
}

// A station is where a process stands towards the hub: it looks for it, and is it when there is none.
type station struct {
	o     Options
	place place
	found bool // others can find the place
	// leading waits for the hub that this process became behind its own client; fault is how that ended.
	leading sync.WaitGroup
	hub     *hub
	fault   error
}

func newStation(o Options) (*station, error) {
	store, err := gateway.StorePlace(o.Config)
	if err != nil {
		return nil, err
	}
	s := &station{o: o}
	s.place, s.found, err = placeOf(store, o.Config.LookupEnv)
	return s, err
}

// The pauses between attempts to find a hub, or become it, and how long that may take in all: the end of one that closes
// its servers in good order.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
	reachTime  = 20 * time.Second
)

// reach finds the hub and says what is wanted of it, or gives the lease to be it; nil for one that nobody can find. The
// error is a *drawbridge.Fault, or ctx's.
func (s *station) reach(ctx context.Context, said hello) (*line, *lease, error) {
	if !s.found {
		return nil, nil, nil
	}
	limit := time.NewTimer(reachTime)
	defer limit.Stop()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if err := context.Cause(ctx); err != nil {
			return nil, nil, err
		}
		l, err := s.call(ctx, said)
		if err == nil || !errors.Is(err, errNone) {
			return l, nil, err
		}
		lease, err := s.place.take()
		if err == nil {
			return nil, lease, nil
		}
		if !errors.Is(err, errTaken) {
			dir := filepath.Dir(s.place.file)
			return nil, nil, unreached(err, fmt.Sprintf("see that %s can be written and the disk has room, or name another place with --store", dir))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		case <-limit.C:
			return nil, nil, unreached(errors.New("it does not answer"), "drawbridge ps")
		}
	}
}

// call says what is wanted of the hub that there is. The error is errNone where there is none, or ctx's.
func (s *station) call(ctx context.Context, said hello) (*line, error) {
	conn, err := s.place.dial()
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	l, err := said.greet(conn)
	if err != nil {
		_ = conn.Close()
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	return l, nil
}

func unreached(err error, next string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.Transient, Step: "find the hub", Err: err, Next: next,
	}
}

// leadWith is the hub's life in the process of its own client, who is served as guests are: what the hub stands on is there
// until the client is gone.
func (s *station) leadWith(ctx context.Context, l *lease, own func(context.Context, *hub) error) error {
	var fault error
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := lead(ctx, s.o, l, func(h *hub) {
		h.work.Go(func() {
			defer h.drop()
			fault = own(ctx, h)
		})
	})
	return errors.Join(fault, err)
}

// serveOwn serves our own client at the hub.
func (h *hub) serveOwn(ctx context.Context, said hello, serve func(context.Context, *guest) error) error {
	g, err := h.enter(ctx, said, nil)
	if err != nil {
		return err
	}
	defer h.leave(g)
	if h.o.Beside != nil {
		beside, stop := context.WithCancel(ctx)
		var work sync.WaitGroup
		work.Go(func() { h.o.Beside(beside, g.tenant.g) })
		defer work.Wait()
		defer stop()
	}
	return serve(ctx, g)
}

// attach finds the next hub, and becomes it where nobody else does: then our client is a guest like any other.
func (s *station) attach(ctx context.Context, said hello) (*line, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		l, lease, err := s.reach(ctx, said)
		if l != nil || err != nil {
			return l, err
		}
		s.leading.Wait() // a hub of ours that ended
		begun := make(chan *hub, 1)
		s.leading.Go(func() {
			defer close(begun)
			s.fault = lead(ctx, s.o, lease, func(h *hub) { begun <- h })
		})
		if s.hub = <-begun; s.hub == nil {
			s.leading.Wait()
			return nil, s.fault
		}
	}
}

// end waits for the hub that this process became: it lives on while others need it.
func (s *station) end() error {
	if s.hub != nil {
		s.hub.drop()
	}
	s.leading.Wait()
	return s.fault
}
