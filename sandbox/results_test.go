package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A shelf is a host that keeps texts. It notes the sizes that were asked for.
type shelf struct {
	HostFunc
	mu    sync.Mutex
	texts []string
	sizes []int
	// repeated are the tools of recorded calls, and again the ids under which a repeated run kept texts.
	repeated, again []string
}

func (s *shelf) Repeat(_ context.Context, c ToolCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repeated = append(s.repeated, c.Name)
}

func (s *shelf) Keep(_ context.Context, text, id string) (KeptResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" {
		s.again = append(s.again, id+" "+text)
		return KeptResult{ID: id, Length: len([]rune(text))}, nil
	}
	if len(s.texts) == 1000 {
		return KeptResult{}, &CallError{Code: "limit", Message: "the shelf is full"}
	}
	s.texts = append(s.texts, text)
	return KeptResult{ID: fmt.Sprint("r", len(s.texts)), Length: len([]rune(text))}, nil
}

func (s *shelf) Read(_ context.Context, id string, at, size int) (ResultPart, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = append(s.sizes, size)
	var n int
	if _, err := fmt.Sscanf(id, "r%d", &n); err != nil || n < 1 || n > len(s.texts) {
		return ResultPart{}, &CallError{Code: "not_found", Message: "unknown result " + id}
	}
	all := []rune(s.texts[n-1])
	at = min(at, len(all))
	return ResultPart{Text: string(all[at:min(at+min(size, len(all)), len(all))]), Length: len(all), Tools: []string{"x__source"}}, nil
}

var (
	_ ResultKeeper = (*shelf)(nil)
	_ Repeater     = (*shelf)(nil)
)

func runOn(t testing.TB, s *Sandbox, host Host, code string, limits Limits) Outcome {
	t.Helper()
	o, err := s.Run(t.Context(), Script{Code: code, Limits: limits}, host)
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return o
}

func TestKeptResults(t *testing.T) { eachMode(t, Options{}, testKeptResults) }

func testKeptResults(t *testing.T, s *Sandbox) {
	const text = "one é€😀\ntwo\nthree"
	for name, tt := range map[string]struct{ code, value, err string }{
		"all of it":            {`r = tools.result("r1"); [len(r), r.text(), r.id]`, `[17,"one \u00e9\u20ac\ud83d\ude00\ntwo\nthree","r1"]`, ""},
		"slices":               {`r = tools.result("r1"); [r[:3], r[4:7], r[-5:], r[3:-5], r[100:], r[5:2], r[0:17:4], r[::-1], r[10:2:-3], r[-1], r[6]]`, `["one","\u00e9\u20ac\ud83d\ude00","three"," \u00e9\u20ac\ud83d\ude00\ntwo\n","","","o\u00e9tte","eerht\nowt\n\ud83d\ude00\u20ac\u00e9 eno","o\n\u00e9","e","\ud83d\ude00"]`, ""},
		"as Python does":       {`r = tools.result("r1"); t = r.text(); q = tools.result("r1"); all(t[a:b:c] == q[a:b:c] for a in (None, 0, 3, -2, 99) for b in (None, 1, -1, 99) for c in (None, 1, 2, -1, -3))`, `true`, ""},
		"beyond the end":       {`tools.result("r1")[17]`, "", "IndexError"},
		"no index":             {`tools.result("r1")["x"]`, "", "TypeError"},
		"lines":                {`r = tools.result("r1"); [r.lines(1), r.lines(0, 1), list(r)[-1], "two" in r, "four" in r]`, `[["two","three"],["one \u00e9\u20ac\ud83d\ude00"],"three",true,false]`, ""},
		"a value":              {`tools.keep([1, {"a": None}]).json()`, `[1,{"a":null}]`, ""},
		"a text":               {`tools.keep("plain").text()`, `"plain"`, ""},
		"other values":         {`import datetime; tools.keep({"d": datetime.date(2026, 1, 2), "b": b"hi", "s": (1,)}).text()`, `"{\"d\":\"2026-01-02\",\"b\":\"aGk=\",\"s\":[1]}"`, ""},
		"a result of a tool":   {`tools.keep(tools.a(x=[1, 2])).select("$.x[1]")`, `[2]`, ""},
		"what cannot be kept":  {`tools.keep(print)`, "", "TypeError: this value cannot be kept: a value of type builtin_function_or_method has no JSON form"},
		"a cycle":              {"x = []\nx.append(x)\ntools.keep(x)", "", "TypeError: this value cannot be kept: Circular reference"},
		"no JSON":              {`tools.result("r1").json()`, "", "JSONDecodeError"},
		"a forged id":          {`tools.result("r999999")`, "", "ToolError: result (line 1): unknown result r999999"},
		"another id":           {`tools.result({"id": "r1"})`, "", "ToolError: result (line 1): unknown result {'id': 'r1'}"},
		"its own result":       {`r = tools.result("r1"); tools.result(r) is r`, `true`, ""},
		"as an argument":       {`tools.a(x=tools.result("r1"))`, "", "TypeError: a tool cannot be called with this value: a kept result is passed on as its text()"},
		"as the last line":     {`tools.result("r1")`, "", ""},
		"a path that is wrong": {`tools.keep({}).select("$[")`, "", "ValueError: JSONPath, character 3"},
	} {
		t.Run(name, func(t *testing.T) {
			o := runOn(t, s, &shelf{HostFunc: echo, texts: []string{text}}, tt.code, Limits{})
			got := ""
			if o.Error != nil {
				got = o.Error.Type + ": " + o.Error.Message
			}
			if string(o.Value) != tt.value || !strings.HasPrefix(got, tt.err) || tt.err == "" && got != "" {
				t.Errorf("value %s, want %s; error %q, want %q", o.Value, tt.value, got, tt.err)
			}
			if name == "as the last line" && o.Repr != "<result r1, 17 characters>" {
				t.Errorf("repr %q", o.Repr)
			}
		})
	}
}

