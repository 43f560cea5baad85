package toolsearch_test

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
)

// What a conversation costs beside definitions, in tokens: what the client says first, what a model writes to call a
// tool, what a tool answers, and what the model says in the end.
const (
	preamble, calling, answering, closing = 500, 60, 300, 200
)

// A recorded task is what someone wanted, and the tools that it takes: of each group one.
type recorded struct {
	ID, Query, Kind string
	Gold            []string
	Groups          [][]string
}

func (r recorded) needs() (groups [][]string) {
	if groups = r.Groups; len(groups) == 0 {
		for _, id := range r.Gold {
			groups = append(groups, []string{id})
		}
	}
	return groups
}

// recordings reads tools and tasks: those of a directory in the form of the retrieval data, which TOKENS_DATA names,
// or the sample.
func recordings(t testing.TB) (tools map[string]drawbridge.Spec, order []string, tasks []recorded) {
	t.Helper()
	from, to := filepath.Join("testdata", "tools.jsonl.gz"), filepath.Join("testdata", "tasks.jsonl")
	if dir := os.Getenv("TOKENS_DATA"); dir != "" {
		from, to = filepath.Join(dir, "tools.jsonl"), filepath.Join(dir, "queries.jsonl")
	}
	return readRecordings(t, from, to)
}

// readRecordings reads tools and tasks from two files.
func readRecordings(t testing.TB, from, to string) (tools map[string]drawbridge.Spec, order []string,
	tasks []recorded) {
	t.Helper()
	lines := func(path string, each func([]byte)) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var r io.Reader = f
		if strings.HasSuffix(path, ".gz") {
			if r, err = gzip.NewReader(f); err != nil {
				t.Fatal(err)
			}
		}
		s := bufio.NewScanner(r)
		for s.Buffer(nil, 4<<20); s.Scan(); {
			each(s.Bytes())
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
	}
	tools = map[string]drawbridge.Spec{}
	lines(from, func(line []byte) {
		server, own, text := rawjson.GetString(line, "server"), rawjson.GetString(line, "name"),
			rawjson.GetString(line, "description")
		name := server + "__" + own
		schema := slices.Clone(rawjson.Get(line, "inputSchema"))
		if schema == nil {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		id := rawjson.GetString(line, "id")
		tools[id] = drawbridge.Spec{
			Name: drawbridge.CardName(name), Server: drawbridge.ServerID(server), Tool: own,
			Definition: rawjson.Apply(nil, rawjson.Put(rawjson.Quote(name), "name"), rawjson.Put(rawjson.Quote(text),
				"description"), rawjson.Put(schema, "inputSchema")),
		}
		order = append(order, id)
	})
	sortByDigest(order)
	lines(to, func(line []byte) {
		var r recorded
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, r)
	})
	return tools, order, tasks
}

// sortByDigest orders ids by chance, always in the same way.
func sortByDigest(ids []string) {
	digest := func(id string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(id))) }
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(digest(a), digest(b)) })
}

// deckFor returns a deck of so many tools, those that the tasks need among them.
func deckFor(tools map[string]drawbridge.Spec, order []string, tasks []recorded, size int) (specs []drawbridge.Spec) {
	needed := map[string]bool{}
	for _, task := range tasks {
		for _, id := range slices.Concat(task.needs()...) {
			needed[id] = true
		}
	}
	left := size - len(needed)
	for _, id := range order {
		if needed[id] || left > 0 {
			specs = append(specs, tools[id])
			if !needed[id] {
				left--
			}
		}
	}
	slices.SortStableFunc(specs, func(a, b drawbridge.Spec) int { return cmp.Compare(a.Server, b.Server) })
	return specs
}

// A bill is what a conversation has cost: each turn the list, and all that was said before.
type bill struct{ list, said, total int }

func (b *bill) turn(says, hears int) {
	b.total += b.list + b.said
	b.said += says + hears
}

