//go:build !nomcp

package attack

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// TestHostileServers has a server of every misdeed, over each transport, beside an honest one: rows HS-1 to HS-28.
// What comes of it is said, the honest one answers all the while, and when the gateway is closed there is no process
// and no goroutine of either.
func TestHostileServers(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { // after all of them
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
	})
	var raided []mcptest.Misbehaviour
	for _, r := range raids() {
		raided = append(raided, r.does)
		for _, over := range []string{"stdio", "HTTP"} {
			if r.only != "" && r.only != over {
				continue
			}
			t.Run(r.name+" over "+over, func(t *testing.T) {
				t.Parallel()
				r.run(t, over)
			})
		}
	}
	slices.Sort(raided)
	if diff := cmp.Diff(mcptest.Misbehaviours(), slices.Compact(raided)); diff != "" {
		t.Errorf("not every misdeed has a raid:\n%s", diff)
	}
}

func (r raid) run(t *testing.T, over string) {
	good := mcptest.NewServer(t, mcptest.Tool{Name: "echo"})
	if r.does == mcptest.HugeLine && over == "HTTP" {
		r.size = 1 << 20 // the bound is that of an event, and higher
	}
	bad := mcptest.NewHostileServer(t, r.does, r.size, r.parts...)
	row, want := bad.Stdio("bad"), r.call
	if over == "HTTP" {
		row = bad.HTTP("bad")
		if r.web != "" {
			want = r.web
		}
	}
	if row.Timeout = patience; want == tooLate {
		row.Timeout = 300 * time.Millisecond
	}
	c := gateway.Config{Servers: serversOf(good.Stdio("good"), row)}
	if r.does == mcptest.Poison {
		c.Shield.Threshold = -1 // else nobody calls it: so much poison at once ends all trust
	}
	h := openWith(t, c)
	if _, err := h.Mount(t.Context(), "good"); err != nil {
		t.Fatal(err)
	}
	leave := h.neighbour()
	if r.does == mcptest.Hang {
		eventually(t, "bad is never asked", func() bool { return len(bad.Requests()) > 0 })
		if p := h.statusOf("bad").Phase; p != drawbridge.Connecting {
			t.Errorf("it is %v", p)
		}
	} else {
		eventually(t, "bad is never mounted", func() bool {
			return slices.Contains([]drawbridge.ServerPhase{drawbridge.Ready, drawbridge.Faulted},
				h.statusOf("bad").Phase)
		})
		h.raided(want)
		h.told(r.told)
	}
	leave()
	h.stop()
	good.AwaitProcesses(0)
	bad.AwaitProcesses(0)
}

// raided calls the hostile server.
func (h *house) raided(want string) {
	h.t.Helper()
	result, err := h.call(h.t.Context(), `{"name":"bad__echo","arguments":`+echo+`}`)
	got := textOf(result)
	switch {
	case want == "-" && (err == nil || strings.Contains(err.Error(), "waits for a person")):
	case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
		h.t.Errorf("the call ends with %v, want %.100q", err, want)
	case err == nil && got != want && (want != "" || got != echo):
		h.t.Errorf("the call is answered with %.200s, want %.100q", result, want)
	}
}

// told waits until people are told of the hostile server what they should be.
func (h *house) told(want string) {
	h.t.Helper()
	if want == "-" {
		return
	}
	if s := h.statusOf("bad"); want == "" {
		if len(s.Notes) > 0 || s.Fault != "" && s.Phase == drawbridge.Ready {
			h.t.Errorf("people are told %q and %q", s.Fault, s.Notes)
		}
		return
	}
	eventually(h.t, "people are not told "+want, func() bool {
		s := h.statusOf("bad")
		return slices.ContainsFunc(append(s.Notes, s.Fault),
			func(said string) bool { return strings.HasPrefix(said, want) })
	})
}

// neighbour calls the honest server again and again, until it leaves: every call must be answered.
func (h *house) neighbour() (leave func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			result, err := h.call(h.t.Context(), `{"name":"good__echo","arguments":`+echo+`}`)
			if textOf(result) != echo || err != nil {
				h.t.Errorf("the honest server's call ends with %s, %v", result, err)
				return
			}
			select {
			case <-over:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() { close(over); <-done }
}
