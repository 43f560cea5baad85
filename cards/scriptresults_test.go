package cards

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
	"github.com/google/go-cmp/cmp"
)

// hostWithResults returns a host that keeps results in a new store. A caller gets at most limit bytes of an outcome.
func hostWithResults(t *testing.T, s ScriptTools, store *ResultStore, limit int, patterns ...string) (*scriptHost, context.Context) {
	t.Helper()
	h, ctx := openHost(t, &stage{}, patterns...)
	h.run.Caller.Session, h.call.Caller.Session = "s", "s"
	h.tools, h.results = s, ScriptResults{Store: store, Gateway: "g", Limit: limit}
	return h, ctx
}

func TestCutOutcomes(t *testing.T) {
	long := func(s string) string { return strings.Repeat(s, 100/len(s)) }
	for name, tt := range map[string]struct {
		outcome sandbox.Outcome
		text    string
		kept    []string // the texts r1, r2 and so on
		cut     []cutPart
	}{
		"all fits": {outcome: sandbox.Outcome{Stdout: strings.Repeat("x", 59), Value: json.RawMessage(`1`)},
			text: strings.Repeat("x", 59) + "\n\n1\n"},
		"much output": {outcome: sandbox.Outcome{Stdout: long("é")},
			text: long("é")[:60] + "\n\n" + `[20 more characters: in the next script, r = tools.result("r1") has r[a:b] and r.lines(a, b)]` + "\n",
			kept: []string{long("é")}, cut: []cutPart{{"r1", "stdout", 50, 30}}},
		"a large value": {outcome: sandbox.Outcome{Stdout: "short", Value: json.RawMessage(`{"a":"` + long("v") + `"}`)},
			text: "short\n\n" + (`{"a":"` + long("v"))[:55] + "\n\n" + `[53 more characters: in the next script, r = tools.result("r1") has r[a:b], r.json() and r.select(jsonpath)]` + "\n",
			kept: []string{`{"a":"` + long("v") + `"}`}, cut: []cutPart{{"r1", "value", 108, 55}}},
		"a large text": {outcome: sandbox.Outcome{Value: json.RawMessage(`"` + long("<\\n>") + `"`)},
			text: strings.Repeat("<\n>", 20) + "\n\n" + `[15 more characters: in the next script, r = tools.result("r1") has r[a:b], r.json() and r.select(jsonpath)]` + "\n",
			kept: []string{strings.Repeat("<\n>", 25)}, cut: []cutPart{{"r1", "value", 75, 60}}},
		"a large repr": {outcome: sandbox.Outcome{Repr: long("r")},
			text: long("r")[:60] + "\n\n" + `[40 more characters: in the next script, r = tools.result("r1") has r[a:b], r.json() and r.select(jsonpath)]` + "\n",
			kept: []string{long("r")}, cut: []cutPart{{"r1", "value", 100, 60}}},
		"everything": {outcome: sandbox.Outcome{Stdout: long("o"), Stderr: long("e"), Value: json.RawMessage(`"` + long("v") + `"`), Truncated: true},
			text: long("o")[:20] + "\n\n" + `[80 more characters: in the next script, r = tools.result("r1") has r[a:b] and r.lines(a, b)]` + "\n\n" +
				"[the output is truncated]\n\n" +
				long("v")[:20] + "\n\n" + `[80 more characters: in the next script, r = tools.result("r3") has r[a:b], r.json() and r.select(jsonpath)]` + "\n\n" +
				"stderr:\n" + long("e")[:20] + "\n\n" + `[80 more characters: in the next script, r = tools.result("r2") has r[a:b] and r.lines(a, b)]` + "\n",
			kept: []string{long("o"), long("e"), long("v")},
			cut:  []cutPart{{"r1", "stdout", 100, 20}, {"r2", "stderr", 100, 20}, {"r3", "value", 100, 20}}},
	} {
		h, ctx := hostWithResults(t, &stage{}, openStore(t), 60)
		out := h.cutOutcome(tt.outcome)
		if diff := cmp.Diff(tt.text, out.text()); diff != "" {
			t.Errorf("%s: text (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.cut, out.Results); diff != "" {
			t.Errorf("%s: results (-want +got):\n%s", name, diff)
		}
		if len(out.Stdout)+len(out.Stderr)+len(valueText(out.Outcome)) > 60 {
			t.Errorf("%s: too much is returned: %+v", name, out)
		}
		for i, want := range tt.kept {
			part, err := h.Read(ctx, []string{"r1", "r2", "r3"}[i], 0, 1000)
			if err != nil || part.Text != want {
				t.Errorf("%s: kept %q, %v", name, part.Text, err)
			}
		}
	}
}

// TestWhoGetsTheWholeOutcome has the person at the command line, and a card without a store.
func TestWhoGetsTheWholeOutcome(t *testing.T) {
	long := sandbox.Outcome{Stdout: strings.Repeat("x", 1000)}
	h, _ := hostWithResults(t, &stage{}, openStore(t), 10)
	h.run.Caller.Kind = drawbridge.Author
	if out := h.cutOutcome(long); out.Stdout != long.Stdout || out.Results != nil {
		t.Errorf("the person gets %+v", out)
	}
	h, ctx := openHost(t, &stage{})
	if out := h.cutOutcome(long); out.Stdout != long.Stdout {
		t.Errorf("without a store: %+v", out)
	}
	if _, err := h.Keep(ctx, "x", ""); err == nil {
		t.Error("kept without a store")
	}
	if _, err := h.Read(ctx, "r1", 0, 1); err == nil {
		t.Error("read without a store")
	}
	h, _ = hostWithResults(t, &stage{}, openStore(t), 10)
	huge := sandbox.Outcome{Stdout: strings.Repeat("x", maxOwnerBytes)}
	if out := h.cutOutcome(huge); !out.Truncated || len(out.Stdout) != 10 || !strings.Contains(out.text(), "too many to keep") {
		t.Errorf("a result that cannot be kept: %.300s", out.text())
	}
}

// A changing is a stage in which tools can be taken away. A tool that is not listed does not exist.
type changing struct {
	stage
	gone []string
}

func (c *changing) Tools(ctx context.Context, caller drawbridge.Caller, wait bool) []drawbridge.Spec {
	return slices.DeleteFunc(c.stage.Tools(ctx, caller, wait), func(s drawbridge.Spec) bool { return slices.Contains(c.gone, string(s.Name)) })
}

func (c *changing) Call(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	name := rawjson.GetString(call.Params, "name")
	if !slices.ContainsFunc(c.Tools(ctx, call.Caller, false), func(s drawbridge.Spec) bool { return string(s.Name) == name }) {
		return drawbridge.Result{}, &drawbridge.Fault{Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound, Step: name}
	}
	return c.stage.Call(ctx, call)
}

// TestResultsNeedTheirTools keeps results of tools, some of them through other results, and takes the tools away.
func TestResultsNeedTheirTools(t *testing.T) {
	s, store := &changing{}, openStore(t)
	h, ctx := hostWithResults(t, s, store, 0)
	none, _ := h.Keep(ctx, "of no tool", "")
	h.Call(ctx, sandbox.ToolCall{Name: "no.such_tool"})
	h.Call(ctx, sandbox.ToolCall{Name: "x.free"})
	pending := h.Call(ctx, sandbox.ToolCall{Name: "x.once"})
	h.Flush(ctx, []string{pending.Pending}, plainBatch{})
	both, _ := h.Keep(ctx, "of x__free and x__once", "")
	h, ctx = hostWithResults(t, s, store, 0)
	if _, err := h.Read(ctx, both.ID, 0, 1); err != nil {
		t.Fatal(err)
	}
	derived, _ := h.Keep(ctx, "of the other result", "")

	type readable struct{ none, both, derived bool }
	read := func(patterns ...string) readable {
		h, ctx := hostWithResults(t, s, store, 0, patterns...)
		can := func(id string) bool {
			part, err := h.Read(ctx, id, 0, 100)
			if e, ok := errors.AsType[*sandbox.CallError](err); err != nil && (!ok || e.Code != "not_found" || part.Text != "") {
				t.Errorf("%+v, %v", part, err)
			}
			return err == nil
		}
		return readable{can(none.ID), can(both.ID), can(derived.ID)}
	}
	for _, tt := range []struct {
		gone, patterns []string
		want           readable
	}{
		{nil, nil, readable{true, true, true}},
		{[]string{"x__twice"}, nil, readable{true, true, true}},
		{[]string{"x__free"}, nil, readable{none: true}},
		{[]string{"x__once"}, nil, readable{none: true}},
		{nil, []string{"x__free"}, readable{none: true}},
		{nil, []string{"x__free", "x__o*"}, readable{true, true, true}},
		{nil, nil, readable{true, true, true}}, // the tools are back
	} {
		s.gone = tt.gone
		if got := read(tt.patterns...); got != tt.want {
			t.Errorf("without %v, only %v: %+v, want %+v", tt.gone, tt.patterns, got, tt.want)
		}
	}
}

// TestResultsOfARepeatedRun has a host told of the calls that a repeated run was answered from its journal.
func TestResultsOfARepeatedRun(t *testing.T) {
	s, store := &changing{}, openStore(t)
	h, ctx := hostWithResults(t, s, store, 0)
	h.Repeat(ctx, sandbox.ToolCall{Name: "x.free"})
	kept, err := h.Keep(ctx, "text", "r5")
	if err != nil || kept.ID != "r5" {
		t.Fatalf("%+v, %v", kept, err)
	}
	part, err := h.Read(ctx, "r5", 0, 4)
	if diff := cmp.Diff(sandbox.ResultPart{Text: "text", Length: 4, Tools: []string{"x__free"}}, part); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	s.gone = []string{"x__free"}
	if _, err := h.Read(ctx, "r5", 0, 4); err == nil {
		t.Error("a result of a recorded call is read without its tool")
	}
	h, ctx = hostWithResults(t, s, store, 0, "x__o*")
	h.Repeat(ctx, sandbox.ToolCall{Name: "x.free"})
	if kept, _ = h.Keep(ctx, "of a tool that is lost", ""); kept.ID == "" {
		t.Fatal("not kept")
	}
	if _, err := h.Read(ctx, kept.ID, 0, 1); err == nil {
		t.Error("a result of a lost tool is read")
	}
}

// TestKeptForeignTexts keeps a foreign text and reads it in other scripts.
func TestKeptForeignTexts(t *testing.T) {
	s, store := &changing{}, openStore(t)
	h, ctx := hostWithResults(t, s, store, 0)
	plain, _ := h.Keep(ctx, "plain", "")
	(&collectedCall{host: h}).NoteForeign()
	foreign, _ := h.Keep(ctx, "foreign", "")
	h, ctx = hostWithResults(t, s, store, 0)
	if _, err := h.Read(ctx, plain.ID, 0, 1); err != nil || h.foreign.Load() {
		t.Errorf("a plain result: %v, foreign: %v", err, h.foreign.Load())
	}
	if _, err := h.Read(ctx, foreign.ID, 0, 0); err != nil || !h.foreign.Load() {
		t.Errorf("a foreign result: %v, foreign: %v", err, h.foreign.Load())
	}
	derived, _ := h.Keep(ctx, "derived", "")
	h, ctx = hostWithResults(t, s, store, 0)
	if _, err := h.Read(ctx, derived.ID, 0, 1); err != nil || !h.foreign.Load() {
		t.Errorf("a derived result: %v, foreign: %v", err, h.foreign.Load())
	}
}

// TestAToolOfALateServer calls a tool that is listed only after its call.
func TestAToolOfALateServer(t *testing.T) {
	s, store := &changing{gone: []string{"x__my-tool"}}, openStore(t)
	h, ctx := hostWithResults(t, s, store, 0)
	h.available(ctx, true)
	s.gone = nil
	h.addCalled(ctx, "x.my_tool", "x__my_tool", nil)
	kept, _ := h.Keep(ctx, "text", "")
	if _, err := h.Read(ctx, kept.ID, 0, 1); err != nil {
		t.Error(err)
	}
	s.gone = []string{"x__my-tool"}
	if _, err := h.Read(ctx, kept.ID, 0, 1); err == nil {
		t.Error("the result is read without its tool")
	}
}

// TestOutputsMatchTheSchema checks results of run_python against its output schema.
func TestOutputsMatchTheSchema(t *testing.T) {
	for _, o := range []sandbox.Outcome{
		{Stdout: "x", Value: json.RawMessage(`{"a":[1,null]}`)}, {Value: json.RawMessage(`42`), Stderr: "e", Limit: "time", Calls: 3},
		{Stdout: strings.Repeat("x", 100), Repr: "r", Error: &sandbox.ScriptError{Type: "E", Message: "m", Line: 1, Traceback: "t"}},
	} {
		card := NewRunPythonCard(outcomeRunner{o}, &stage{}, noRuns{}, sandbox.Limits{}, ScriptResults{Store: openStore(t), Limit: 50}, nil)
		result, err := card.Run(t.Context(), drawbridge.Call{Caller: ada, Params: json.RawMessage(`{"arguments":{"code":"1"}}`)})
		if err != nil {
			t.Fatal(err)
		}
		if err := check(rawjson.Get(card.Spec().Definition, "outputSchema"), rawjson.Get(result.Raw, "structuredContent")); err != nil {
			t.Errorf("%s: %v", result.Raw, err)
		}
	}
}

// An outcomeRunner is a ScriptRunner whose scripts all have the same outcome.
type outcomeRunner struct{ outcome sandbox.Outcome }

func (r outcomeRunner) Run(context.Context, sandbox.Script, sandbox.Host) (sandbox.Outcome, error) {
	return r.outcome, nil
}
