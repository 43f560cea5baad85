//go:build bench

package bench

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/fakemcp"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// besieging are the misdeeds that go on beside an honest server. Those that flood are small: what a process does with the
// machine's processors by itself is the machine's to bound.
func besieging() map[fakemcp.Misdeed]int {
	return map[fakemcp.Misdeed]int{
		fakemcp.Hang: 0, fakemcp.HangCall: 0, fakemcp.Drip: 0, fakemcp.Flood: 50, fakemcp.Storm: 1000, fakemcp.Noise: 20,
		fakemcp.HugeLine: 1 << 20, fakemcp.DeepNesting: 10_000, fakemcp.DuplicateKeys: 0, fakemcp.BadUTF8: 0, fakemcp.RepeatedCursor: 0,
		fakemcp.ManyTools: 1000, fakemcp.CrashLoop: 0, fakemcp.CrashOnCall: 0, fakemcp.Forks: 0, fakemcp.Stubborn: 0,
		fakemcp.StderrFlood: 1 << 20, fakemcp.Smuggle: 0, fakemcp.Phish: 0, fakemcp.Poison: 0, fakemcp.Change: 0,
	}
}

// hostile is what hostile servers cost an honest one: its calls beside them, and those by a gateway without them, on the same
// machine at the same time, since the processors that a hostile process burns are not ours to give; and what a line of a gigabyte
// costs the process.
func hostile(t *testing.T) []line {
	alone := through(t, onStdio("up", self(t)))
	rows := []server{onStdio("up", self(t))}
	for does, size := range besieging() {
		rows = append(rows, onFake(fakemcp.NewHostile(t, does, size), string(does)))
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
	return append(gigabyte(t), line{
		what:    fmt.Sprintf("99th percentile beside %d hostile servers ÷ alone", len(rows)-1),
		subject: fmt.Sprintf("%.0f µs", median(loud)), control: fmt.Sprintf("%.0f µs", median(quiet)),
		value: ratio(loud, quiet), bar: 1.05, format: "%.2f", timed: true,
	})
}

// A way is a client of a gateway of its own.
type way struct {
	*httpClient
	url string
	p   *process
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
func onFake(s *fakemcp.Server, name string) server {
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

// gigabyte has a server answer with one line of a gigabyte: the call fails, and the process has kept next to nothing of it.
func gigabyte(t *testing.T) []line {
	bad := fakemcp.NewHostile(t, fakemcp.HugeLine, 1<<30)
	w := through(t, onStdio("up", self(t)), onFake(bad, "bad"))
	before := status(t, w.p.cmd.Process.Pid, "VmHWM:")
	if _, err := w.call(toolCall("bad__echo", `{}`, "")); err == nil || !strings.Contains(err.Error(), wire.ErrTooLong.Error()) {
		t.Errorf("a line of a gigabyte: %v", err)
	}
	grew := float64(status(t, w.p.cmd.Process.Pid, "VmHWM:")-before) / 1024
	return []line{{what: "most memory for a line of 1 GB", subject: "VmHWM", value: grew, bar: 160, format: "%.0f MiB"}}
}
