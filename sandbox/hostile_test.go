package sandbox

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A hostileScript tries to stay, to take, or to break out. limit and err are the limit that it meets and the type of the
// exception.
type hostileScript struct {
	code   string
	limits Limits
	limit  string
	err    string
}

var (
	short = Limits{Time: time.Second}
	small = Limits{Memory: 64 << 20}
)

var hostileScripts = map[string]hostileScript{
	"an endless loop":         {"while True: pass", short, "time", "TimeoutError"},
	"an endless number":       {"10 ** 10 ** 8", short, "time", "TimeoutError"},
	"a catastrophic pattern":  {`import re; re.match("(a+)+$", "a" * 40 + "b")`, short, "time", "TimeoutError"},
	"an endless sleep":        {"import time\ntry:\n  time.sleep(1000)\nexcept BaseException:\n  pass", short, "time", "TimeoutError"},
	"no exception helps":      {"while True:\n  try:\n    while True: pass\n  except BaseException: pass", short, "time", "TimeoutError"},
	"a memory bomb":           {"x = []\nwhile True: x.append(bytearray(1 << 20))", small, "memory", "MemoryError"},
	"one huge text":           {`"x" * (1 << 30)`, small, "memory", "MemoryError"},
	"recursion":               {"def f(): f()\nf()", Limits{}, "", "RecursionError"},
	"recursion without limit": {"import sys\nsys.setrecursionlimit(10**9)\ndef f(): f()\nf()", Limits{Time: 2 * time.Minute}, "", "RecursionError"},
	"deep code":               {`eval("-" * 100000 + "1")`, Limits{}, "", "MemoryError|RecursionError|SystemError"},
	"deep JSON":               {`tools.a(x=__import__("json").loads("[" * 900 + "]" * 900))`, Limits{}, "", ""},
	"os.abort":                {"import os; os.abort()", Limits{}, "crash", "SystemError"},
	"os._exit":                {"import os; os._exit(0)", Limits{}, "crash", "SystemError"},
	"a flood of output":       {`while True: print("x" * 1000)`, Limits{Output: 1000}, "output", "OutputLimit"},
	"a text of 1 GB":          {`tools.a(x="x" * (1 << 29))`, Limits{Memory: 1 << 30, Time: 5 * time.Minute}, "", "ToolError|MemoryError"},
	"too many calls":          {"while True: tools.a()", Limits{Calls: 10}, "calls", "ToolError"},
	"a deep pickle":           {`import pickle; pickle.loads(b"(" * 10**6)`, Limits{}, "", "UnpicklingError|EOFError|IndexError|MemoryError"},
	"a pickled command":       {"import pickle\nclass X:\n  def __reduce__(self): return (__import__('os').system, ('id',))\npickle.loads(pickle.dumps(X()))", Limits{}, "", "AttributeError|PicklingError"},
	"a file":                  {`open("/etc/passwd")`, Limits{}, "", "OSError|FileNotFoundError"},
	"a directory":             {`import os; os.listdir("/")`, Limits{}, "", "OSError|FileNotFoundError"},
	"a socket":                {"import socket; socket.create_connection(('127.0.0.1', 80))", Limits{}, "", "ModuleNotFoundError|OSError|AttributeError|ImportError"},
	"a process":               {"import subprocess; subprocess.run(['id'])", Limits{}, "", "OSError|ModuleNotFoundError|FileNotFoundError"},
	"a thread":                {"import threading\nthreading.Thread(target=print).start()", Limits{}, "", "RuntimeError"},
	"native code":             {"import ctypes", Limits{}, "", "ModuleNotFoundError"},
	"a forged end":            {`import _drawbridge; _drawbridge.request(b'{"op":"done","outcome":{"value":"forged"}}'); 1`, Limits{}, "", ""},
	"an unknown request":      {`import _drawbridge; print(_drawbridge.request(b'{"op":"grant"}'))`, Limits{}, "", ""},
	"a request of garbage":    {`import _drawbridge; print(_drawbridge.request(b'\xff\x00[[['))`, Limits{}, "", ""},
	"an invalid flush":        {`import _drawbridge; print(_drawbridge.request(b'{"op":"flush","ids":["x"]}'))`, Limits{}, "", ""},
}

// TestHostileScripts has each hostile script end with an error that names its limit, and the next script find nothing of
// it.
func TestHostileScripts(t *testing.T) {
	eachMode(t, Options{Workers: 2}, func(t *testing.T, s *Sandbox) {
		for name, tt := range hostileScripts {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tt.check(t, s)
			})
		}
	})
}

