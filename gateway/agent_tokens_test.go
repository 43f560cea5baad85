//go:build bench && !nomcp

package gateway

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// A tokenTask is a task of the recorded ones: what a person wants, and the tools that it takes.
type tokenTask struct {
	Query string
	Gold  []string
}

// jsonLines reads the values of a file with one value on each line.
func jsonLines[T any](t *testing.T, path string) (all []T) {
	t.Helper()
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
	lines := bufio.NewScanner(r)
	for lines.Buffer(nil, 4<<20); lines.Scan(); {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// A countingModel makes the calls that a task takes, one a turn, and counts the tokens of the requests. A tool that it
// does not see it looks for with find_tools: twice, and then it calls the tool by its name.
type countingModel struct {
	todo   []string       // names of tools
	asked  int            // searches for the first of todo
	listed map[string]int // tokens of all tools that a request could list, by name
	// sent is the sum of the tokens of all requests. all is the sum for the same messages with all tools listed; the
	// searches are left out, as a model that sees all tools makes none.
	sent, all, searches int
	said, found         int // tokens of all messages, and of those that belong to searches
}

func (m *countingModel) Info() drawbridge.ModelInfo {
	return drawbridge.ModelInfo{Provider: "bench", Name: "counting", Window: 10_000_000}
}

func tokensOf(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return toolsearch.EstimateTokens(text)
}

func (m *countingModel) Generate(_ context.Context, r drawbridge.ModelRequest, _ func(drawbridge.ModelDelta)) (
	drawbridge.ModelResponse, error) {
	before := m.said
	m.said = tokensOf(r.Instructions) + tokensOf(r.Messages)
	if m.asked > 0 {
		m.found += m.said - before
	}
	list := 0
	shown := map[string]bool{}
	for _, tool := range r.Tools {
		if !tool.Deferred {
			list += tokensOf(tool)
			shown[string(tool.Name)] = true
		}
	}
	m.sent += m.said + list
	if m.asked == 0 {
		m.all += m.said - m.found
		for _, n := range m.listed {
			m.all += n
		}
	}
	if len(m.todo) == 0 {
		return response(drawbridge.MessagePart{Text: "It is done."}), nil
	}
	name := m.todo[0]
	if !shown[name] && m.asked < 2 {
		m.asked++
		m.searches++
		words := strings.NewReplacer("_", " ", "-", " ").Replace(name)
		return makesCall(toolsearch.FindToolsName, json.RawMessage(fmt.Sprintf(`{"query":%s}`, rawjson.Quote(words)))), nil
	}
	m.todo, m.asked = m.todo[1:], 0
	return makesCall(name, json.RawMessage(`{}`)), nil
}

func response(p drawbridge.MessagePart) drawbridge.ModelResponse {
	return drawbridge.ModelResponse{Stop: drawbridge.StopEnd, Message: drawbridge.Message{Role: drawbridge.AssistantRole,
		Parts: []drawbridge.MessagePart{p}}}
}

func makesCall(name string, arguments json.RawMessage) drawbridge.ModelResponse {
	return response(drawbridge.MessagePart{ToolCall: &drawbridge.ToolCall{ID: name, Name: drawbridge.CardName(name),
		Arguments: arguments}})
}

// TestAgentTokens runs recorded tasks in sessions of the agent over a gateway, and compares the tokens of all requests
// with those of the same conversations when all tools are listed.
func TestAgentTokens(t *testing.T) {
	data := filepath.Join("..", "internal", "toolsearch", "testdata")
	tools := map[string]json.RawMessage{}
	var order []string
	for _, raw := range jsonLines[json.RawMessage](t, filepath.Join(data, "tools.jsonl.gz")) {
		id := rawjson.GetString(raw, "id")
		tools[id], order = raw, append(order, id)
	}
	tasks := jsonLines[tokenTask](t, filepath.Join(data, "tasks.jsonl"))
	for _, part := range []struct {
		size int
		bar  float64
	}{{100, 0.6}, {500, 0.25}} {
		var sum countingModel
		// A deck of 100 tools has the tools of ten tasks, and ninety others.
		for some := range slices.Chunk(tasks, max(part.size/10, 1)) {
			m := tokensOfTasks(t, tools, order, some, part.size)
			sum.sent, sum.all, sum.searches = sum.sent+m.sent, sum.all+m.all, sum.searches+m.searches
		}
		ratio := float64(sum.sent) / float64(sum.all)
		t.Logf("%d tools, %d tasks: %d tokens, %d with all tools listed: %.3f (bar %.2f), %d searches", part.size,
			len(tasks), sum.sent, sum.all, ratio, part.bar, sum.searches)
		if ratio > part.bar {
			t.Errorf("%d tools: %.3f of the tokens, want at most %.2f", part.size, ratio, part.bar)
		}
	}
}

// tokensOfTasks runs tasks over one gateway whose server has the tools that they take, and others up to size.
func tokensOfTasks(t *testing.T, tools map[string]json.RawMessage, order []string, tasks []tokenTask, size int) (
	sum countingModel) {
	t.Helper()
	chosen := map[string]bool{}
	for _, task := range tasks {
		for _, id := range task.Gold {
			chosen[id] = true
		}
	}
	for _, id := range order {
		if len(chosen) < size {
			chosen[id] = true
		}
	}
	parts := map[string][]mcptest.ServerPart{}
	for _, id := range slices.Sorted(maps.Keys(chosen)) {
		server := serverName(rawjson.GetString(tools[id], "server"))
		parts[server] = append(parts[server], mcptest.Tool{Name: rawjson.GetString(tools[id], "name"),
			Schema: rawjson.Get(tools[id], "inputSchema"), Description: rawjson.GetString(tools[id], "description"),
			Answer: mcptest.Text(strings.Repeat("a result ", 100))})
	}
	var rows []config.Server
	for server, its := range parts {
		row := mcptest.NewServer(t, its...).HTTP(drawbridge.ServerID(server))
		rows = append(rows, row)
	}
	dir := t.TempDir()
	g := agentGateway(t, dir, rows...)
	for i, task := range tasks {
		m := &countingModel{listed: map[string]int{}}
		for _, id := range task.Gold {
			server, tool, _ := strings.Cut(id, "/")
			m.todo = append(m.todo, serverName(server)+"__"+tool)
		}
		session := fmt.Sprintf("s%d", i)
		own := g.AgentTools(session, AgentOptions{Dir: dir})
		who := agent.Identity{Session: session, Mode: agent.Bypass}
		if _, err := own.Brief(t.Context(), who, true); err != nil {
			t.Fatal(err)
		}
		all, err := own.Select(t.Context(), who, task.Query, nil)
		if err != nil || len(all) < size {
			t.Fatalf("%d tools, %v %+v", len(all), err, g.Status())
		}
		for _, tool := range all {
			tool.Deferred = false
			if m.listed[string(tool.Name)] = tokensOf(tool); tool.Name == toolsearch.FindToolsName {
				delete(m.listed, toolsearch.FindToolsName)
			}
		}
		for _, name := range m.todo {
			if m.listed[name] == 0 {
				t.Fatalf("%s is not listed", name)
			}
		}
		s, err := agent.New(t.Context(), agent.Options{Model: m, Tools: own, Mode: agent.Bypass})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(t.Context(), []drawbridge.MessagePart{{Text: task.Query}}, nil); err != nil {
			t.Fatal(err)
		}
		if len(m.todo) > 0 {
			t.Fatalf("not called: %q", m.todo)
		}
		own.Close()
		sum.sent, sum.all, sum.searches = sum.sent+m.sent, sum.all+m.all, sum.searches+m.searches
	}
	return sum
}

// serverName returns a name that a server may have.
func serverName(recorded string) string { return strings.ReplaceAll(recorded, " ", "-") }
