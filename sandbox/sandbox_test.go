package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"path/filepath"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// workerProgram is the path of a program whose engine the tests use. "make wasmtime" runs them so.
var workerProgram = flag.String("worker-program", "", "a program whose workers run the scripts, in place of the test itself")

// inProcess has the scripts of all tests and benchmarks run in this process.
var inProcess = flag.Bool("in-process", false, "run all scripts in the process of the test")

func TestMain(m *testing.M) {
	RunWorker()
	escapeIfAsked()
	goleak.VerifyTestMain(m)
}

// openTest opens a sandbox whose interpreter is kept between test runs.
func openTest(t testing.TB, o Options) *Sandbox {
	t.Helper()
	o.InProcess = o.InProcess || *inProcess
	s, err := Open(t.Context(), o)
	if errors.Is(err, ErrNoInterpreter) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if *workerProgram != "" {
		s.starter.program = *workerProgram
		s.engine = &Engine{Name: "test", Version: filepath.Base(*workerProgram)} // a directory for its compiled code
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// echo is a host whose tools return their arguments.
var echo = HostFunc(func(_ context.Context, c ToolCall) Reply {
	switch c.Name {
	case "fails":
		return Reply{Err: &CallError{Code: "not_found", Message: "no such thing", Next: "look elsewhere"}}
	case "error":
		return Reply{Result: json.RawMessage(`{"isError":true,"content":[{"type":"text","text":"it did not work"}]}`)}
	case "text":
		return Reply{Result: json.RawMessage(`{"content":[{"type":"text","text":"hello"}]}`)}
	case "image":
		return Reply{Result: json.RawMessage(`{"content":[{"type":"image","mimeType":"image/png","data":"aGVsbG8="}]}`)}
	}
	return Reply{Result: json.RawMessage(`{"structuredContent":` + string(c.Arguments) + `}`)}
})

func run(t testing.TB, s *Sandbox, code string, limits Limits) Outcome {
	t.Helper()
	o, err := s.Run(t.Context(), Script{Code: code, Limits: limits}, echo)
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return o
}

func TestWhatScriptsReturn(t *testing.T) { eachMode(t, Options{}, testWhatScriptsReturn) }

func testWhatScriptsReturn(t *testing.T, s *Sandbox) {
	for name, tt := range map[string]struct{ code, stdout, value, err string }{
		"output":              {code: `print("hello", 1 + 1)`, stdout: "hello 2\n"},
		"the last expression": {code: "x = 2\nx * 21", value: "42"},
		"a tool":              {code: `tools.a.b(x=1)`, value: `{"x":1}`},
		"a tool by name":      {code: `tools.call("a__b", {"y": 2}, x=1)`, value: `{"y":2,"x":1}`},
		"text":                {code: `tools.text()`, value: `"hello"`},
		"an image":            {code: `i = tools.image(); print(i, i.data)`, stdout: "<image/png, 6 bytes> b'hello'\n"},
		"an import":           {code: "from tools import ToolError, a\na.b(x=3)", value: `{"x":3}`},
		"gather":              {code: `tools.gather(*[tools.a.b.defer(n=i) for i in range(3)])`, value: `[{"n":0},{"n":1},{"n":2}]`},
		"await":               {code: `await tools.gather(tools.a.b.defer(n=1))`, value: `[{"n":1}]`},
		"asyncio":             {code: "import asyncio\nasync def f():\n  await asyncio.sleep(0)\n  return await tools.a.b.defer(n=1)\nasyncio.run(f())", value: `{"n":1}`},
		"a fault":             {code: "\ntools.fails()", err: "ToolError 2 fails (line 2): no such thing; next: look elsewhere"},
		"a tool error":        {code: "try:\n  tools.error()\nexcept ToolError as e:\n  print(e.code, e.line)", stdout: "tool_error 2\n"},
		"an exception":        {code: "def f():\n  return 1 / 0\nf()", err: "ZeroDivisionError 2 division by zero"},
		"a syntax error":      {code: "x = (", err: "SyntaxError 1 '(' was never closed (<script>, line 1)"},
		"exit":                {code: "import sys\nprint(1)\nsys.exit(3)", stdout: "1\n"},
		"NaN":                 {code: `tools.a(x=float("nan"))`, err: "ValueError 1 a tool cannot be called with this value: Out of range float values are not JSON compliant: nan"},
		"a cycle":             {code: "x = []\nx.append(x)\ntools.a(x=x)", err: "ValueError 3 a tool cannot be called with this value: Circular reference detected"},
		"no JSON value":       {code: `object`, value: ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t, s, tt.code, Limits{})
			if o.Stdout != tt.stdout {
				t.Errorf("stdout %q, want %q", o.Stdout, tt.stdout)
			}
			if string(o.Value) != tt.value {
				t.Errorf("value %s, want %s", o.Value, tt.value)
			}
			got := ""
			if o.Error != nil {
				got = o.Error.Type + " " + strconv.Itoa(o.Error.Line) + " " + o.Error.Message
			}
			if got != tt.err {
				t.Errorf("error %q, want %q\n%s", got, tt.err, o.Error.Traceback)
			}
		})
	}
}
