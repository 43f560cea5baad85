//go:build bench

package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
)

// shim is what a client pays for it that another process is the hub.
func shim(t *testing.T) []line {
	config, store := configure(t, onStdio("up", self(t)))
	a := arena{t, 1, false, small}
	hub := start(t, serve(config, store))
	own := a.child("hub's own door", hub, "up__")
	cmd := serve(config, store)
	cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	through := a.child("through a shim", start(t, cmd), "up__")
	relay := a.child(relayHands, start(t, role(t, "relay", "hands", self(t))), "")
	r := latencies(t, rounds(), calls(500), &own, &through, &relay)
	added := r.ratio("64-byte call, added by a shim", &through, &own, 60)
	added.value, added.format = median(minus(r.of(&through).p50, r.of(&own).p50)), "%.0f µs"
	return held([]line{added, attaching(t, config, store)})
}

// attaching is how long a shim takes to attach: from exec to the first answer, without what any exec takes.
func attaching(t *testing.T, config, store string) line {
	var shims, execs []float64
	for range rounds() {
		began := time.Now()
		p := start(t, serve(config, store))
		if _, err := p.stdio().call(toolsList("")); err != nil {
			t.Fatal(err)
		}
		shims = append(shims, float64(time.Since(began))/float64(time.Millisecond))
		p.stop()
		cmd := serve(config, store)
		cmd.Args = []string{cmd.Args[0], "version"}
		began = time.Now()
		p = start(t, cmd)
		if _, err := p.out.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		execs = append(execs, float64(time.Since(began))/float64(time.Millisecond))
		p.stop()
	}
	return line{
		what: "exec of a shim to the first list, less a bare exec", subject: fmt.Sprintf("shim %.1f ms", median(shims)),
		control: fmt.Sprintf("drawbridge version %.1f ms", median(execs)), value: median(minus(shims, execs)), bar: 10,
		format: "%.1f ms", timed: true,
	}
}

// tenServes is what ten clients with five servers cost, each with a "serve" of its own. The servers are of the stateful
// generation, as those are that people have.
func tenServes(t *testing.T) []line {
	const serves, servers = 10, 5
	rows := make([]server, servers)
	for i := range rows {
		rows[i] = onStdio(fmt.Sprintf("s%d", i), self(t), "stateful")
	}
	config, store := configure(t, rows...)
	for range serves {
		c := start(t, serve(config, store)).stdio()
		for i := range rows {
			mounted(t, c, small(fmt.Sprintf("s%d__", i)))
		}
	}
	s, err := hub.ReadState(hub.Options{Config: gateway.Config{Store: store, Paths: []string{config}}})
	if err != nil || len(s.Clients) != serves {
		t.Fatalf("%d clients, %v", len(s.Clients), err)
	}
	const mb = 1 << 20
	processes, shims := 0, 0.0
	for _, one := range s.Servers {
		processes += len(one.PIDs)
	}
	for _, c := range s.Clients {
		if c.PID != s.PID {
			shims = max(shims, float64(c.Memory)/mb)
		}
	}
	return held([]line{
		{what: "ten serves, five servers: processes of servers", subject: fmt.Sprintf("%d serves", len(s.Clients)),
			value: float64(processes), bar: servers, format: "%.0f"},
		{what: "ten serves, five servers: memory of the hub", subject: "resident", value: float64(s.Memory) / mb,
			bar: 40, format: "%.1f MB"},
		{what: "ten serves, five servers: memory of a shim", subject: "the largest", value: shims, bar: 25,
			format: "%.1f MB"},
	})
}
