package toolsearch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

const stepsDir = "testdata/steps"

// A recordedResult is what a tool answers, to calls with these arguments among others.
type recordedResult struct {
	Tool string
	When map[string]any
	Text string
}

// A madeCall is a call of a script with its result.
type madeCall struct {
	id        string // of the tool
	line      int    // of the script
	arguments json.RawMessage
	result    string
}

// A scriptRun is a script with what it printed and called.
type scriptRun struct {
	code, shown string
	calls       []madeCall
}

// multiStep reads the tasks that need several tools, and the tools of the sample with those of these tasks.
func multiStep(t testing.TB) (tools map[string]drawbridge.Spec, order []string, tasks []recorded) {
	t.Helper()
	tools, order, _ = readRecordings(t, filepath.Join("testdata", "tools.jsonl.gz"), filepath.Join(stepsDir, "tasks.jsonl"))
	more, added, tasks := readRecordings(t, filepath.Join(stepsDir, "tools.jsonl"), filepath.Join(stepsDir, "tasks.jsonl"))
	maps.Copy(tools, more)
	order = append(order, added...)
	sortByDigest(order)
	return tools, order, tasks
}

// scriptsOf returns the scripts of a task in their order.
func scriptsOf(t testing.TB, id string) (scripts []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(stepsDir, "scripts", id+".*.py"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files { // sorted
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, string(text))
	}
	return scripts
}

// A recordedHost answers the calls of one script with recorded results.
type recordedHost struct {
	tools   map[string]drawbridge.Spec
	results []recordedResult

	mu    sync.Mutex
	calls map[int]madeCall
}

func pythonName(text string) string { return strings.ReplaceAll(text, "-", "_") }

// Call implements [sandbox.Host].
func (h *recordedHost) Call(_ context.Context, call sandbox.ToolCall) sandbox.Reply {
	name := pythonName(strings.Replace(call.Name, "__", ".", 1))
	for id, spec := range h.tools {
		if pythonName(string(spec.Server)+"."+spec.Tool) != name {
			continue
		}
		var arguments map[string]any
		if err := json.Unmarshal(call.Arguments, &arguments); err != nil {
			return sandbox.Reply{Err: err}
		}
		at := slices.IndexFunc(h.results, func(r recordedResult) bool {
			for name, value := range r.When {
				if fmt.Sprint(arguments[name]) != fmt.Sprint(value) {
					return false
				}
			}
			return r.Tool == id
		})
		if err := checkArguments(spec, arguments); err != nil || at < 0 {
			return sandbox.Reply{Err: errors.Join(err, fmt.Errorf("%s: result %d for %s", id, at, call.Arguments))}
		}
		h.mu.Lock()
		h.calls[len(h.calls)] = madeCall{id, call.Line, bytes.Clone(call.Arguments), h.results[at].Text}
		h.mu.Unlock()
		return sandbox.Reply{Result: rawjson.Apply(nil, rawjson.Put(append(rawjson.AppendQuoted([]byte(
			`[{"type":"text","text":`), h.results[at].Text), '}', ']'), "content"))}
	}
	return sandbox.Reply{Err: errors.New("unknown tool " + call.Name)}
}

// checkArguments returns an error for arguments that the schema of a tool does not have, and for missing ones.
func checkArguments(spec drawbridge.Spec, arguments map[string]any) error {
	schema := rawjson.Get(spec.Definition, "inputSchema")
	for name := range arguments {
		if rawjson.Get(schema, "properties", name) == nil {
			return fmt.Errorf("%s has no argument %s", spec.Name, name)
		}
	}
	for raw := range rawjson.Elements(rawjson.Get(schema, "required")) {
		if name, _ := rawjson.DecodeString(raw); arguments[name] == nil {
			return fmt.Errorf("%s needs the argument %s", spec.Name, name)
		}
	}
	return nil
}

// runScripts runs the scripts of all tasks in the sandbox, with the recorded results.
func runScripts(t testing.TB, tools map[string]drawbridge.Spec, tasks []recorded) map[string][]scriptRun {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(stepsDir, "results.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var results []recordedResult
	for line := range bytes.Lines(raw) {
		var r recordedResult
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	box, err := sandbox.Open(t.Context(), sandbox.Options{})
	if errors.Is(err, sandbox.ErrNoInterpreter) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	runs := map[string][]scriptRun{}
	for _, task := range tasks {
		for n, code := range scriptsOf(t, task.ID) {
			h := &recordedHost{tools: tools, results: results, calls: map[int]madeCall{}}
			o, err := box.Run(t.Context(), sandbox.Script{Code: code}, h)
			if err != nil {
				t.Fatal(err)
			}
			if o.Error != nil {
				t.Errorf("%s.%d: %s\n%s", task.ID, n+1, o.Error.Message, o.Error.Traceback)
			}
			run := scriptRun{code: code, shown: cards.FormatOutcome(o)}
			for i := range h.calls {
				run.calls = append(run.calls, h.calls[i])
			}
			runs[task.ID] = append(runs[task.ID], run)
		}
	}
	return runs
}

// TestTheScriptsOfTheTasksRun runs the scripts of the tasks that need several tools. They call all of these tools.
func TestTheScriptsOfTheTasksRun(t *testing.T) {
	tools, _, tasks := multiStep(t)
	runs := runScripts(t, tools, tasks)
	for _, task := range tasks {
		called := map[string]bool{}
		for n, run := range runs[task.ID] {
			t.Logf("%s.%d: %d calls, %d bytes: %.300q", task.ID, n+1, len(run.calls), len(run.shown), run.shown)
			if run.shown == "" {
				t.Errorf("%s.%d shows nothing", task.ID, n+1)
			}
			for _, call := range run.calls {
				called[call.id] = true
			}
		}
		for _, group := range task.needs() {
			if !slices.ContainsFunc(group, func(id string) bool { return called[id] }) {
				t.Errorf("%s does not call %v", task.ID, group)
			}
		}
	}
}
