package toolsearch_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// A price is how results and turns are counted.
type price struct {
	// results reports that results are counted, and together that calls of one line of a script share a turn when a model
	// makes them: as if it knew that they do not depend on each other.
	results, together bool
}

func (p price) of(result string) int {
	if !p.results {
		return 0
	}
	return toolsearch.EstimateTokens([]byte(result))
}

// callTokens returns the tokens that a model writes to make a call.
func callTokens(name drawbridge.CardName, arguments json.RawMessage) int {
	return toolsearch.EstimateTokens(rawjson.Apply(nil, rawjson.Put(rawjson.Quote(string(name)), "name"),
		rawjson.Put(arguments, "arguments")))
}

// distinctCalls returns the calls that a model makes in place of scripts: each once, in their order. A call that a later
// script repeats is not made again, because the model has its result.
func distinctCalls(runs []scriptRun) (calls []madeCall) {
	seen := map[string]bool{}
	for n, run := range runs {
		own := slices.Clone(run.calls)
		slices.SortStableFunc(own, func(a, b madeCall) int {
			return cmp.Or(cmp.Compare(a.line, b.line), strings.Compare(a.id, b.id), strings.Compare(string(a.arguments), string(b.arguments)))
		})
		for _, call := range own {
			key := call.id + string(call.arguments)
			if call.line += n * 1000; !seen[key] {
				calls = append(calls, call)
			}
			seen[key] = true
		}
	}
	return calls
}

// directCalls is what a task costs where all tools are listed and a model makes the calls of the scripts.
func directCalls(v *toolsearch.CardView, tools map[string]drawbridge.Spec, task recorded, runs []scriptRun, p price) int {
	b := bill{list: v.Tokens(), said: preamble + toolsearch.EstimateTokens([]byte(task.Query))}
	calls := distinctCalls(runs)
	for i := 0; i < len(calls); {
		says, hears, line := 0, 0, calls[i].line
		for first := i; i < len(calls) && (i == first || p.together && calls[i].line == line); i++ {
			says += callTokens(tools[calls[i].id].Name, calls[i].arguments)
			hears += p.of(calls[i].result)
		}
		b.turn(says, hears)
	}
	b.turn(closing, 0)
	return b.total
}

// A scriptBill is what a task costs in the mode Code, with the numbers of its searches and of tools not found by them.
type scriptBill struct{ cost, searches, lost int }

// byScripts searches, describes and runs the scripts. The first search is the task itself. Each tool that it does not
// find is searched for by the words of its name, then with more room, and then two more such searches are counted.
func byScripts(ctx context.Context, v *toolsearch.CardView, tools map[string]drawbridge.Spec, task recorded,
	runs []scriptRun, p price) (out scriptBill) {
	b := bill{said: preamble + toolsearch.EstimateTokens([]byte(task.Query))}
	for _, definition := range v.ShortList() {
		b.list += toolsearch.EstimateTokens(definition)
	}
	ask := func(name string, arguments map[string]any) string {
		raw, _ := json.Marshal(arguments) // it always encodes
		text := v.AnswerSearch(ctx, name, raw, nil).Text()
		b.turn(callTokens(drawbridge.CardName(name), raw), toolsearch.EstimateTokens([]byte(text)))
		return text
	}
	found := ""
	search := func(arguments map[string]any) {
		out.searches++
		found += "\n" + ask(toolsearch.SearchToolsName, arguments)
	}
	search(map[string]any{"query": task.Query})
	var names []string
	for _, call := range distinctCalls(runs) {
		name := string(tools[call.id].Name)
		if slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		isThere := func() bool { return strings.Contains(found, "\n"+name+": ") }
		words := strings.NewReplacer("_", " ", "-", " ").Replace(tools[call.id].Tool)
		for _, arguments := range []map[string]any{{"query": words}, {"query": words, "limit": 20}} {
			if !isThere() {
				search(arguments)
			}
		}
		if !isThere() {
			out.lost++
			search(map[string]any{"query": words, "limit": 20})
			search(map[string]any{"query": words, "limit": 20})
		}
	}
	ask(toolsearch.DescribeToolsName, map[string]any{"names": names})
	for _, run := range runs {
		arguments := rawjson.Apply(nil, rawjson.Put(rawjson.Quote(run.code), "code"))
		b.turn(callTokens(toolsearch.RunPythonName, arguments), p.of(run.shown))
	}
	b.turn(closing, 0)
	out.cost = b.total
	return out
}

