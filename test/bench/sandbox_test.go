//go:build bench

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	product "github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestSandboxNumbers prints what scripts cost, through the whole path of a call, and fails where a bar is missed.
func TestSandboxNumbers(t *testing.T) {
	lab := openScriptLab(t)
	table := []line{lab.firstRun(), lab.restart()}
	table = append(table, lab.shortRuns()...)
	table = append(table, lab.throughput(), lab.innerCall(), lab.gather())
	table = append(table, lab.processor()...)
	table = append(table, lab.workerMemory())
	table = append(table, unusedSandbox(t)...)
	aligned := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer aligned.Flush()
	for _, l := range table {
		l.write(aligned)
		if !l.ok() && !testing.Short() {
			t.Errorf("missed: %s", l.what)
		}
	}
}

// A scriptLab is a gateway with a server whose tools answer at once, or after 100 ms.
type scriptLab struct {
	t     *testing.T
	cache string
	g     *gateway.Gateway
	close func()
}

func openScriptLab(t *testing.T) *scriptLab {
	lab := &scriptLab{t: t, cache: t.TempDir()}
	lab.open()
	t.Cleanup(func() { lab.close() })
	return lab
}

// open opens the gateway, with an interpreter that is in the cache or not.
func (l *scriptLab) open() {
	up := mcptest.NewServer(l.t, mcptest.Tool{Name: "echo"}, mcptest.Tool{Name: "slow",
		Answer: func(ctx context.Context, c *mcptest.ServerCall) (json.RawMessage, error) {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			return mcptest.Text("done")(ctx, c)
		}})
	g, err := gateway.Open(l.t.Context(), gateway.Config{Store: gateway.MemoryStore, Version: "bench",
		Servers: []config.Server{up.Stdio("up")}, Discovery: &config.ToolDiscovery{Mode: "code"}, LookupEnv: func(name string) (string, bool) {
			if name == "XDG_CACHE_HOME" {
				return l.cache, true
			}
			return os.LookupEnv(name)
		}})
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	g.MountAll(ctx)
	l.g = g
	l.close = sync.OnceFunc(func() {
		cancel()
		<-done
		if err := g.Close(); err != nil {
			l.t.Error(err)
		}
	})
}

// run runs a script and returns the value of its last line, and the milliseconds that the call took.
func (l *scriptLab) run(code string) (value string, took float64) {
	l.t.Helper()
	arguments, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		l.t.Fatal(err)
	}
	begun := time.Now()
	result, err := l.g.Deck().Call(l.t.Context(), product.Call{Caller: l.g.Owner(),
		Params: rawjson.Apply(nil, rawjson.Put([]byte(`"run_python"`), "name"), rawjson.Put(arguments, "arguments"))})
	took = float64(time.Since(begun)) / float64(time.Millisecond)
	if err != nil || result.IsError() {
		l.t.Fatalf("%s: %s, %v", code, result.Raw, err)
	}
	return string(rawjson.Get(result.Raw, "structuredContent", "value")), took
}

func (l *scriptLab) firstRun() line {
	_, took := l.run("print(1)")
	return line{what: "first script ever on a machine", subject: fmt.Sprintf("%.0f ms", took), value: took / 1000, bar: 6, format: "%.2f s", timed: true}
}

func (l *scriptLab) restart() line {
	l.close()
	l.open()
	_, took := l.run("print(1)")
	return line{what: "first script after a restart", subject: fmt.Sprintf("%.0f ms", took), value: took, bar: 400, format: "%.0f ms", timed: true}
}

func (l *scriptLab) shortRuns() []line {
	var all []float64
	for range calls(500) {
		_, took := l.run("print(1)")
		all = append(all, took)
	}
	slices.Sort(all)
	p50, p99 := all[len(all)/2], all[len(all)*99/100]
	return []line{
		{what: "print(1), median", subject: fmt.Sprintf("%.2f ms", p50), value: p50, bar: 4, format: "%.2f ms", timed: true},
		{what: "print(1), 99 of 100", subject: fmt.Sprintf("%.2f ms", p99), value: p99, bar: 15, format: "%.2f ms", timed: true},
	}
}