// direct is what a task costs where all tools are listed: a turn for each call, and one for the end.
func direct(v *toolsearch.CardView, task recorded) int {
	b := bill{list: v.Tokens(), said: preamble + toolsearch.EstimateTokens([]byte(task.Query))}
	for range task.needs() {
		b.turn(calling, answering)
	}
	b.turn(closing, 0)
	return b.total
}

// search is what it costs where tools are found first. The first question is the task itself. Each tool that was not
// found by then is asked for by the words of its name, and by these with more room, and if that does not find it it
// costs two such questions more. What was found stays in the conversation.
func search(ctx context.Context, v *toolsearch.CardView, tools map[string]drawbridge.Spec,
	task recorded) (cost, lost int) {
	b := bill{said: preamble + toolsearch.EstimateTokens([]byte(task.Query))}
	for _, card := range v.ShortList() {
		b.list += toolsearch.EstimateTokens(card)
	}
	seen := map[string]bool{}
	ask := func(query string, limit int) {
		arguments := json.RawMessage(fmt.Sprintf(`{"query":%s,"limit":%d}`, rawjson.Quote(query), limit))
		result := v.AnswerSearch(ctx, toolsearch.FindToolsName, arguments, nil).Raw
		for block := range rawjson.Elements(rawjson.Get(result, "content")) {
			b.turn(calling, toolsearch.EstimateTokens([]byte(rawjson.GetString(block, "text"))))
		}
		for tool := range rawjson.Elements(rawjson.Get(result, "structuredContent", "tools")) {
			seen[rawjson.GetString(tool, "name")] = true
		}
	}
	ask(task.Query, 5)
	for _, group := range task.needs() {
		there := func() bool {
			return slices.ContainsFunc(group, func(id string) bool { return seen[string(tools[id].Name)] })
		}
		words := strings.NewReplacer("_", " ", "-", " ").Replace(tools[group[0]].Tool)
		for _, limit := range []int{5, 20} {
			if !there() {
				ask(words, limit)
			}
		}
		if !there() {
			lost++
			ask(words, 20)
			ask(words, 20)
		}
		b.turn(calling, answering)
	}
	b.turn(closing, 0)
	return b.total, lost
}

// TestTokens counts what recorded tasks cost by each mode, with decks of several sizes. Auto never costs more than
// direct: not for all tasks together, and not for any one.
func TestTokens(t *testing.T) {
	tools, order, tasks := recordings(t)
	t.Logf("%d tasks\n tools  definitions     direct     search       auto  auto/direct  worst task  searches  not found", len(tasks))
	for _, size := range []int{10, 50, 100, 500} {
		var definitions, all, found, auto, lost, searches int
		worst := 0.0
		for some := range slices.Chunk(tasks, max(size/10, 1)) {
			specs := deckFor(tools, order, some, size)
			v := toolsearch.New(toolsearch.Options{Mode: toolsearch.Auto}).View("", 1,
				func() []drawbridge.Spec { return specs })
			definitions += v.Tokens() * len(some)
			for _, task := range some {
				d := direct(v, task)
				chosen := d
				if v.IsShort() || testing.Verbose() { // what no one reads is not counted
					s, l := search(t.Context(), v, tools, task)
					if found, lost = found+s, lost+l; v.IsShort() {
						chosen, searches = s, searches+1
					}
				}
				all, auto = all+d, auto+chosen
				worst = max(worst, float64(chosen)/float64(d))
			}
		}
		t.Logf("%6d %12d %10d %10d %10d %11.1f%% %10.1f%% %9d %10d", size, definitions/len(tasks), all, found, auto,
			100*float64(auto)/float64(all), 100*worst, searches, lost)
		if auto > all || worst > 1 {
			t.Errorf("%d tools: auto costs %d, direct %d; the worst task %.2f of it", size, auto, all, worst)
		}
		if size == 500 && float64(auto) > 0.4*float64(all) {
			t.Errorf("%d tools: auto saves %.1f %%, want 60", size, 100-100*float64(auto)/float64(all))
		}
	}
}