// TestTokensOfScripts counts what the tasks that need several tools cost in the mode Code, and with the same calls and
// results where all tools are listed. Definitions, calls and results are counted alike. The ratio is that of all tasks
// together, and in the middle.
func TestTokensOfScripts(t *testing.T) {
	tools, order, tasks := multiStep(t)
	runs := runScripts(t, tools, tasks)
	for _, tt := range []struct {
		what string
		price
		bars bool
	}{
		{"", price{results: true}, true},
		{", results left out", price{}, false},
		{", calls of one line in one turn", price{results: true, together: true}, false},
		{", results left out, calls of one line in one turn", price{together: true}, false},
	} {
		t.Logf("%d tasks%s\n tools  definitions     direct       code  code/direct  median  mean  worst  searches  not found", len(tasks), tt.what)
		for i, size := range []int{10, 100, 500} {
			bar, c := []float64{1, 0.4, 0.15}[i], codeTotals{size: size}
			for some := range slices.Chunk(tasks, max(size/10, 1)) {
				c.add(t, tools, deckFor(tools, order, some, size), some, runs, tt.price)
			}
			total, median := c.ratios()
			t.Log(c)
			if tt.bars && max(total, median) > bar {
				t.Errorf("%d tools: code costs %.3f of direct, the task in the middle %.3f, want %.2f", size, total, median, bar)
			}
		}
	}
}

// codeTotals are the costs of all tasks with decks of one size.
type codeTotals struct {
	size, definitions, direct, code, searches, lost int
	each                                            []float64
}

// add counts tasks with one deck.
func (c *codeTotals) add(t *testing.T, tools map[string]drawbridge.Spec, specs []drawbridge.Spec, tasks []recorded,
	runs map[string][]scriptRun, p price) {
	runPython := cards.NewRunPythonCard(nil, nil, nil, sandbox.Limits{}, cards.ScriptResults{}, nil).Spec()
	all := toolsearch.New(toolsearch.Options{}).View("", 1, func() []drawbridge.Spec { return specs })
	few := toolsearch.New(toolsearch.Options{Mode: toolsearch.Code}).View("", 1,
		func() []drawbridge.Spec { return append([]drawbridge.Spec{runPython}, specs...) })
	c.definitions += all.Tokens() * len(tasks)
	for _, task := range tasks {
		d := directCalls(all, tools, task, runs[task.ID], p)
		s := byScripts(t.Context(), few, tools, task, runs[task.ID], p)
		c.direct, c.code, c.searches, c.lost = c.direct+d, c.code+s.cost, c.searches+s.searches, c.lost+s.lost
		c.each = append(c.each, float64(s.cost)/float64(d))
	}
	slices.Sort(c.each)
}

// ratios returns the costs of scripts as shares of those of direct calls: for all tasks together, and in the middle.
func (c codeTotals) ratios() (total, median float64) {
	return float64(c.code) / float64(c.direct), c.each[len(c.each)/2]
}

// String returns a row of the table.
func (c codeTotals) String() string {
	total, median := c.ratios()
	sum := 0.0
	for _, r := range c.each {
		sum += r
	}
	return fmt.Sprintf("%6d %12d %10d %10d %12.3f %7.3f %5.3f %6.2f %9d %10d", c.size, c.definitions/len(c.each), c.direct, c.code, total,
		median, sum/float64(len(c.each)), c.each[len(c.each)-1], c.searches, c.lost)
}

// TestTheCodeDefinitionsAreShortAndStable shows that the descriptions of the three tools have fewer than 400 tokens,
// whatever servers there are, and do not change when the servers' tools do.
func TestTheCodeDefinitionsAreShortAndStable(t *testing.T) {
	list := func(servers, tools int) (all string, descriptions, whole int) {
		specs := []drawbridge.Spec{cards.NewRunPythonCard(nil, nil, nil, sandbox.Limits{}, cards.ScriptResults{}, nil).Spec()}
		for s := range servers {
			for n := range tools {
				server, tool := fmt.Sprintf("an-mcp-server-%d", s), fmt.Sprintf("tool_%d", n)
				specs = append(specs, drawbridge.Spec{Name: drawbridge.CardName(server + "__" + tool), Server: drawbridge.ServerID(server),
					Tool: tool, Definition: json.RawMessage(`{"inputSchema":{"type":"object"}}`)})
			}
		}
		v := toolsearch.New(toolsearch.Options{Mode: toolsearch.Code}).View("", 1, func() []drawbridge.Spec { return specs })
		for _, definition := range v.ShortList() {
			all += string(definition) + "\n"
			descriptions += toolsearch.EstimateTokens([]byte(rawjson.GetString(definition, "description")))
			whole += toolsearch.EstimateTokens(definition)
		}
		return all, descriptions, whole
	}
	for _, servers := range []int{0, 1, 12, 13, 500} {
		text, descriptions, whole := list(servers, 1)
		t.Logf("%3d servers: descriptions of %d tokens, definitions of %d", servers, descriptions, whole)
		if descriptions >= 400 {
			t.Errorf("with %d servers the descriptions have %d tokens:\n%s", servers, descriptions, text)
		}
		if again, _, _ := list(servers, 7); again != text {
			t.Errorf("more tools, other definitions:\n%s\n%s", text, again)
		}
	}
}
