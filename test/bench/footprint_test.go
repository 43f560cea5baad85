//go:build bench

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// garbage is what the gateway's process allocates for a small call; client and upstream are other processes.
func garbage(t *testing.T) []line {
	config, store := configure(t, onStdio("up", self(t)))
	p := start(t, role(t, "gateway", config, store))
	c := connect(t, p.url(t))
	r := small("up__")
	mounted(t, c, r)
	several(t, c, r, 200)
	before, n := p.insides(t), calls(5000)
	several(t, c, r, n)
	perCall := float64(p.insides(t).Garbage-before.Garbage) / float64(n) / 1024
	return held([]line{{what: "garbage per 64-byte call, HTTP → stdio", subject: fmt.Sprintf("%d calls", n), value: perCall,
		bar: 64, format: "%.1f KiB"}})
}

func several(t testing.TB, c client, r request, n int) {
	t.Helper()
	one := contender{name: "calls", clients: []client{c}, request: r}
	if err := one.several(n); err != nil {
		t.Fatal(err)
	}
}

// longList is how long the handler takes for a list of 1,000 tools that was asked for before.
func longList(t *testing.T) []line {
	config, store := configure(t, onStdio("up", self(t), "tools=998"))
	p := start(t, role(t, "gateway", config, store))
	c := connect(t, p.url(t))
	mounted(t, c, small("up__"))
	var took []float64
	var tools int
	for range 1 + rounds() {
		var spent time.Duration
		tools = listAll(t, c, 1000, func() { spent += p.insides(t).List })
		took = append(took, float64(spent)/float64(time.Millisecond))
	}
	return held([]line{{
		what: "list of 1,000 tools, asked for again, server side", subject: fmt.Sprintf("%d tools", tools),
		control: fmt.Sprintf("first time %.2f ms", took[0]), value: median(took[1:]), bar: 2,
		format: "%.2f ms", timed: true,
	}})
}

// listAll follows the pages, calls then after each, and counts the tools.
// There are to be at least so many: a list that is short would be quick too.
func listAll(t *testing.T, c client, least int, then func()) (tools int) {
	t.Helper()
	for cursor := ""; ; {
		answer, err := c.call(toolsList(cursor))
		if err != nil {
			t.Fatal(err)
		}
		then()
		tools += bytes.Count(answer, []byte(`"inputSchema"`))
		var page struct{ Result struct{ NextCursor string } }
		if err := json.Unmarshal(message(answer), &page); err != nil {
			t.Fatal(err)
		}
		if cursor = page.Result.NextCursor; cursor != "" {
			continue
		}
		if tools < least {
			t.Fatalf("%d tools are listed, want %d", tools, least)
		}
		return tools
	}
}

// message takes the last message out of an event stream; JSON is one already.
func message(answer []byte) []byte {
	if i := bytes.LastIndex(answer, []byte("data: {")); i >= 0 && !bytes.HasPrefix(answer, []byte("{")) {
		line, _, _ := bytes.Cut(answer[i+len("data: "):], []byte("\n"))
		return line
	}
	return answer
}

// fifty configures fifty servers of ten tools each, lets a gateway list all of them once, and puts dead in the place of
// their program: what is configured is as it was, and what was listed is in the store.
func fifty(t *testing.T, dead func(program string)) (config, store string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "upstream")
	if err := os.Symlink(self(t), program); err != nil {
		t.Fatal(err)
	}
	rows := make([]server, crowd())
	for i := range rows {
		rows[i] = onStdio(fmt.Sprintf("s%02d", i), program, "tools=8")
	}
	config, store = configure(t, rows...)
	p := start(t, serve(config, store, "--http", "127.0.0.1:0"))
	c := connect(t, p.url(t))
	for i := range rows {
		mounted(t, c, small(fmt.Sprintf("s%02d__", i)))
	}
	p.stop()
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	dead(program)
	return config, store
}

// idle is the memory of drawbridge with fifty servers and their listings, none of which it can start.
func idle(t *testing.T) []line {
	config, store := fifty(t, func(string) {})
	p := start(t, serve(config, store, "--http", "127.0.0.1:0"))
	c := connect(t, p.url(t))
	tools := listAll(t, c, 10*crowd(), func() {})
	<-time.After(time.Second) // idle: it releases what only its start needed
	resident := float64(status(t, p.cmd.Process.Pid, "VmRSS:")) / 1024
	return held([]line{{
		what: "memory idle, 50 servers configured, none started", subject: fmt.Sprintf("%d tools listed", tools),
		value: resident, bar: 40, format: "%.1f MB",
	}})
}

