//go:build bench

package bench

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// besieging are the misdeeds that go on beside an honest server. Those that flood are small: what a process does with
// the machine's processors by itself is the machine's to bound.
func besieging() map[mcptest.Misbehaviour]int {
	return map[mcptest.Misbehaviour]int{
		mcptest.Hang: 0, mcptest.HangCall: 0, mcptest.Drip: 0, mcptest.Flood: 50, mcptest.Storm: 1000,
		mcptest.Noise:    20,
		mcptest.HugeLine: 1 << 20, mcptest.DeepNesting: 10_000, mcptest.DuplicateKeys: 0, mcptest.BadUTF8: 0,
		mcptest.RepeatedCursor: 0,
		mcptest.ManyTools:      1000, mcptest.CrashLoop: 0, mcptest.CrashOnCall: 0, mcptest.Forks: 0,
		mcptest.Stubborn:    0,
		mcptest.StderrFlood: 1 << 20, mcptest.Smuggle: 0, mcptest.Phish: 0, mcptest.Poison: 0, mcptest.Change: 0,
	}
}

// hostile is what hostile servers cost an honest one: its calls beside them, and those by a gateway without them, on
// the same machine at the same time, since the processors that a hostile process burns are not ours to give; and what
// a line of a gigabyte costs the process.
func hostile(t *testing.T) []line {
	alone := through(t, onStdio("up", self(t)))
	rows := []server{onStdio("up", self(t))}
	for does, size := range besieging() {
		rows = append(rows, onFake(mcptest.NewHostileServer(t, does, size), string(does)))
	}
	beside := through(t, rows...)
	stop := besiege(t, beside.url)
	defer stop()
	p99 := func(way *way) float64 {
		took := make([]float64, calls(1000))
		for i := range took {
			began := time.Now()
			if _, err := way.call(small("up__")); err != nil {
				t.Fatal(err)
			}
			took[i] = float64(time.Since(began)) / float64(time.Microsecond)
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	var quiet, loud []float64
	for range rounds() {
		quiet, loud = append(quiet, p99(alone)), append(loud, p99(beside))
	}
	return held(append(gigabyte(t), line{
		what:    fmt.Sprintf("99th percentile beside %d hostile servers ÷ alone", len(rows)-1),
		subject: fmt.Sprintf("%.0f µs", median(loud)), control: fmt.Sprintf("%.0f µs", median(quiet)),
		value: ratio(loud, quiet), bar: 1.05, format: "%.2f", timed: true,
	}))
}

// A way is a client of a gateway of its own.
type way struct {
	*httpClient
	url string
	p   *benchProcess
}

func through(t *testing.T, rows ...server) *way {
	config, store := configure(t, rows...)
	p := start(t, serve(config, store, "--http", "127.0.0.1:0"))
	url := p.url(t)
	w := &way{connect(t, url), url, p}
	mounted(t, w, small("up__"))
	return w
}

// onFake is the row of a server of fakemcp.
func onFake(s *mcptest.Server, name string) server {
	row := s.Stdio("")
	env := map[string]string{}
	for _, v := range row.Env {
		env[v.Name] = v.Value
	}
	return server{Name: name, Command: row.Command, Args: row.Args, Env: env}
}

// besiege calls every hostile server again and again, whatever comes of it, until it is stopped.
func besiege(t *testing.T, url string) (stop func()) {
	over := make(chan struct{})
	var callers sync.WaitGroup
	var clients []*httpClient
	for does := range besieging() {
		c := connect(t, url)
		clients = append(clients, c)
		callers.Go(func() {
			for {
				_, _ = c.call(toolCall(string(does)+"__echo", `{}`, ""))
				select {
				case <-over:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	return func() {
		close(over)
		for _, c := range clients {
			_ = c.Close() // what hangs ends
		}
		callers.Wait()
	}
}

// gigabyte has a server answer with one line of a gigabyte: the call fails, and the process has kept next to nothing
// of it.
func gigabyte(t *testing.T) []line {
	bad := mcptest.NewHostileServer(t, mcptest.HugeLine, 1<<30)
	w := through(t, onStdio("up", self(t)), onFake(bad, "bad"))
	before := status(t, w.p.cmd.Process.Pid, "VmHWM:")
	if _, err := w.call(toolCall("bad__echo", `{}`, "")); err == nil || !strings.Contains(err.Error(),
		mcp.ErrTooLong.Error()) {
		t.Errorf("a line of a gigabyte: %v", err)
	}
	grew := float64(status(t, w.p.cmd.Process.Pid, "VmHWM:")-before) / 1024
	return []line{{what: "most memory for a line of 1 GB", subject: "VmHWM", value: grew, bar: 160, format: "%.0f MiB"}}
}
