package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAMountIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		if err := r.AwaitFirstAttempt(t.Context(), "fake"); err != nil {
			t.Fatal(err)
		}
		r.end()
		want := []string{"connecting", "attempt", "listing", "ready", "closing", "closed"}
		if diff := cmp.Diff(want, r.mem.all()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestASlowStartIsRemembered: a start that takes long goes on and is a fault meanwhile, also for the next process.
func TestASlowStartIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, answers := newFake(), make(chan struct{})
		fake.on(mcp.MethodInitialize, func(*fakeConn, mcp.Message) string { <-answers; return "" })
		fake.on(mcp.MethodDiscover, func(*fakeConn, mcp.Message) string { <-answers; return "" })
		defer close(answers)
		r := newRig(t, fake, Options{})
		r.later(7 * time.Second)
		if s := r.Status()[0]; s.Phase != drawbridge.Connecting || s.Fault != "" {
			t.Errorf("after 7 s: %+v", s)
		}
		r.later(2 * time.Second)
		s := r.Status()[0]
		if want := "mount fake: start: it did not answer within 8s; the start goes on"; s.Phase != drawbridge.Connecting ||
			s.Fault != want {
			t.Errorf("after 9 s: %+v", s)
		}
		r.end()
		want := []string{"connecting", "attempt", "connecting", "faulted"}
		if diff := cmp.Diff(want, r.mem.all()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestIdleServersStopAndStartAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{IdleStop: 10 * time.Minute})
		r.later(9 * time.Minute)
		r.call(echo(caller(drawbridge.Legacy)))
		r.later(9 * time.Minute)
		if r.fake.open() != 1 || r.phase() != drawbridge.Ready {
			t.Errorf("it was called: %s, %d connections", r.phase(), r.fake.open())
		}
		r.later(2 * time.Minute)
		if s := r.Status()[0]; r.fake.open() != 0 || s.Phase != drawbridge.Idle || s.Cards != 1 || s.Fault != "" {
			t.Errorf("it was not called: %+v, %d connections", s, r.fake.open())
		}
		r.call(echo(caller(drawbridge.Legacy)))
		synctest.Wait()
		if r.fake.open() != 1 || r.phase() != drawbridge.Ready || r.mem.listCount() != 2 {
			t.Errorf("it was called again: %s, %d connections, %d listings", r.phase(), r.fake.open(),
				r.mem.listCount())
		}
	})
}

func TestALongCallIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{IdleStop: time.Minute, CallTimeout: time.Hour})
		r.fake.on(mcp.MethodToolsCall, func(*fakeConn, mcp.Message) string {
			<-time.After(30 * time.Minute)
			return `{"content":[]}`
		})
		r.call(echo(caller(drawbridge.Legacy)))
		r.later(2 * time.Minute)
		if r.phase() != drawbridge.Idle {
			t.Errorf("after the call it is %s", r.phase())
		}
	})
}

func TestWhoIsWatchedOrSaysNeverDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{IdleStop: time.Minute})
		if err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: []string{"a:b"}}); err != nil {
			t.Fatal(err)
		}
		r.later(time.Hour)
		if r.phase() != drawbridge.Ready {
			t.Errorf("it is watched, and is %s", r.phase())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{IdleStop: time.Minute}, func(row *config.Server) { row.IdleStop = -1 })
		r.later(100 * time.Hour)
		if r.phase() != drawbridge.Ready {
			t.Errorf("its row says never, and it is %s", r.phase())
		}
	})
}

func TestListChangesAreCoalescedAndTheLastIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		began := time.Now()
		var listed []time.Duration
		r.fake.on(mcp.MethodToolsList, func(*fakeConn, mcp.Message) string {
			listed = append(listed, time.Since(began))
			return `{"tools":[]}`
		})
		for range 100 { // ten seconds of changes
			r.fake.last().note(mcp.NoteToolsChanged, "{}")
			r.later(100 * time.Millisecond)
		}
		r.later(time.Minute)
		want := []time.Duration{0, 5 * time.Second, 10 * time.Second}
		if diff := cmp.Diff(want, listed); diff != "" {
			t.Error(diff)
		}
		if n := r.mem.listCount(); n != 4 {
			t.Errorf("%d listings were passed on, want 4", n)
		}
	})
}

func TestReconnectBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{IdleStop: -1})
		r.later(time.Hour)
		r.fake.set(errors.New("no such program"))
		lost := time.Now()
		r.fake.last().die()
		r.later(10 * time.Minute)
		dials := r.fake.dialled()[1:]
		least, most := 500*time.Millisecond, 60*time.Second
		for i, at := range dials {
			pause := at.Sub(lost)
			if pause < least*3/4 || pause > least*5/4 {
				t.Errorf("attempt %d came %v after the one before, want about %v", i, pause, least)
			}
			lost, least = at, min(2*least, most)
		}
		if r.phase() != drawbridge.Faulted || !strings.Contains(r.Status()[0].Fault, "no such program") {
			t.Errorf("%+v", r.Status()[0])
		}
		r.fake.set(nil)
		r.later(80 * time.Second)
		if r.phase() != drawbridge.Ready || r.mem.listCount() != 2 {
			t.Errorf("it is back: %s, %d listings", r.phase(), r.mem.listCount())
		}
	})
}

func TestACallBringsAServerBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{IdleStop: -1})
		r.later(time.Hour)
		r.fake.set(errors.New("no such program"))
		r.fake.last().die()
		synctest.Wait()
		f := r.fault(echo(caller(drawbridge.Legacy)))
		want := "call echo on fake: server fake is unavailable: mount fake: connect: no such program (retry)"
		if f.Error() != want || f.Code != drawbridge.Transient || f.Ambiguous {
			t.Errorf("got %v, %+v", f, f)
		}
		before := len(r.fake.dialled())
		r.fault(echo(caller(drawbridge.Legacy)))
		if n := len(r.fake.dialled()); n != before {
			t.Errorf("the last attempt was just now, and there was another: %d, then %d", before, n)
		}
		r.later(10 * time.Minute) // into the long pauses
		if dials := r.fake.dialled(); time.Since(dials[len(dials)-1]) < recentFailureWindow {
			r.later(recentFailureWindow) // it was tried in this moment
		}
		r.fake.set(nil)
		began := time.Now()
		r.call(echo(caller(drawbridge.Legacy)))
		if took := time.Since(began); took != 0 {
			t.Errorf("the call waited %v", took)
		}
	})
}

func TestOneBadServerCostsTheOthersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		hang := newFake()
		for _, method := range []string{mcp.MethodInitialize, mcp.MethodDiscover} {
			hang.on(method, always(""))
		}
		good := r.pool.dial
		r.pool.dial = func(ctx context.Context, s *session, sse bool) error {
			if s.server.config.ID == "hang" {
				return hang.dial(ctx, s, sse)
			}
			return good(ctx, s, sse)
		}
		if err := r.Add(config.Server{ID: "hang", Command: "hang", Hash: "hang", Phase: drawbridge.Idle}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err := r.Mount(t.Context(), "hang")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the mount took %v", took)
		}
		if want := "mount hang: connect: timeout: no answer within 1m0s ([mcp] connect_timeout)"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		r.call(echo(caller(drawbridge.Legacy)))
		gone, err := r.Remove("hang")
		if err != nil {
			t.Fatal(err)
		}
		<-gone
		if n := hang.open(); n != 0 {
			t.Errorf("%d connections are open after the removal", n)
		}
		if f := new(drawbridge.Fault); !errors.As(r.AwaitFirstAttempt(t.Context(), "hang"), &f) ||
			f.Code != drawbridge.NotFound {
			t.Errorf("a removed server: %v", f)
		}
	})
}

func TestOnDemandNothingStartsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{OnDemand: true, IdleStop: -1})
		r.later(time.Hour)
		if n := len(r.fake.dialled()); n != 0 || r.phase() != drawbridge.Idle {
			t.Fatalf("%d dials, %s", n, r.phase())
		}
		l, err := r.Mount(t.Context(), "fake")
		if err != nil || len(l.Tools) != 1 {
			t.Errorf("%+v, %v", l, err)
		}
		r.fake.set(errors.New("gone"))
		r.fake.last().die()
		r.later(time.Hour)
		if n := len(r.fake.dialled()); n != 1 || r.phase() != drawbridge.Faulted {
			t.Errorf("%d dials, %s", n, r.phase())
		}
		r.fake.set(nil)
		r.call(echo(caller(drawbridge.Legacy)))
	})
}

