package upstream

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// gateRun lets starts wait in a gate, and writes down when each of them may begin.
type gateRun struct {
	gate  *startGate
	began time.Time
	work  sync.WaitGroup
	mu    sync.Mutex
	heard []string
}

func newGateRun(free int) *gateRun {
	return &gateRun{gate: &startGate{free: free}, began: time.Now()}
}

// start lets a start wait, which then takes so long.
func (r *gateRun) start(name string, late bool, urgent <-chan struct{}, takes time.Duration) {
	r.work.Go(func() {
		release := r.gate.acquire(context.Background(), urgent, late)
		r.mu.Lock()
		r.heard = append(r.heard, fmt.Sprintf("%v %s", time.Since(r.began), name))
		r.mu.Unlock()
		<-time.After(takes)
		release()
	})
	synctest.Wait()
}

func (r *gateRun) want(t *testing.T, want ...string) {
	t.Helper()
	r.work.Wait()
	if diff := cmp.Diff(want, r.heard); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.gate.free != 1 || r.gate.calls != 0 || len(r.gate.waiting) != 0 {
		t.Errorf("the gate is left with %+v", r.gate)
	}
}

func TestStartsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGateRun(1)
		r.start("first", false, nil, 30*time.Millisecond)
		r.start("failed before", true, nil, 10*time.Millisecond)
		r.start("dead", false, nil, time.Hour)
		r.start("last", false, nil, 10*time.Millisecond)
		r.want(t, "0s first", "30ms dead", "130ms last", "140ms failed before")
	})
}

func TestStartsGiveWayToACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGateRun(1)
		end := r.gate.delayForCall()
		called := make(chan struct{})
		r.start("in the background", false, nil, 0)
		r.start("called", false, called, 0)
		close(called)
		<-time.After(20 * time.Millisecond)
		end()
		synctest.Wait()
		endDead := r.gate.delayForCall() // a call that waits for a dead server
		r.start("behind a dead server", false, nil, 0)
		r.work.Wait()
		endDead()
		r.want(t, "0s called", "20ms in the background", "520ms behind a dead server")
	})
}

func TestAStartThatIsNotWantedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newGateRun(1)
		r.start("first", false, nil, 10*time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.gate.acquire(ctx, nil, false)()
		r.start("second", false, nil, 0)
		r.want(t, "0s first", "10ms second")
	})
}