// deadStart is the time from exec to the first list, with fifty servers that start and never say a word.
func deadStart(t *testing.T) []line {
	config, store := fifty(t, func(program string) {
		if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	var took []float64
	var tools int
	for range rounds() {
		began := time.Now()
		p := start(t, serve(config, store))
		c := p.stdio()
		if _, err := c.call(toolsList("")); err != nil {
			t.Fatal(err)
		}
		took = append(took, float64(time.Since(began))/float64(time.Millisecond))
		tools = listAll(t, c, 10*crowd(), func() {})
		p.stop()
	}
	return held([]line{{
		what: "exec to first list, 50 servers that never answer", subject: fmt.Sprintf("%d tools listed", tools),
		value: median(took), bar: 50, format: "%.1f ms", timed: true,
	}})
}

// storeFiles is the most descriptors that a store's pools have: the database and its log for each of six connections,
// and the index of the log.
const storeFiles = 6*2 + 1

// leaks compares goroutines, file descriptors and children before and after 1,000 sessions and 20,000 calls. The
// descriptors of the store are counted apart: its pools open a connection when two reads meet, and keep it.
func leaks(t *testing.T) []line {
	config, store := configure(t, onStdio("up", self(t)))
	p := start(t, role(t, "gateway", config, store))
	url := p.url(t)
	c := connect(t, url)
	r := small("up__")
	mounted(t, c, r)
	sessions(t, url, r, 10)
	c.Close()
	before := calm(t, p, store, population{})
	sessions(t, url, r, max(calls(1000), 200))
	c = connect(t, url)
	several(t, c, r, calls(15_000))
	c.Close()
	after := calm(t, p, store, before)
	var table []line
	const since = " after 1,000 sessions and 20,000 calls"
	for _, kind := range []struct {
		what          string
		before, after int
	}{
		{"goroutines", before.goroutines, after.goroutines},
		{"file descriptors", before.files, after.files},
		{"children", before.children, after.children},
	} {
		table = append(table, line{
			what: kind.what + since, subject: fmt.Sprintf("%d after", kind.after),
			control: fmt.Sprintf("%d before", kind.before), value: float64(kind.after),
			bar: float64(kind.before), format: "%.0f",
		})
	}
	table = held(append(table, line{
		what: "descriptors of the store" + since, subject: fmt.Sprintf("%d after", after.store),
		control: fmt.Sprintf("%d before", before.store), value: float64(after.store), bar: storeFiles, format: "%.0f",
	}))
	return append(table, line{
		what: "threads" + since, subject: fmt.Sprintf("%d after", after.threads),
		control: fmt.Sprintf("%d before", before.threads), value: float64(after.threads),
		bar: float64(before.threads + spareThreads), format: "%.0f",
	}, line{
		what: "resident memory, more" + since, subject: fmt.Sprintf("%.1f MB after", after.resident),
		control: fmt.Sprintf("%.1f MB before", before.resident), value: after.resident - before.resident, bar: 16,
		format: "%.1f MB",
	})
}

// spareThreads is how many threads a Go program may add when more of them meet in system calls than before. It keeps
// them.
const spareThreads = 6

// sessions opens legacy sessions, five calls in each, and deletes them.
func sessions(t *testing.T, url string, r request, n int) {
	t.Helper()
	for range n {
		c, err := dial(url)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.open(); err != nil {
			t.Fatal(err)
		}
		several(t, c, r.legacy(), 5)
		if err := c.end(); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

type population struct {
	goroutines, files, store, children int
	threads                            int
	resident                           float64 // megabytes
}

// calm counts until no number is above the goal, or for five seconds, and gives the last count. Without a goal it
// waits until the numbers stand still.
func calm(t *testing.T, p *benchProcess, store string, goal population) population {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	var last population
	for range 50 {
		now := count(t, p, store)
		done := now.goroutines <= goal.goroutines && now.files <= goal.files && now.children <= goal.children
		still := now.goroutines == last.goroutines && now.files == last.files && now.children == last.children
		if done || goal == (population{}) && still {
			return now
		}
		last = now
		<-again.C
	}
	return last
}

// count asks the process for its goroutines, and the system for its files, those of the store, and its children.
func count(t *testing.T, p *benchProcess, store string) population {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	pid := p.cmd.Process.Pid
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	open, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := population{goroutines: p.insides(t).Goroutines, threads: status(t, pid, "Threads:"),
		resident: float64(status(t, pid, "VmRSS:")) / 1024}
	for _, file := range open {
		switch name, _ := os.Readlink(filepath.Join(dir, file.Name())); name {
		case store, store + "-wal", store + "-shm":
			found.store++
		default:
			found.files++
		}
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		if text, err := os.ReadFile(thread); err == nil {
			found.children += len(strings.Fields(string(text)))
		}
	}
	return found
}

// status reads a number from /proc/PID/status.
func status(t *testing.T, pid int, member string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip(err)
	}
	var n int
	if _, rest, ok := strings.Cut(string(text), member); ok {
		fmt.Sscan(rest, &n)
	}
	return n
}
