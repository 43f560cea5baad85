//go:build peers

package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// summaryScript reads the files of a directory through the filesystem server and writes one summary.
const summaryScript = `
import tools

def text_of(result):
    return result["content"] if isinstance(result, dict) else result

folder = arguments["folder"]
listing = text_of(tools.fs.list_directory(path=folder))
names = sorted(line.removeprefix("[FILE] ") for line in listing.splitlines() if line.startswith("[FILE] "))
texts = tools.gather(tools.fs.read_text_file.defer(path=f"{folder}/{name}") for name in names)
total = sum(int(text_of(t).split()[-1]) for t in texts)
written = tools.fs.write_file(path=f"{folder}/summary.txt", content=f"{len(names)} files, {total} in all")
print(len(names), total, tools.everything.echo(message="done"))
print(written)
`

// TestInspectorRunsAScript has the Inspector, in the mode code, find tools, and run one script that reads fifty files and
// writes one. The write needs an approval, which is asked for once and given by the command line.
func TestInspectorRunsAScript(t *testing.T) {
	home := t.TempDir()
	folder := filepath.Join(home, "folder")
	servers, err := json.Marshal(map[string]any{"servers": map[string]any{
		"everything": map[string]any{"command": node, "args": []string{module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"}},
		"fs":         map[string]any{"command": node, "args": []string{module(t, "@modelcontextprotocol/server-filesystem/dist/index.js"), folder}},
		"memory": map[string]any{"command": node, "args": []string{module(t, "@modelcontextprotocol/server-memory/dist/index.js")},
			"env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(home, "memory.json")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"mcp.json": string(servers), "drawbridge/drawbridge.toml": "[mcp.tool_discovery]\nmode = \"code\"\n" +
		"[[tools.policy.rules]]\neffect = \"ask\"\nservers = \"fs\"\ntools = \"write_*\"\n"}
	for i := range 50 {
		files[fmt.Sprintf("folder/%02d.txt", i)] = fmt.Sprintf("value %d\n", i)
	}
	for path, text := range files {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(drawbridge, commandLine(home, args...)...)
		cmd.Dir, cmd.Env = home, homely(home)
		return cmd
	}
	options := []string{"--server-url", served(t, run("serve", "--http", "127.0.0.1:0")), "--transport", "http"}
	var list struct{ Tools []struct{ Name string } }
	decode(t, inspect(t, options, nil, "--method", "tools/list"), &list)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if want := []string{"describe_tools", "run_python", "search_tools"}; !slices.Equal(names, want) {
		t.Errorf("listed: %v, want %v", names, want)
	}
	call := func(tool string, arguments any) string {
		out, stderr, _ := tryInspector(t, options, nil, "--method", "tools/call", "--tool-name", tool,
			"--tool-args-json", string(mustJSON(t, arguments)))
		return string(out) + string(stderr)
	}
	found := ""
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(found, "fs__write_file") && time.Now().Before(deadline); {
		found = call("search_tools", map[string]any{"query": "write a text file", "limit": 20})
	}
	if !strings.Contains(found, "fs__write_file") {
		t.Fatalf("search_tools: %s", found)
	}
	if got := call("describe_tools", map[string]any{"names": []string{"fs__write_file"}}); !strings.Contains(got, `\"path\"`) {
		t.Errorf("describe_tools: %s", got)
	}
	result := make(chan string, 1)
	go func() {
		result <- call("run_python", map[string]any{"code": summaryScript, "arguments": map[string]string{"folder": folder}})
	}()
	id := waitingID(t, run)
	shown, err := run("ask", "show", id).CombinedOutput()
	if err != nil || !strings.Contains(string(shown), `"content": "50 files, 1225 in all"`) ||
		!strings.Contains(string(shown), "The script makes 1 call of 1 tool") {
		t.Errorf("ask show: %s, %v", shown, err)
	}
	if out, err := run("ask", "allow", id).CombinedOutput(); err != nil {
		t.Errorf("ask allow: %s, %v", out, err)
	}
	if got := <-result; !strings.Contains(got, "50 1225 Echo: done") {
		t.Errorf("run_python: %s", got)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "summary.txt")); string(text) != "50 files, 1225 in all" {
		t.Errorf("summary.txt: %q, %v", text, err)
	}
}

// waitingID waits for a call that needs an approval, and returns its id.
func waitingID(t *testing.T, run func(...string) *exec.Cmd) string {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		out, err := run("ask", "--json").Output()
		if err != nil {
			t.Fatalf("ask: %v", err)
		}
		var waiting []struct{ ID string }
		if err := json.Unmarshal(out, &waiting); err != nil {
			t.Fatalf("ask: %v: %s", err, out)
		}
		if len(waiting) > 0 {
			return waiting[0].ID
		}
	}
	t.Fatal("no call waits for an approval")
	return ""
}