func (l *scriptLab) throughput() line {
	jobs := make(chan int)
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for range jobs {
				l.run("print(1)")
			}
		})
	}
	n := calls(1000)
	begun := time.Now()
	for i := range n {
		jobs <- i
	}
	close(jobs)
	callers.Wait()
	rate := float64(n) / time.Since(begun).Seconds()
	return line{what: "print(1) by 32 callers", subject: fmt.Sprintf("%.0f a second", rate), value: rate, bar: 250, least: true, format: "%.0f /s", timed: true}
}

// pipeEcho returns how long a line needs to another process and back, in microseconds.
func (l *scriptLab) pipeEcho() float64 {
	c := exec.Command("cat")
	in, err := c.StdinPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = c.Wait() }() // its input is closed before
	defer in.Close()
	line := []byte(strings.Repeat("x", 99) + "\n")
	n := calls(1000)
	begun := time.Now()
	for range n {
		if _, err := in.Write(line); err != nil {
			l.t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len(line))); err != nil {
			l.t.Fatal(err)
		}
	}
	return float64(time.Since(begun).Microseconds()) / float64(n)
}

// innerCall compares a call by a script with the same call by Go.
func (l *scriptLab) innerCall() line {
	var ours, theirs []float64
	for range rounds() {
		n := calls(1000)
		value, _ := l.run(fmt.Sprintf("import time\nt = time.perf_counter()\nfor _ in range(%d): tools.up.echo(a=1, b=2)\n(time.perf_counter() - t) * 1e6 / %d", n, n))
		one, err := strconv.ParseFloat(value, 64)
		if err != nil {
			l.t.Fatal(err)
		}
		begun := time.Now()
		for range n {
			if _, err := l.g.Deck().Call(l.t.Context(), product.Call{Caller: l.g.Owner(),
				Params: []byte(`{"name":"up__echo","arguments":{"a":1,"b":2}}`)}); err != nil {
				l.t.Fatal(err)
			}
		}
		ours, theirs = append(ours, one), append(theirs, float64(time.Since(begun).Microseconds())/float64(n))
	}
	added := median(ours) - median(theirs)
	return line{what: fmt.Sprintf("a call by a script, over the same call by Go (an echo through pipes takes %.0f µs)", l.pipeEcho()),
		subject: fmt.Sprintf("%.0f µs", median(ours)),
		control: fmt.Sprintf("%.0f µs", median(theirs)), value: added, bar: 100, format: "%.0f µs", timed: true}
}

func (l *scriptLab) gather() line {
	_, one := l.run("tools.up.slow()")
	_, many := l.run("len(tools.gather(*[tools.up.slow.defer() for _ in range(20)]))")
	return line{what: "gather of 20 calls of 100 ms, over one", subject: fmt.Sprintf("%.0f ms", many),
		control: fmt.Sprintf("%.0f ms", one), value: many / one, bar: 3, format: "%.2f ×", timed: true}
}

