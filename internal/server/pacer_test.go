package server

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

func clientNamed(name string) clientKey {
	return clientKeyOf(drawbridge.Caller{Transport: drawbridge.StdioTransport, Principal: "ada", Session: name})
}

// TestManyCallsOfOneClientDoNotDelayAnother: a client that has 32 callers has one turn while another client is active.
// The backend takes one call at a time, so without turns the other's call would wait for 32.
func TestManyCallsOfOneClientDoNotDelayAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const service = 10 * time.Millisecond
		p, backend := &CallPacer{}, make(chan struct{}, 1)
		call := func(ctx context.Context, client string) time.Duration {
			began := time.Now()
			leave, err := p.enter(ctx, clientNamed(client))
			if err != nil {
				return 0
			}
			defer leave()
			backend <- struct{}{}
			<-time.After(service)
			<-backend
			return time.Since(began)
		}
		ctx, stop := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		for range 32 {
			busy.Go(func() {
				for ctx.Err() == nil {
					call(ctx, "busy")
				}
			})
		}
		<-time.After(time.Second)
		for range 4 { // the backend answers the calls that began while the busy client was alone
			call(t.Context(), "other")
			<-time.After(100 * time.Millisecond)
		}
		for i := range 20 {
			if took := call(t.Context(), "other"); took > 2*service {
				t.Errorf("call %d took %v", i, took)
			}
			<-time.After(30 * time.Millisecond)
		}
		stop()
		busy.Wait()
		if len(p.clients) > 0 {
			t.Errorf("%d clients are kept", len(p.clients))
		}
	})
}

func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &CallPacer{}
		began := time.Now()
		enter := func(client string) (leave func(), at time.Duration) {
			leave, err := p.enter(t.Context(), clientNamed(client))
			if err != nil {
				t.Fatal(err)
			}
			return leave, time.Since(began)
		}
		var got []time.Duration
		for range 3 { // alone
			_, at := enter("a")
			got = append(got, at)
		}
		_, at := enter("b") // its first
		got = append(got, at)
		_, at = enter("a") // a has three calls that go on, the last as young as can be
		got = append(got, at)
		leave, at := enter("a") // they take long: each has its 20 ms
		got = append(got, at)
		leave()
		_, at = enter("a") // the last was answered, and those before it are not young
		got = append(got, at)
		want := []time.Duration{0, 0, 0, 0, 20 * time.Millisecond, 40 * time.Millisecond, 40 * time.Millisecond}
		want[6] = got[6]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("calls began (-want +got):\n" + diff)
		}
		<-time.After(time.Second)
		_, at = enter("a") // b is not active any more
		if at != got[6]+time.Second {
			t.Errorf("alone again it began at %v", at)
		}
	})
}

func TestACallThatIsCancelledInItsQueueLeavesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &CallPacer{}
		leaveB, err := p.enter(t.Context(), clientNamed("b"))
		if err != nil {
			t.Fatal(err)
		}
		leaveA, err := p.enter(t.Context(), clientNamed("a"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.enter(ctx, clientNamed("a")); err == nil {
			t.Error("a cancelled call began")
		}
		leaveA()
		leaveB()
		if len(p.clients) > 0 {
			t.Errorf("%d clients are kept", len(p.clients))
		}
	})
}