func TestWhatIsRememberedIsKnownBeforeAnythingStarts(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	known := map[string]drawbridge.Listing{
		"h": {Server: "a", ConfigHash: "h", Era: drawbridge.Legacy, Tools: []json.RawMessage{[]byte(echoDefinition)},
			ListedAt: at},
	}
	f, err := NewFleet(t.Context(), []config.Server{{ID: "a", Command: "a", Type: "stdio", Hash: "h"},
		{ID: "b", URL: "http://b",
			Type: "http", Hash: "changed"}}, Options{FleetOptions: FleetOptions{KnownListings: known}})
	if err != nil {
		t.Fatal(err)
	}
	want := []drawbridge.ServerStatus{
		{Server: "a", Phase: drawbridge.Idle, Transport: "stdio", Era: "legacy", Cards: 1, Listed: at},
		{Server: "b", Phase: drawbridge.Idle, Transport: "http", Era: "unknown"},
	}
	if diff := cmp.Diff(want, f.Status(), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsRecalledIsKnownOfServersThatCome(t *testing.T) {
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	f, err := NewFleet(t.Context(), nil,
		Options{FleetOptions: FleetOptions{KnownListings: map[string]drawbridge.Listing{"old": {Server: "a",
			ConfigHash: "old", Era: drawbridge.Modern}}}})
	if err != nil {
		t.Fatal(err)
	}
	f.SetRemembered(map[string]drawbridge.Listing{"h": {Server: "a", ConfigHash: "h", Era: drawbridge.Legacy,
		ListedAt: at}}, map[string]drawbridge.ServerStatus{"i": {Fault: "it died"}})
	for id, hash := range map[drawbridge.ServerID]string{"a": "h", "b": "i", "c": "old"} {
		if err := f.Add(config.Server{ID: id, Command: "x", Type: "stdio", Hash: hash}); err != nil {
			t.Fatal(err)
		}
	}
	got := map[drawbridge.ServerID]string{}
	for _, s := range f.Status() {
		got[s.Server] = s.Era + s.Fault
	}
	if diff := cmp.Diff(map[drawbridge.ServerID]string{"a": "legacy", "b": "unknownit died", "c": "unknown"},
		got); diff != "" {
		t.Error(diff)
	}
}

func TestAFleetThatDoesNotRunSaysSo(t *testing.T) {
	f, err := NewFleet(t.Context(), []config.Server{{ID: "a", Command: "a", Phase: drawbridge.Idle}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // otherwise they would wait
	_, err = f.Do(ctx, "a", echo(caller(drawbridge.Legacy)))
	if want := "the gateway does not run: context canceled"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := f.Mount(ctx, "a"); err == nil {
		t.Error("it was mounted")
	}
	if err := f.Watch(ctx, "a", drawbridge.WatchSet{URIs: []string{"x:y"}}); err == nil {
		t.Error("it is watched")
	}
	f.EndSession("s")
	if err := f.SetLogLevel(t.Context(), "", "info"); err != nil {
		t.Error(err)
	}
}

func TestNewRefusesWhatNoConfigurationGives(t *testing.T) {
	row := config.Server{ID: "a", Command: "a", Phase: drawbridge.Idle}
	unapproved := row
	unapproved.Phase = drawbridge.NeedsApproval
	for _, tt := range []struct {
		name string
		rows []config.Server
		o    Options
	}{
		{"a name twice", []config.Server{row, row}, Options{}},
		{"a row nobody approved", []config.Server{unapproved}, Options{}},
		{"a bad name", []config.Server{{ID: "a__b"}}, Options{}},
		{"a time below zero", []config.Server{row}, Options{CallTimeout: -1}},
	} {
		if _, err := NewFleet(t.Context(), tt.rows, tt.o); err == nil {
			t.Errorf("%s was accepted", tt.name)
		}
	}
}

// A stuckMemory records no attempt before the end.
type stuckMemory struct{ *memory }

func (m stuckMemory) RecordAttempt(ctx context.Context, _ string, _ drawbridge.ServerID) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestAnEndWhileAServerStartsIsQuiet: what was not done since everything ends is no news.
func TestAnEndWhileAServerStartsIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		row := config.Server{ID: "fake", Command: "fake", Type: "stdio", Hash: "hash", Enabled: true,
			Phase: drawbridge.Idle}
		fleet, err := NewFleet(t.Context(), []config.Server{row}, Options{MountStore: stuckMemory{&memory{}},
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		fleet.pool.dial = newFake().dial
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- fleet.Run(ctx) }()
		synctest.Wait()
		end()
		if err := <-done; err != nil || log.Len() > 0 {
			t.Errorf("%v, and it logged: %s", err, log.String())
		}
	})
}
