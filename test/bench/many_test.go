//go:build bench

package bench

import (
	"bytes"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// crowd is how many servers "50 servers" are: fewer in a short run.
func crowd() int {
	if testing.Short() {
		return 6
	}
	return 50
}

// starting is the longest that a whole list may take.
const starting = 2 * time.Minute

// lean are rows of servers in a binary of their own, which has little to start.
func lean(count int) []server {
	rows := make([]server, count)
	for i := range rows {
		rows[i] = server{Name: fmt.Sprintf("s%02d", i), Command: leanUpstream}
	}
	return rows
}

// silent are rows of servers that start and never say a word.
func silent(t testing.TB, count int) []server {
	rows := make([]server, count)
	for i := range rows {
		rows[i] = server{Name: fmt.Sprintf("dead%02d", i), Command: self(t),
			Env: map[string]string{roleVariable: "silent"}}
	}
	return rows
}

// whole asks for the list until it has the tool echo of so many servers, and returns how many of them it has.
func whole(c client, servers int) (listed int, err error) {
	until(starting, func() bool {
		var answer []byte
		if answer, err = c.call(toolsList("").legacy()); err == nil {
			listed = bytes.Count(answer, []byte(`__echo"`))
		}
		return err != nil || listed >= servers
	})
	return listed, err
}

// serverMemory is the memory of all processes of Drawbridge's own with 1, 10 and 50 servers on stdio, which live, or
// which never answer.
func serverMemory(t *testing.T) []line {
	var table []line
	for _, count := range []int{1, 10, 50} {
		for _, dead := range []bool{false, true} {
			kind, rows := "live", lean(min(count, crowd()))
			if dead {
				kind, rows = "dead", silent(t, min(count, crowd()))
			}
			m, servers := ownMemory(t, rows, dead)
			what := fmt.Sprintf("own processes with %d %s stdio servers", count, kind)
			rss := line{what: what + ": resident memory", subject: m.String(), control: fmt.Sprintf(
				"%d processes of servers", servers), value: m.rss, bar: 150, format: "%.0f MB"}
			private := line{what: what + ": private memory", value: m.private, bar: 70, format: "%.0f MB"}
			threads := line{what: what + ": threads", subject: fmt.Sprintf("%d processes", m.processes),
				value: float64(m.threads), bar: threadBar(m.processes, count), format: "%.0f"}
			if count < 50 || dead {
				table = append(table, rss.info())
				continue
			}
			table = append(table, rss, private, threads)
		}
	}
	return table
}

// threadBar is 15 threads and one for each server, or 40 where the servers share their supervisor.
func threadBar(processes, servers int) float64 {
	if processes <= 5 {
		return 40
	}
	return float64(15 + servers)
}

// ownMemory measures once all servers have started, and the process has released what only its start needed.
func ownMemory(t *testing.T, rows []server, dead bool) (m memory, servers int) {
	t.Helper()
	config, store := configure(t, rows...)
	p := start(t, serve(config, store))
	defer p.stop()
	c := &stdioClient{in: p.in, out: p.out}
	if err := c.open(`{}`); err != nil {
		t.Fatal(err)
	}
	if dead {
		until(30*time.Second, func() bool {
			_, of := family(p.cmd.Process.Pid)
			return len(of) >= len(rows)
		})
	} else if listed, err := whole(c, len(rows)); err != nil || listed < len(rows) {
		t.Fatalf("%d of %d servers are listed, %v", listed, len(rows), err)
	}
	rest(2 * time.Second)
	own, of := family(p.cmd.Process.Pid)
	if !dead && len(of) < len(rows) { // of those that never answer some are stopped in between
		t.Errorf("%d of %d servers run", len(of), len(rows))
	}
	return memoryOf(own), len(of)
}

// dual counts the processes of one server that speaks both generations, after a call of a client of each.
func dual(t *testing.T) []line {
	var table []line
	for _, old := range []bool{true, false} {
		config, store := configure(t, lean(1)...)
		p := start(t, serve(config, store))
		arena{t, 1, old, small}.child("client", p, "s00__")
		_, servers := family(p.cmd.Process.Pid)
		l := line{what: "processes of one server of both generations, modern client",
			subject: "after the first call", value: float64(len(servers)), bar: 1, format: "%.0f"}
		if old {
			l.what = "processes of one server of both generations, legacy client"
		}
		table = append(table, l)
	}
	return table
}

// coldList is the time from exec to the whole list of fifty servers that live, with an empty store, beside that of a
// client that starts the same fifty by itself, all at once, and lists each.
func coldList(t *testing.T) []line {
	rows := lean(crowd())
	var ours, direct, used []float64
	for range max(rounds()/3, 1) {
		config, store := configure(t, rows...)
		began := time.Now()
		p := start(t, serve(config, store))
		c := &stdioClient{in: p.in, out: p.out}
		if err := c.open(`{}`); err != nil {
			t.Fatal(err)
		}
		if listed, err := whole(c, len(rows)); err != nil || listed < len(rows) {
			t.Fatalf("%d of %d servers are listed, %v", listed, len(rows), err)
		}
		ours = append(ours, milliseconds(began))
		used = append(used, usageOf(p).since(nil)/1000)
		p.stop()
		direct = append(direct, listDirectly(t, len(rows)))
	}
	return []line{{
		what:    "whole list of 50 live servers, cold ÷ starting and listing them directly",
		subject: fmt.Sprintf("%.0f ms, %.0f ms CPU of our own", median(ours), median(used)),
		control: fmt.Sprintf("%.0f ms", median(direct)), value: ratio(ours, direct), bar: 1.6, format: "%.2f", timed: true,
	}}
}

// listDirectly starts servers at once and returns the milliseconds until the last one is listed.
func listDirectly(t *testing.T, count int) float64 {
	t.Helper()
	errs := make([]error, count)
	processes := make([]*benchProcess, count)
	began := time.Now()
	for i := range processes {
		processes[i] = start(t, exec.Command(leanUpstream))
	}
	var clients sync.WaitGroup
	for i, p := range processes {
		clients.Go(func() {
			c := &stdioClient{in: p.in, out: p.out}
			if errs[i] = c.open(`{}`); errs[i] == nil {
				_, errs[i] = c.call(toolsList("").legacy())
			}
		})
	}
	clients.Wait()
	took := milliseconds(began)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range processes {
		p.stop()
	}
	return took
}

// firstCall is the time from exec to the answer of a legacy client's first call, where the store knows the server, and
// fifty dead ones beside it that were started before.
func firstCall(t *testing.T) []line {
	config, store := configure(t, append(lean(1), silent(t, crowd())...)...)
	r := small("s00__").legacy()
	once := func(servers int) (first, list float64) {
		began := time.Now()
		p := start(t, serve(config, store))
		defer p.stop()
		c := &stdioClient{in: p.in, out: p.out}
		if err := c.open(`{}`); err != nil {
			t.Fatal(err)
		}
		if listed, err := whole(c, 1); err != nil || listed < 1 {
			t.Fatalf("the server is not listed: %v", err)
		}
		list = milliseconds(began)
		var err error
		if !until(starting, func() bool { _, err = c.call(r); return err == nil }) {
			t.Fatal(err)
		}
		first = milliseconds(began)
		if !until(30*time.Second, func() bool {
			_, of := family(p.cmd.Process.Pid)
			return len(of) >= servers
		}) {
			t.Fatalf("not all of %d servers were started", servers)
		}
		return first, list
	}
	once(1 + crowd()) // from now on, the store has the list and knows that the others were started
	var calls, lists, bare []float64
	for range rounds() {
		call, list := once(0)
		calls, lists = append(calls, call), append(lists, list)
		bare = append(bare, directFirstCall(t))
	}
	return []line{{
		what:    "exec to the first call of a legacy client, a start from the store, 50 dead servers beside",
		subject: fmt.Sprintf("call %.0f ms, list %.0f ms", median(calls), median(lists)),
		control: fmt.Sprintf("the server itself %.0f ms", median(bare)), value: median(calls), bar: 120, format: "%.0f ms",
		timed: true,
	}}
}

// directFirstCall is the time from the start of a server to the answer of its first call.
func directFirstCall(t *testing.T) float64 {
	t.Helper()
	began := time.Now()
	p := start(t, exec.Command(leanUpstream))
	defer p.stop()
	c := &stdioClient{in: p.in, out: p.out}
	if err := c.open(`{}`); err != nil {
		t.Fatal(err)
	}
	if _, err := c.call(small("").legacy()); err != nil {
		t.Fatal(err)
	}
	return milliseconds(began)
}