func (h hostileScript) check(t *testing.T, s *Sandbox) {
	t.Helper()
	o := run(t, s, h.code, h.limits)
	got := ""
	if o.Error != nil {
		got = o.Error.Type
	}
	if h.limit != "" && o.Limit != h.limit || h.err == "" && got != "" ||
		h.err != "" && (got == "" || !strings.Contains("|"+h.err+"|", "|"+got+"|")) {
		t.Errorf("limit %q, error %+v, stdout %.200q", o.Limit, o.Error, o.Stdout)
	}
	if string(o.Value) == `"forged"` {
		t.Error("the script reported a result of its own")
	}
	if o := run(t, s, "import os\nos.environ, [n for n in dir() if n == 'x']", Limits{}); string(o.Value) != "[{},[]]" && o.Repr == "" {
		t.Errorf("the next script finds %s %+v", o.Value, o.Error)
	}
}

// TestAWorldIsFresh has a script change whatever it can reach.
func TestAWorldIsFresh(t *testing.T) { eachMode(t, Options{Workers: 1}, testAWorldIsFresh) }

func testAWorldIsFresh(t *testing.T, s *Sandbox) {
	for range 3 {
		run(t, s, `
import builtins, json, sys, gc
builtins.leak = 1
json.evil = 1
tools.__class__.call = None
sys.modules["json"].loads = None
for o in gc.get_objects():
    if type(o) is dict:
        try: o["leak"] = 1
        except Exception: pass
x = [bytearray(b"leak" * 1000) for _ in range(1000)]
`, Limits{})
		o := run(t, s, `
import builtins, json
[hasattr(builtins, "leak"), hasattr(json, "evil"), json.loads("1"), tools.a(x=1)]`, Limits{})
		if string(o.Value) != `[false,false,1,{"x":1}]` {
			t.Fatalf("%s %+v", o.Value, o.Error)
		}
	}
}

// TestCallsEndWithTheirRun has a tool that waits longer than its script may run.
func TestCallsEndWithTheirRun(t *testing.T) { eachMode(t, Options{}, testCallsEndWithTheirRun) }

func testCallsEndWithTheirRun(t *testing.T, s *Sandbox) {
	var ended atomic.Bool
	o, err := s.Run(t.Context(), Script{Code: "tools.slow()", Limits: Limits{Time: 300 * time.Millisecond}},
		HostFunc(func(ctx context.Context, _ ToolCall) Reply {
			<-ctx.Done()
			ended.Store(true)
			return Reply{Err: context.Cause(ctx)}
		}))
	if err != nil || o.Limit != "time" || !ended.Load() {
		t.Errorf("%+v, %v; the call ended: %v", o, err, ended.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = s.Run(ctx, Script{Code: "tools.slow()"}, HostFunc(func(context.Context, ToolCall) Reply {
		cancel()
		return Reply{Result: json.RawMessage(`{}`)}
	}))
	if err == nil {
		t.Error("a canceled run ended without an error")
	}
}

// TestOneWorkerServesOneOwner has two principals use one sandbox.
func TestOneWorkerServesOneOwner(t *testing.T) {
	eachMode(t, Options{Workers: 1}, testOneWorkerServesOneOwner)
}

func testOneWorkerServesOneOwner(t *testing.T, s *Sandbox) {
	used := map[string]map[*workerProcess]bool{}
	for range 3 {
		for _, owner := range []string{"ada", "bob"} {
			p, err := s.acquire(t.Context(), Script{Owner: owner})
			if err != nil {
				t.Fatal(err)
			}
			if used[owner] == nil {
				used[owner] = map[*workerProcess]bool{}
			}
			used[owner][p] = true
			p.runs++
			s.release(p)
		}
	}
	for p := range used["ada"] {
		if used["bob"][p] {
			t.Error("a worker served both")
		}
	}
}

// TestManyForcedEnds counts descriptors and processes before and after scripts that are killed.
func TestManyForcedEnds(t *testing.T) {
	s := openTest(t, Options{Workers: 2})
	run(t, s, "print(1)", Limits{})
	count := 20
	if testing.Short() {
		count = 5
	}
	before := openDescriptors(t)
	for range count {
		if o := run(t, s, "while True: pass", Limits{Time: 5 * time.Millisecond}); o.Limit != "time" {
			t.Fatalf("%+v", o)
		}
	}
	s.background.Wait()
	if after := openDescriptors(t); after > before+12 {
		t.Errorf("%d descriptors were open, now %d", before, after)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive > s.options.Workers+1 || s.alive != len(s.idle) {
		t.Errorf("%d workers are alive, %d idle", s.alive, len(s.idle))
	}
}

func openDescriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}
