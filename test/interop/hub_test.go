//go:build peers

package interop

import (
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
)

// TestTenServes runs ten clients, each with a "drawbridge serve" of its own, on five of npm's servers: five processes.
// Then the hub is killed, a shim, and a server, and every other client goes on where it was.
func TestTenServes(t *testing.T) {
	rows, probes := five(t)
	first := serveCommand(t, rows)
	home := first.Dir
	clients := map[int]*caller{}
	var order []int
	for range 10 {
		c, pid := serveAgain(t, first, nil)
		for _, p := range probes {
			probe(t, c, p)
		}
		clients[pid] = c
		order = append(order, pid)
	}
	s := hubOf(t, home, func(s hub.State) bool { return len(s.Clients) == 10 })
	if pids := processes(s); len(pids) != len(rows) {
		t.Errorf("ten clients of %d servers have processes %v", len(rows), pids)
	}
	kill := func(pid int) {
		t.Helper()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	shim := order[len(order)-1]
	kill(s.PID)
	kill(shim)
	for _, pid := range order {
		if pid == s.PID || pid == shim {
			continue
		}
		for _, p := range probes {
			probe(t, clients[pid], p)
		}
	}
	now := hubOf(t, home, func(s hub.State) bool { return len(s.Clients) == 8 })
	pids := processes(now)
	if len(pids) != len(rows) {
		t.Errorf("after the hub was killed the servers have processes %v", pids)
	}
	kill(pids[0])
	for _, p := range probes {
		probe(t, clients[now.PID], p)
	}
	old := processes(s)
	hubOf(t, home, func(hub.State) bool {
		return !slices.ContainsFunc(old, func(pid int) bool { return syscall.Kill(pid, 0) == nil })
	})
}

// TestServesThatCanBeAsked runs clients that declare that they can be asked: one process more for each of them, of the
// servers that ask, and of no others.
func TestServesThatCanBeAsked(t *testing.T) {
	rows, probes := five(t)
	first := serveCommand(t, rows)
	able := map[string]any{"roots": map[string]any{}, "elicitation": map[string]any{}}
	const clients = 4
	var all []*caller
	for range clients {
		c, _ := serveAgain(t, first, able)
		all = append(all, c)
	}
	for range 2 { // a server may ask for the first time while the first of them calls it
		for _, c := range all {
			for _, p := range probes {
				probe(t, c, p)
			}
		}
	}
	asking := 0
	hubOf(t, first.Dir, func(s hub.State) bool {
		asking = 0
		for _, one := range s.Servers {
			if one.Asks {
				asking++
			}
		}
		return len(processes(s)) == len(rows)+asking*clients
	})
	if asking != 3 { // both everythings and the filesystem, which want to know the client's roots
		t.Errorf("%d servers ask", asking)
	}
}

// five are npm's servers on standard input and output, one of them twice.
func five(t *testing.T) (rows []row, probes []reference) {
	t.Helper()
	for _, s := range references(t) {
		if s.URL == "" {
			rows, probes = append(rows, s.row), append(probes, s)
		}
	}
	again := probes[0]
	again.Name = "every2"
	return append(rows, again.row), append(probes, again)
}

// serveAgain starts one more "drawbridge serve" like the first, with a client on it.
func serveAgain(t *testing.T, first *exec.Cmd, caps map[string]any) (c *caller, pid int) {
	t.Helper()
	cmd := exec.Command(first.Path, first.Args[1:]...)
	cmd.Dir, cmd.Env = first.Dir, first.Env
	c = enter(t, openStdio(t, cmd, legacy), caps)
	return c, cmd.Process.Pid
}

// probe makes the one call that is known of a server; one that is just coming back is asked again.
func probe(t *testing.T, c *caller, p reference) {
	t.Helper()
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	var answer *message
	for range 300 {
		c.last++
		answer = c.send(message{JSONRPC: "2.0", ID: c.last, Method: "tools/call",
			Params: map[string]any{"name": p.Name + "__" + p.tool, "arguments": p.arguments}})
		var said struct{ IsError bool }
		if answer.Error == nil {
			decode(t, answer.Result, &said)
			if !said.IsError {
				return
			}
		}
		<-pause.C
	}
	t.Fatalf("%s never answered: %s%s", p.Name, answer.Result, answer.Error)
}

// hubOf asks the hub of a home how it is until it is as wanted.
func hubOf(t *testing.T, home string, wanted func(hub.State) bool) hub.State {
	t.Helper()
	o := hub.Options{Config: gateway.Config{Store: filepath.Join(home, "store.db"),
		Paths: []string{filepath.Join(home, "mcp.json")}}}
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	var s hub.State
	var err error
	for range 1500 {
		if s, err = hub.ReadState(o); err == nil && wanted(s) {
			return s
		}
		<-pause.C
	}
	t.Fatalf("the hub never was as wanted: %+v, %v", s, err)
	return s
}

func processes(s hub.State) (pids []int) {
	for _, one := range s.Servers {
		pids = append(pids, one.PIDs...)
	}
	return pids
}
