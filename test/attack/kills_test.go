//go:build linux && !nomcp

package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
	"go.uber.org/goleak"
)

// held is what this process holds of the machine: goroutines, descriptors, workers of the sandbox that are alive or not
// waited for, and resident memory in KiB.
type held struct{ goroutines, descriptors, workers, zombies, memory int }

func (h held) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d workers, %d zombies, %d MiB", h.goroutines, h.descriptors,
		h.workers, h.zombies, h.memory>>10)
}

// measure returns what this process holds. Memory that no one uses is returned to the system before.
func measure(t *testing.T) (now held) {
	t.Helper()
	debug.FreeOSMemory()
	now.goroutines = runtime.NumGoroutine()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	now.descriptors = len(entries) - 1 // one is that of the directory
	now.memory = statusNumber("self", "VmRSS:")
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		children, _ := os.ReadFile(list) // a thread may have ended
		for _, id := range strings.Fields(string(children)) {
			state, _ := os.ReadFile("/proc/" + id + "/stat")
			command, _ := os.ReadFile("/proc/" + id + "/cmdline")
			switch _, after, _ := strings.Cut(string(state), ") "); {
			case strings.HasPrefix(after, "Z"):
				now.zombies++
			case strings.Contains(string(command), "drawbridge-run-python"):
				now.workers++
			}
		}
	}
	return now
}

// statusNumber returns a number of a process's status.
func statusNumber(id, name string) int {
	status, _ := os.ReadFile("/proc/" + id + "/status")
	for row := range strings.Lines(string(status)) {
		if fields := strings.Fields(row); len(fields) > 1 && fields[0] == name {
			n, _ := strconv.Atoi(fields[1])
			return n
		}
	}
	return 0
}

// TestForcedKills has scripts of a client that are all ended by force: by their time limit in a loop and in a call of a
// tool, and by a client that leaves. The gateway answers all the while, and in the end it holds what it held before.
// "make bench" has a thousand of them.
func TestForcedKills(t *testing.T) {
	const workers = 2
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"}, mcptest.Tool{Name: "slow",
		Answer: func(ctx context.Context, _ *mcptest.ServerCall) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
	before, atFirst := goleak.IgnoreCurrent(), measure(t)
	h := openWith(t, gateway.Config{Servers: serversOf(up.Stdio("up")), Discovery: &config.ToolDiscovery{Mode: "code"}})
	eventually(t, "the server is not there", func() bool { return h.statusOf("up").Phase == drawbridge.Ready })
	killScripts(t, h, up, 6) // after these the caches and pools have their size
	base := settledAt(t, held{workers: workers + 1})
	begun := time.Now()
	killScripts(t, h, up, forcedKills)
	took := time.Since(begun)
	after := settledAt(t, held{workers: workers + 1})
	t.Logf("%d kills in %.1f s, %.0f ms each; before: %s; after: %s", forcedKills, took.Seconds(),
		float64(took.Milliseconds())/forcedKills, base, after)
	// A worker has two pipes, and a goroutine of the process waits for a spare one.
	const each, megabytes = 3, 1 << 10
	if after.goroutines > base.goroutines+4 || after.descriptors > base.descriptors+each*(workers+1) ||
		after.workers > workers+1 || after.zombies > 0 || after.memory > base.memory+32*megabytes {
		t.Error("this is more than before")
	}
	if o, raw := h.script(t, h.Owner(), 20, `tools.up.safe(still="here")`); o.Error != nil {
		t.Errorf("the next script ends with %s", raw)
	}
	h.stop()
	up.AwaitProcesses(0)
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	atLast := measure(t)
	if t.Logf("at first: %s; at last: %s", atFirst, atLast); atLast.workers+atLast.zombies > 0 ||
		atLast.descriptors > atFirst.descriptors+each {
		t.Error("the closed gateway left something")
	}
}

// settledAt measures when at most so many workers are alive, and all that ended were waited for.
func settledAt(t *testing.T, most held) (now held) {
	t.Helper()
	eventually(t, "the workers do not end", func() bool {
		now = measure(t)
		return now.workers <= most.workers && now.zombies == 0
	})
	return now
}

// killScripts has scripts be killed, one after the other.
func killScripts(t *testing.T, h *house, up *mcptest.Server, count int) {
	t.Helper()
	client := drawbridge.Caller{Kind: drawbridge.External, Principal: "client:ci", Era: drawbridge.Modern,
		Scopes: []drawbridge.Scope{"sandbox", drawbridge.ServerScope("up")}}
	run := func(ctx context.Context, code string, seconds float64) (drawbridge.Result, error) {
		arguments, err := json.Marshal(map[string]any{"code": code, "timeout": seconds})
		if err != nil {
			t.Fatal(err)
		}
		return h.Deck().Call(ctx, drawbridge.Call{Caller: client,
			Params: []byte(`{"name":"run_python","arguments":` + string(arguments) + `}`)})
	}
	for i := range count {
		if i%3 == 2 {
			leave(t, up, func(ctx context.Context) error {
				_, err := run(ctx, fmt.Sprintf("tools.up.slow(n=%d)", i), 20)
				return err
			})
			continue
		}
		code := []string{"n = %d\nwhile True: pass", "tools.up.slow(n=%d)"}[i%3]
		result, err := run(t.Context(), fmt.Sprintf(code, i), 0.01)
		if errors.Is(err, sandbox.ErrNoInterpreter) {
			t.Skip(err)
		}
		if err != nil || !strings.Contains(string(result.Raw), `"limit":"time"`) {
			t.Fatalf("run %d: %s, %v", i, result.Raw, err)
		}
		if i%10 == 0 {
			text, err := h.call(t.Context(), fmt.Sprintf(`{"name":"up__safe","arguments":{"n":%d}}`, i))
			if err != nil || !strings.Contains(text, strconv.Itoa(i)) {
				t.Fatalf("after %d kills the neighbour gets %s, %v", i, text, err)
			}
		}
	}
}

// leave makes a call and ends its context when the server has got a request from it.
func leave(t *testing.T, up *mcptest.Server, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := len(up.Requests())
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	eventually(t, "the script does not call", func() bool { return len(up.Requests()) > got })
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Fatal("a call of a client that left ended well")
		}
	case <-time.After(patience):
		t.Fatal("a call of a client that left does not end")
	}
}
