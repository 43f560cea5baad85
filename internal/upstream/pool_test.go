package upstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A shared is two fleets of one pool, each with a row of the same server.
type shared struct {
	t      *testing.T
	pool   *Pool
	fake   *fake
	fleets []*Fleet
	mems   []*memory
	stops  []func()
}

func newShared(t *testing.T, rows ...config.Server) *shared {
	t.Helper()
	fake := newFake()
	p, err := NewPool(t.Context(), Options{Principal: owner})
	if err != nil {
		t.Fatal(err)
	}
	p.dial = fake.dial
	s := &shared{t: t, pool: p, fake: fake}
	end := running(t, p.Run)
	for _, row := range rows {
		mem := &memory{}
		f, err := p.NewFleet([]config.Server{row}, FleetOptions{OnListed: mem.listed})
		if err != nil {
			t.Fatal(err)
		}
		s.fleets, s.mems, s.stops = append(s.fleets, f), append(s.mems, mem), append(s.stops, running(t, f.Run))
		synctest.Wait()
	}
	t.Cleanup(func() {
		for _, stop := range s.stops {
			stop()
		}
		end()
		if n := fake.open(); n != 0 {
			t.Errorf("%d connections are open after the end", n)
		}
	})
	return s
}

// running runs something until stop is called, which waits for it.
func running(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return func() { cancel(); <-done }
}

func fakeRow(change func(*config.Server)) config.Server {
	row := config.Server{ID: "fake", Command: "fake", Type: "stdio", Hash: "hash", Enabled: true,
		Phase: drawbridge.Idle}
	if change != nil {
		change(&row)
	}
	return row
}

func TestEqualRowsAreOneServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t, fakeRow(nil), fakeRow(func(row *config.Server) { row.Origin.Path = "/elsewhere" }))
		if n := len(s.fake.dialled()); n != 1 {
			t.Fatalf("%d connections for two equal rows", n)
		}
		for i, mem := range s.mems {
			if n := len(mem.listings); n != 1 {
				t.Errorf("fleet %d was told %d listings", i, n)
			}
			if _, err := s.fleets[i].Do(t.Context(), "fake", echo(caller(drawbridge.Legacy))); err != nil {
				t.Error(err)
			}
		}
		s.stops[0]()
		synctest.Wait()
		if n := s.fake.open(); n != 1 {
			t.Errorf("%d connections after one of two fleets left", n)
		}
		if _, err := s.fleets[1].Do(t.Context(), "fake", echo(caller(drawbridge.Legacy))); err != nil {
			t.Error(err)
		}
		s.stops[1]()
		if n := s.fake.open(); n != 0 {
			t.Errorf("%d connections after the last fleet left", n)
		}
	})
}

func TestRowsThatDifferAreTwoServers(t *testing.T) {
	for name, change := range map[string]func(*config.Server){
		"a value put in": func(row *config.Server) { row.Env = []config.NameValue{{Name: "TOKEN", Value: "other"}} },
		"a directory":    func(row *config.Server) { row.Cwd = "/elsewhere" },
		"trust":          func(row *config.Server) { row.Trust = "sandboxed" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShared(t, fakeRow(nil), fakeRow(change))
				if n := len(s.fake.dialled()); n != 2 {
					t.Errorf("%d connections", n)
				}
			})
		})
	}
}

func TestAServerIsWatchedForAllWhoShareIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t, fakeRow(nil), fakeRow(nil))
		watch := func(i int, uris ...string) {
			t.Helper()
			if err := s.fleets[i].Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: uris}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		watch(0, "a:", "b:")
		watch(1, "b:")
		watch(0)
		said := func(method string) (uris []string) {
			for _, p := range s.fake.params(method) {
				uris = append(uris, rawjson.GetString(p, "uri"))
			}
			return uris
		}
		if got := said(mcp.MethodUnsubscribe); len(got) != 1 || got[0] != "a:" {
			t.Errorf("unsubscribed from %q while another fleet watches b:", got)
		}
		s.stops[1]()
		synctest.Wait()
		if got := said(mcp.MethodUnsubscribe); len(got) != 2 {
			t.Errorf("unsubscribed from %q after the last fleet that watched left", got)
		}
	})
}

func TestARemovedServerEndsItsCallsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		answer := make(chan struct{})
		r.fake.on(mcp.MethodToolsCall, func(*fakeConn, mcp.Message) string {
			<-answer
			return `{"content":[]}`
		})
		called := make(chan error, 1)
		go func() {
			_, err := r.Do(t.Context(), "fake", echo(caller(drawbridge.Legacy)))
			called <- err
		}()
		synctest.Wait()
		gone, err := r.Remove("fake")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Do(t.Context(), "fake", echo(caller(drawbridge.Legacy))); drawbridge.AsFault(
			err).Code != drawbridge.NotFound {
			t.Errorf("a call after the removal: %v", err)
		}
		r.later(time.Second)
		if isClosed(gone) || r.fake.open() != 1 {
			t.Error("the server ended under a call in flight")
		}
		close(answer)
		if err := <-called; err != nil {
			t.Errorf("the call in flight: %v", err)
		}
		<-gone
		if n := r.fake.open(); n != 0 {
			t.Errorf("%d connections are open after the removal", n)
		}
	})
}

// TestAFleetThatLeftWatchesNothing: what it asks for late is not kept up for it with a server that others have.
func TestAFleetThatLeftWatchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t, fakeRow(nil), fakeRow(nil))
		s.stops[0]()
		if err := s.fleets[0].Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: []string{"a:b"}}); err == nil {
			t.Error("a fleet that left may watch")
		}
		e, err := s.fleets[1].serverByID("fake")
		if err != nil {
			t.Fatal(err)
		}
		if wanted, _ := e.watch.current(); !wanted.IsEmpty() {
			t.Errorf("watched for nobody: %v", wanted)
		}
	})
}
