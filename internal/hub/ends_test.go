//go:build unix

package hub

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// aLease gives the right to be the hub of a store of the test's own.
func aLease(t *testing.T) (*hubFinder, *hubLease) {
	t.Helper()
	o := Options{Config: gateway.Config{Store: filepath.Join(t.TempDir(), "store.db"), LookupEnv: func(string) (string,
		bool) {
		return "", false
	}}}
	s, err := newHubFinder(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.file.acquire()
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

// aHub gives a hub that nobody can find, whose ground nothing runs on.
func aHub(t *testing.T) *hub {
	t.Helper()
	o := Options{Config: gateway.Config{Store: gateway.MemoryStore, LookupEnv: func(string) (string,
		bool) {
		return "", false
	}}}
	ground, err := gateway.OpenShared(t.Context(), o.Config)
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{o: o, log: o.logger(), shared: ground, refs: 1, ended: make(chan struct{}),
		newClients: make(chan struct{}, 1)}
	t.Cleanup(func() {
		h.closeGateways()
		h.gatewayRuns.Wait()
		if err := ground.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// socketPair gives the two ends of a connection.
func socketPair(t *testing.T) (ours, theirs *lineConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var ends [2]*lineConn
	dialled, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	for i, conn := range []*net.UnixConn{dialled, accepted} {
		t.Cleanup(func() { _ = conn.Close() })
		ends[i] = &lineConn{conn: conn, in: mcp.NewLineReader(conn, 0)}
	}
	return ends[0], ends[1]
}

// TestTheHubsOwnClientHasTheStoreToItsEnd interrupts a hub whose own client is being let in.
func TestTheHubsOwnClientHasTheStoreToItsEnd(t *testing.T) {
	s, l := aLease(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	err := s.runHubWith(ctx, l, func(ctx context.Context, h *hub) error {
		interrupt()
		<-ctx.Done()
		for range 100 { // as long as it takes to end a hub
			if _, err := h.shared.LoadConfig(context.WithoutCancel(ctx), s.o.Config); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAnInterruptEndsTheSearchForAHub: who is told to end while the hub does not answer does so at once, and has not
// failed.
func TestAnInterruptEndsTheSearchForAHub(t *testing.T) {
	for name, answers := range map[string]bool{"a hub that ends": false, "a hub that is busy": true} {
		t.Run(name, func(t *testing.T) {
			s, l := aLease(t)
			defer l.release()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			if answers {
				go func() {
					conn, err := l.listener.AcceptUnix()
					if err != nil {
						return
					}
					_, _, _ = readHello(conn)
					interrupt()
				}()
			} else {
				l.stopListening()
				interrupt()
			}
			r, w := io.Pipe()
			defer w.Close()
			began := time.Now()
			if err := ServeStdio(ctx, s.o, r, io.Discard); !errors.Is(err, context.Canceled) {
				t.Errorf("serve: %v", err)
			}
			if took := time.Since(began); took > helloTime/2 {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestAHubThatEndsRefusesNobody: whoever comes in the moment in which the hub ends hears nothing, and looks for the
// next hub.
func TestAHubThatEndsRefusesNobody(t *testing.T) {
	h := aHub(t)
	ctx, end := context.WithCancel(t.Context())
	g, err := h.attachClient(ctx, h.o.newHello(wantAttach), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.removeClient(g)
	end()
	for want, receive := range map[string]func(context.Context, hello, *lineConn) error{
		wantAttach: h.serveShim, wantHTTP: h.servePassedListener, wantReload: h.sendReload,
	} {
		ours, theirs := socketPair(t)
		_ = receive(ctx, h.o.newHello(want), theirs) // why it ends is for the log
		_ = theirs.conn.Close()
		text, err := ours.in.Next()
		if want == wantReload && err == nil { // it was welcome
			text, err = ours.in.Next()
		}
		if err == nil {
			t.Errorf("%s: the hub said %s", want, text)
		}
	}
}

// TestAListenerThatTheHubDidNotTake is lent to the next one.
func TestAListenerThatTheHubDidNotTake(t *testing.T) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ours, theirs := socketPair(t)
	_ = theirs.conn.Close()
	if err := passListener(t.Context(), ours, listener, func() { t.Error("it is served") }); err != nil {
		t.Error(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	ours, _ = socketPair(t)
	if err := passListener(ctx, ours, listener, func() { t.Error("it is served") }); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
}

// TestAHubTakesGuestsAgain: that one guest could not be let in, for want of open files, keeps nobody else out.
func TestAHubTakesGuestsAgain(t *testing.T) {
	s, l := aLease(t)
	defer l.release()
	h := aHub(t)
	logged := make(chan string, 100)
	h.log = slog.New(slog.NewTextHandler(writer(func(p []byte) { logged <- string(p) }), nil))
	ctx, end := context.WithCancel(t.Context())
	defer end()
	if err := l.listener.SetDeadline(time.Unix(1, 0)); err != nil { // what goes wrong now goes right later
		t.Fatal(err)
	}
	deaf := make(chan struct{})
	go func() {
		defer close(deaf)
		h.accept(ctx, l.listener)
	}()
	select {
	case <-logged:
	case <-deaf:
		t.Fatal("the hub lets nobody in any more")
	}
	if err := l.listener.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadState(s.o); err != nil {
		t.Error(err)
	}
	h.serving.Wait()
	l.stopListening()
	<-deaf
}

// A writer takes what is logged.
type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

// TestATenantThatEndsBeforeItRunsIsNoNews ends a hub in the moment in which its first guest has come.
func TestATenantThatEndsBeforeItRunsIsNoNews(t *testing.T) {
	h := aHub(t)
	var mu sync.Mutex
	var log strings.Builder
	h.log = slog.New(slog.NewTextHandler(writer(func(p []byte) {
		mu.Lock()
		defer mu.Unlock()
		log.Write(p)
	}), nil))
	for range 20 {
		g, err := h.attachClient(t.Context(), h.o.newHello(wantAttach), nil)
		if err != nil {
			t.Fatal(err)
		}
		h.removeClient(g)
		h.closeGateways()
		h.gatewayRuns.Wait()
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}
