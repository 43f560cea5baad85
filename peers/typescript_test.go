//go:build peers

package peers

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestTypeScript has both versions of the TypeScript SDK tell the same story against one URL.
func TestTypeScript(t *testing.T) {
	url := serveStory(t)
	for _, script := range []string{"v1.mjs", "v2.mjs"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			got := tellStory(t, script, url, script[:2])
			text, _ := json.MarshalIndent(got, "", "  ")
			t.Logf("%s", text)
		})
	}
}

// serveStory mounts the servers of the story: a legacy one, one that speaks both generations, and one made with mcp-go
// twice, for each generation alone.
func serveStory(t *testing.T) (url string) {
	t.Helper()
	url = serveHTTP(t, []row{
		{Name: "every", Command: node, Args: []string{module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"}},
		{Name: "sdk", Command: conformant},
		{Name: "gomodern", Type: "http", URL: mcpGoHTTP(t, string(modern))},
		{Name: "golegacy", Type: "http", URL: mcpGoHTTP(t, string(legacy))},
		mcpGoRow(t, "gopipe", "stdio"),
	})
	listed(t, &httpDoor{url: url, era: modern}, "every__echo", "sdk__test_simple_text", "gomodern__echo", "golegacy__echo", "gopipe__echo")
	return url
}

// tellStory runs a client's script and gives what it prints.
func tellStory(t *testing.T, script, url, key string) map[string]any {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("clients", script))
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(limit(t, 2*time.Minute), node, path, url, key)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = os.Environ(), &stdout, &stderr, time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, stdout.Bytes(), stderr.Bytes())
	}
	var said map[string]any
	decode(t, stdout.Bytes(), &said)
	return said
}