// processor compares scripts that compute with the same scripts in the machine's own Python.
func (l *scriptLab) processor() (table []line) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil
	}
	for _, p := range []struct {
		what, code string
		bar        float64
	}{
		{"a loop", "n = 0\nfor i in range(3000000): n += i", 8},
		{"regular expressions", "import re\nt = 'word 12 ' * 40000\nre.findall(r'\\d+ w', t)", 8},
		{"JSON", "import json\nx = [{'a': i, 'b': 'text'} for i in range(50000)]\njson.loads(json.dumps(x))", 5},
		{"fib(24)", "def fib(n): return n if n < 2 else fib(n-1) + fib(n-2)\nfib(24)", 5},
	} {
		timed := "import time\nt0 = time.perf_counter()\n" + p.code + "\nt1 = time.perf_counter() - t0\n"
		var ours, theirs []float64
		for range max(3, rounds()/3) {
			value, _ := l.run(timed + "t1")
			out, err := exec.Command(python, "-c", timed+"print(t1)").Output()
			if err != nil {
				l.t.Fatal(err)
			}
			one, _ := strconv.ParseFloat(value, 64)
			other, _ := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
			ours, theirs = append(ours, one*1000), append(theirs, other*1000)
		}
		table = append(table, line{what: "computing: " + p.what, subject: fmt.Sprintf("%.0f ms", median(ours)),
			control: fmt.Sprintf("python3 %.0f ms", median(theirs)), value: median(ours) / median(theirs), bar: p.bar,
			format: "%.1f ×", timed: true})
	}
	return table
}

// workerMemory is the resident memory of the largest worker after many runs.
func (l *scriptLab) workerMemory() line {
	for range calls(1000) {
		l.run("x = list(range(100000)); len(x)")
	}
	most := 0.0
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	for _, file := range children {
		ids, _ := os.ReadFile(file)
		for _, id := range strings.Fields(string(ids)) {
			command, _ := os.ReadFile("/proc/" + id + "/cmdline")
			status, _ := os.ReadFile("/proc/" + id + "/status")
			if !strings.Contains(string(command), "drawbridge-run-python") {
				continue
			}
			for row := range strings.Lines(string(status)) {
				var kib float64
				if n, _ := fmt.Sscanf(row, "VmRSS: %f kB", &kib); n == 1 {
					most = max(most, kib/1024)
				}
			}
		}
	}
	return line{what: "memory of a worker after 1,000 scripts", subject: fmt.Sprintf("%.0f MB", most), value: most, bar: 60, format: "%.0f MB"}
}

// unusedSandbox is what the interpreter costs a "serve" that runs no script: beside a program that was built without it.
func unusedSandbox(t *testing.T) []line {
	without := filepath.Join(t.TempDir(), "drawbridge")
	build := exec.Command("go", "build", "-trimpath", "-tags", "nopython", "-o", without+".built",
		"github.com/drawbridge-mcp/drawbridge/cmd/drawbridge")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build without Python: %v\n%s", err, out)
	}
	if err := install(without+".built", without); err != nil {
		t.Fatal(err)
	}
	config, store := configure(t)
	programs := [2]string{drawbridge, without}
	var took, memory [2][]float64
	for round := range 2 * rounds() {
		for n := range programs {
			i := (n + round) % len(programs)
			cmd := serve(config, store)
			cmd.Path = programs[i]
			began := time.Now()
			p := start(t, cmd)
			if _, err := p.stdio().call(toolsList("")); err != nil {
				t.Fatal(err)
			}
			took[i] = append(took[i], float64(time.Since(began))/float64(time.Millisecond))
			<-time.After(500 * time.Millisecond) // idle: it releases what only its start needed
			memory[i] = append(memory[i], float64(status(t, p.cmd.Process.Pid, "RssAnon:"))/1024)
			p.stop()
		}
	}
	var size [2]float64
	for i, program := range programs {
		info, err := os.Stat(program)
		if err != nil {
			t.Fatal(err)
		}
		size[i] = float64(info.Size()) / (1 << 20)
	}
	compare := func(what, format string, with, without, bar float64, timed bool) line {
		return line{what: what + ", Python in the program − without", subject: fmt.Sprintf(format, with),
			control: fmt.Sprintf(format, without), value: with - without, bar: bar, format: format, timed: timed}
	}
	return []line{
		compare("memory of serve that ran no script", "%.1f MB", median(memory[0]), median(memory[1]), 1.5, false),
		compare("exec to first list", "%.1f ms", slices.Min(took[0]), slices.Min(took[1]), 1, true),
		compare("size of the program", "%.1f MB", size[0], size[1], 12, false),
	}
}