// TestSlicesReadNoMore counts what scripts ask their host for.
func TestSlicesReadNoMore(t *testing.T) {
	s := openTest(t, Options{})
	host := &shelf{HostFunc: echo, texts: []string{strings.Repeat("<é", 1<<20)}}
	if o := runOn(t, s, host, `r = tools.result("r1"); r[1000000:1000010] + r[-4:]`, Limits{}); string(o.Value) != `"`+strings.Repeat(`<\u00e9`, 7)+`"` {
		t.Errorf("%s %+v", o.Value, o.Error)
	}
	if got := fmt.Sprint(host.sizes); got != "[0 10 4]" {
		t.Errorf("asked for %s characters", got)
	}
	o := runOn(t, s, host, `r = tools.result("r1"); len(r.text()), r.text() == "<é" * (1 << 20), r[5]`, Limits{Transfer: 1 << 20})
	if string(o.Value) != `[2097152,true,"\u00e9"]` {
		t.Errorf("%s %+v", o.Value, o.Error)
	}
	for _, size := range host.sizes {
		if size > 1<<20 {
			t.Errorf("%d characters were asked for", size)
		}
	}
	if o := runOn(t, s, echo, `tools.keep(1)`, Limits{}); o.Error == nil || !strings.Contains(o.Error.Message, "results are not kept here") {
		t.Errorf("a host that keeps nothing: %+v", o.Error)
	}
	if o := runOn(t, s, host, "for i in range(1000): tools.keep(i)", Limits{Calls: 1}); o.Error == nil || o.Error.Type != "ToolError" || o.Calls != 0 {
		t.Errorf("%d calls, %+v", o.Calls, o.Error)
	}
	if o := runOn(t, s, host, `tools.keep("x" * (20 << 20))`, Limits{}); o.Error == nil || !strings.Contains(o.Error.Message, "too large") {
		t.Errorf("a text larger than a request: %+v", o.Error)
	}
}

// TestAValueOfItsOwnLimit returns values that are larger than the output may be.
func TestAValueOfItsOwnLimit(t *testing.T) {
	s := openTest(t, Options{})
	if o := run(t, s, `"x" * 5000`, Limits{Output: 1000, Value: 10_000}); len(o.Value) != 5002 || o.Truncated {
		t.Errorf("%d bytes of the value, truncated: %v", len(o.Value), o.Truncated)
	}
	if o := run(t, s, `"x" * 5000`, Limits{Output: 1000}); o.Value != nil || !o.Truncated {
		t.Errorf("%d bytes of the value, truncated: %v", len(o.Value), o.Truncated)
	}
}

