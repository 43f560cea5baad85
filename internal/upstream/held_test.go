package upstream

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/google/go-cmp/cmp"
)

// heldRow is a row of a second server of a rig.
var heldRow = config.Server{ID: "held", Command: "fake", Type: "stdio", Hash: "other", Enabled: true}

func TestAHeldServerStartsWhenItIsNeeded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		act    func(r *rig) error
		starts bool
	}{
		{"nothing", func(*rig) error { return nil }, false},
		{"a watch of nothing", func(r *rig) error { return r.Watch(r.t.Context(), "held", drawbridge.WatchSet{}) },
			false},
		{"a listing", func(r *rig) error {
			connected, err := r.Relist(r.t.Context(), "held")
			if connected {
				r.t.Error("it is connected")
			}
			return err
		}, false},
		{"a call", func(r *rig) error {
			_, err := r.Do(r.t.Context(), "held", echo(caller(drawbridge.Legacy)))
			return err
		}, true},
		{"a mount", func(r *rig) error { _, err := r.Mount(r.t.Context(), "held"); return err }, true},
		{"a watch", func(r *rig) error {
			return r.Watch(r.t.Context(), "held", drawbridge.WatchSet{URIs: []string{"r://1"}})
		}, true},
		{"its release", func(r *rig) error { r.Release("held"); return nil }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newFake(), Options{})
				if err := r.Hold(heldRow); err != nil {
					t.Fatal(err)
				}
				if err := r.Add(heldRow); err == nil {
					t.Error("a second server has its name")
				}
				if err := tt.act(r); err != nil {
					t.Error(err)
				}
				r.Release("no such server")
				synctest.Wait()
				if got := len(r.fake.dialled()) == 2; got != tt.starts {
					t.Errorf("it started: %v, want %v", got, tt.starts)
				}
			})
		})
	}
}

func TestAHeldServerIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		if err := r.Hold(heldRow); err != nil {
			t.Fatal(err)
		}
		gone, err := r.Remove("held")
		if err != nil {
			t.Fatal(err)
		}
		<-gone
		r.Release("held")
		if _, err := r.Do(t.Context(), "held", echo(caller(drawbridge.Legacy))); drawbridge.AsFault(
			err).Code != drawbridge.NotFound {
			t.Errorf("a call of a removed server: %v", err)
		}
	})
}

// endings notes how calls ended.
type endings struct{ calls []string }

func (e *endings) CallEnded(id drawbridge.ServerID, call drawbridge.Call, _ drawbridge.Result, err error) {
	e.calls = append(e.calls, fmt.Sprintf("%s %s %t", call.Method, id, err == nil))
}

func TestObserversAreToldOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen endings
		r := newRig(t, newFake(), Options{FleetOptions: FleetOptions{CallObservers: []CallObserver{&seen}}})
		r.call(echo(caller(drawbridge.Legacy)))
		_, _ = r.Do(t.Context(), "other", echo(caller(drawbridge.Legacy)))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = r.Do(ctx, "fake", echo(caller(drawbridge.Legacy)))
		if diff := cmp.Diff([]string{"tools/call fake true", "tools/call other false"}, seen.calls); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestACallWaitsForTheFleetToRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := NewFleet(t.Context(), []config.Server{{ID: "fake", Command: "fake", Type: "stdio"}},
			Options{Principal: owner})
		if err != nil {
			t.Fatal(err)
		}
		f.pool.dial = newFake().dial
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		time.AfterFunc(time.Second, func() { ended <- f.Run(ctx) })
		began := time.Now()
		if _, err := f.Do(t.Context(), "fake", echo(caller(drawbridge.Legacy))); err != nil ||
			time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_, err = f.Do(t.Context(), "fake", echo(caller(drawbridge.Legacy)))
		if drawbridge.AsFault(err).Code != drawbridge.Transient {
			t.Errorf("a call after the end: %v", err)
		}
	})
}
