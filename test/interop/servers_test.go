//go:build peers

package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A reference is one of the reference servers as it stands in the configuration.
type reference struct {
	row
	// direct is the same server on standard input and output, to be asked without us.
	direct *exec.Cmd
	// probe is a call that every such server can answer, and what the answer contains.
	tool      string
	arguments map[string]any
	says      string
}

// TestReferenceServers mounts npm's reference servers together, one of them over all three transports, and uses them
// through both doors in both eras: every tool is listed as its server defines it, and one of each is called.
func TestReferenceServers(t *testing.T) {
	servers := references(t)
	rows := make([]row, len(servers))
	var probes []string
	for i, s := range servers {
		rows[i] = s.row
		probes = append(probes, s.Name+"__"+s.tool)
	}
	direct := definitions(t, servers)
	url := serveHTTP(t, rows)
	for _, e := range []era{legacy, modern} {
		t.Run("http "+string(e), func(t *testing.T) {
			t.Parallel()
			use(t, listed(t, &httpDoor{url: url, era: e}, probes...), servers, direct)
		})
		t.Run("stdio "+string(e), func(t *testing.T) {
			t.Parallel()
			use(t, listed(t, openStdio(t, serveCommand(t, rows), e), probes...), servers, direct)
		})
	}
}

// references starts what must be started and lays out the configuration.
func references(t *testing.T) []reference {
	t.Helper()
	entry := func(name string) string { return module(t, "@modelcontextprotocol/server-"+name+"/dist/index.js") }
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	memory := map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}
	echo := map[string]any{"message": "a peer's words"}
	all := []reference{
		{
			row:  row{Name: "every", Command: node, Args: []string{entry("everything"), "stdio"}},
			tool: "echo", arguments: echo, says: "a peer's words",
		},
		{
			row:  row{Name: "everyhttp", Type: "http", URL: everything(t, "streamableHttp") + "/mcp"},
			tool: "get-sum", arguments: map[string]any{"a": 40, "b": 2}, says: "42",
		},
		{
			row:  row{Name: "everysse", Type: "sse", URL: everything(t, "sse") + "/sse"},
			tool: "echo", arguments: echo, says: "a peer's words",
		},
		{
			row:  row{Name: "fs", Command: node, Args: []string{entry("filesystem"), dir}},
			tool: "read_text_file", arguments: map[string]any{"path": filepath.Join(dir, "hello.txt")},
			says: "hello from a file",
		},
		{
			row:  row{Name: "memory", Command: node, Args: []string{entry("memory")}, Env: memory},
			tool: "read_graph", arguments: map[string]any{}, says: "entities",
		},
		{
			row:  row{Name: "thinking", Command: node, Args: []string{entry("sequential-thinking")}},
			tool: "sequentialthinking", says: "thoughtHistoryLength",
			arguments: map[string]any{"thought": "one", "thoughtNumber": 1, "totalThoughts": 1,
				"nextThoughtNeeded": false},
		},
	}
	for i, s := range all {
		command, args := s.Command, s.Args
		if s.URL != "" {
			command, args = all[0].Command, all[0].Args
		}
		all[i].direct = exec.Command(command, args...)
		all[i].direct.Env = append(os.Environ(), "MEMORY_FILE_PATH="+memory["MEMORY_FILE_PATH"])
	}
	return all
}

// offer is what a server lists of its own, to a client that can do nothing and to one that can do everything: some
// tools are there for capable clients only.
type offer struct{ always, ever map[string]json.RawMessage }

// definitions asks each server itself.
func definitions(t *testing.T, servers []reference) map[string]offer {
	t.Helper()
	able := map[string]any{"roots": map[string]any{}, "sampling": map[string]any{},
		"elicitation": map[string]any{"form": map[string]any{}, "url": map[string]any{}}}
	offers := map[string]offer{}
	for _, s := range servers {
		again := *s.direct
		bare := enter(t, openStdio(t, s.direct, legacy), nil)
		full := enter(t, openStdio(t, exec.Command(again.Path, again.Args[1:]...), legacy), able)
		offers[s.Name] = offer{bare.tools(), full.tools()}
		if len(offers[s.Name].always) == 0 {
			t.Fatalf("%s lists nothing", s.Name)
		}
	}
	return offers
}

// use compares what is listed with what the servers say themselves, and calls one tool of each.
func use(t *testing.T, c *caller, servers []reference, direct map[string]offer) {
	tools := c.tools()
	for _, s := range servers {
		count := compare(t, tools, s.Name, direct[s.Name])
		result := c.call("tools/call", map[string]any{"name": s.Name + "__" + s.tool, "arguments": s.arguments})
		var said struct {
			IsError bool
			Content []struct{ Type, Text string }
		}
		decode(t, result, &said)
		if said.IsError || len(said.Content) == 0 || !strings.Contains(said.Content[0].Text, s.says) {
			t.Errorf("%s__%s: got %s, want %q in it", s.Name, s.tool, result, s.says)
		}
		t.Logf("%s: %d tools as the server defines them, %s answered", s.Name, count, s.tool)
	}
	useSiblings(t, c)
}

// compare holds the listed tools of a server against its own offer: the same objects but for the name.
func compare(t *testing.T, tools map[string]json.RawMessage, server string, own offer) (count int) {
	t.Helper()
	for name := range own.always {
		if tools[server+"__"+name] == nil {
			t.Errorf("%s does not list %s", server, name)
		}
	}
	for name, definition := range tools {
		tool, ok := strings.CutPrefix(name, server+"__")
		if !ok {
			continue
		}
		count++
		var got, want map[string]any
		decode(t, definition, &got)
		got["name"] = tool
		if own.ever[tool] == nil {
			t.Errorf("%s lists %s, which the server does not", server, tool)
			continue
		}
		decode(t, own.ever[tool], &want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is listed otherwise than its server has it:\n%s", name, diff)
		}
	}
	return count
}

// useSiblings reads a resource and gets a prompt: server-everything is mounted three times, so that the same URI has
// three owners, of which the first keeps it.
func useSiblings(t *testing.T, c *caller) {
	t.Helper()
	var uris []string
	for _, item := range c.list("resources/list", "resources") {
		var resource struct{ URI string }
		decode(t, item, &resource)
		uris = append(uris, resource.URI)
	}
	qualified := slices.IndexFunc(uris, func(uri string) bool {
		return strings.HasPrefix(uri,
			"drawbridge+everyhttp:")
	})
	if qualified < 0 {
		t.Fatalf("no resource of the second owner: %v", uris)
	}
	plain := strings.TrimPrefix(uris[qualified], "drawbridge+everyhttp:")
	for _, uri := range []string{uris[qualified], plain} {
		var read struct{ Contents []struct{ Text, Blob string } }
		decode(t, c.call("resources/read", map[string]any{"uri": uri}), &read)
		if len(read.Contents) == 0 || read.Contents[0].Text+read.Contents[0].Blob == "" {
			t.Errorf("%s: nothing in it", uri)
		}
	}
	prompts := c.list("prompts/list", "prompts")
	names := make([]string, len(prompts))
	for i, item := range prompts {
		names[i] = nameOf(t, item)
	}
	if !slices.Contains(names, "every__simple-prompt") {
		t.Fatalf("no every__simple-prompt in %v", names)
	}
	c.call("prompts/get", map[string]any{"name": "every__simple-prompt"})
}