// TestHostileReads has scripts that ask for parts and paths that no honest script would.
func TestHostileReads(t *testing.T) {
	s := openTest(t, Options{})
	host := &shelf{HostFunc: echo, texts: []string{"secret", `{"a":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + "}"}}
	raw := func(request string) string {
		return `import _drawbridge; print(_drawbridge.request(b'` + request + `').decode())`
	}
	for name, tt := range map[string]struct{ code, stdout, err, limit string }{
		"a negative place":   {raw(`{"op":"result","id":"r1","at":-1,"size":3}`), `{"error":{"message":"a part of a result begins at 0 or later`, "", ""},
		"a negative size":    {raw(`{"op":"result","id":"r1","at":0,"size":-3}`), `{"error":{"message":"a part of a result begins at 0 or later`, "", ""},
		"a huge place":       {raw(`{"op":"result","id":"r1","at":9223372036854775807,"size":9223372036854775807}`), `{"result":{"structuredContent":{"text":"","length":6,"tools":["x__source"]}}}`, "", ""},
		"a larger place":     {raw(`{"op":"result","id":"r1","at":1e99,"size":1}`), `{"error":{"message":"the request is not a JSON object`, "", ""},
		"a list as id":       {raw(`{"op":"result","id":["r1"]}`), `{"error":{"message":"the request is not a JSON object`, "", ""},
		"no id":              {raw(`{"op":"result"}`), `{"error":{"code":"not_found"`, "", ""},
		"a forged Result":    {`r = type(tools.keep(1))("r1", 10**9); print(len(r.text()))`, "6\n", "", ""},
		"a negative length":  {`r = type(tools.keep(1))("r1", -5); print(r[0:3])`, "\n", "", ""},
		"deep data":          {`print(len(tools.result("r2").select("$..*")))`, "400\n", "", ""},
		"half a surrogate":   {`r = tools.keep("\ud800x"); print(len(r), r.text() == "\ufffdx")`, "2 True\n", "", ""},
		"nested parentheses": {`tools.keep({}).select("$[?" + "(" * 100000 + "@" + ")" * 100000 + "]")`, "", "RecursionError", ""},
		"a path of 1 MB":     {`print(tools.keep({}).select("$" + ".a" * 500000))`, "[]\n", "", ""},
		"a product of paths": {`tools.result("r2").select("$" + "..*" * 30)`, "", "TimeoutError|MemoryError", "time|memory"},
		"a slow pattern":     {`tools.keep(["a" * 40 + "b"]).select("$[?search(@, '(a+)+$')]")`, "", "TimeoutError", "time"},
		"a huge number":      {`tools.keep([1]).select("$[" + "9" * 100000 + "]")`, "", "ValueError", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := Limits{Memory: 128 << 20, Time: 2 * time.Minute} // slow in process, on a busy machine
			if tt.limit != "" {
				limits.Time = 2 * time.Second
			}
			o := runOn(t, s, host, tt.code, limits)
			got := ""
			if o.Error != nil {
				got = o.Error.Type
			}
			if !strings.HasPrefix(o.Stdout, tt.stdout) || (tt.err == "") != (got == "") || !strings.Contains("|"+tt.err+"|", "|"+got+"|") ||
				!strings.Contains("|"+tt.limit+"|", "|"+o.Limit+"|") {
				t.Errorf("%q, error %+v, limit %q", o.Stdout, o.Error, o.Limit)
			}
		})
	}
}

// FuzzResultRequest sends requests for results to a host.
func FuzzResultRequest(f *testing.F) {
	f.Add("result", "r1", "x", 0, 1)
	f.Fuzz(func(t *testing.T, op, id, text string, at, size int) {
		r := &requests{host: &shelf{HostFunc: echo, texts: []string{"é€x"}}, limits: Limits{Transfer: 1000}}
		reply := r.results(t.Context(), scriptRequest{Op: op, ID: id, Text: text, At: at, Size: size})
		if e, ok := errors.AsType[*CallError](reply.Err); reply.Err == nil == (reply.Result == nil) || ok && e.Code == "" {
			t.Errorf("%s, %v", reply.Result, reply.Err)
		}
	})
}

// An askingShelf is a shelf whose calls of "ask" wait for a person.
type askingShelf struct {
	askingHost
	shelf
}

func (s *askingShelf) Call(ctx context.Context, c ToolCall) Reply { return s.askingHost.Call(ctx, c) }

var (
	_ ResultKeeper = (*askingShelf)(nil)
	_ Collector    = (*askingShelf)(nil)
)

// TestKeptResultsOfARepeatedRun ends the program while a person is asked. The texts in memory are lost: the host gets
// those of the run again, with their ids, and is told of the tools from which the script has results.
func TestKeptResultsOfARepeatedRun(t *testing.T) {
	eachMode(t, Options{}, testKeptResultsOfARepeatedRun)
}

func testKeptResultsOfARepeatedRun(t *testing.T, s *Sandbox) {
	const code = `
first = tools.result("r1").text()
kept = tools.keep([first, tools.read()["read"], tools.gather(tools.write.defer(n=1))])
try: tools.result("none")
except ToolError: pass
answer = tools.ask(n=2)["n"]
[first, kept.id, answer, tools.keep("later").id]`
	h, j := &askingShelf{shelf: shelf{texts: []string{"of an earlier script"}}}, &memoryJournal{}
	h.pending, h.crashAsked = map[string]ToolCall{}, 1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.crash = cancel
	if o, err := s.Run(ctx, Script{Code: code, Journal: j}, h); err == nil {
		t.Fatalf("the run did not wait: %+v", o)
	}
	after := &askingShelf{}
	after.pending = map[string]ToolCall{}
	o, err := s.Run(t.Context(), Script{Code: code, Journal: j, Entries: j.entries}, after)
	if want := `["of an earlier script","r2",2,"r1"]`; err != nil || string(o.Value) != want {
		t.Fatalf("%s %+v, %v; want %s", o.Value, o.Error, err, want)
	}
	if want := []string{`r2 ["of an earlier script",1,[{"n":1}]]`}; !slices.Equal(after.again, want) {
		t.Errorf("kept again: %q, want %q", after.again, want)
	}
	if want := []string{"x__source", "x__source", "read", "write"}; !slices.Equal(after.repeated, want) {
		t.Errorf("told of %q, want %q", after.repeated, want)
	}
	if len(after.sizes) != 0 || !slices.Equal(after.texts, []string{"later"}) {
		t.Errorf("asked for %v, kept %q", after.sizes, after.texts)
	}
}
