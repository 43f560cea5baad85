//go:build peers

package interop

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestTypeScript has both versions of the TypeScript SDK tell the same story against one URL.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	url := serveStory(t)
	for version, protocol := range map[string]era{"v1": legacy, "v2": modern} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			holdStory(t, protocol, playTypeScript(t, version, "story", url))
		})
	}
}

// TestEverything has both versions call every tool of server-everything. The one that is to be had as a task only is
// had as one where the client speaks of tasks as the server does, and plainly too.
func TestEverything(t *testing.T) {
	t.Parallel()
	url := serveHTTP(t,
		[]row{{Name: "every", Command: node,
			Args: []string{module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"}}})
	listed(t, &httpDoor{url: url, era: modern}, "every__echo")
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			got := playTypeScript(t, version, "everything", url)
			if len(got) < 17 {
				t.Errorf("only %d tools are listed: %v", len(got), got)
			}
			for tool, result := range got {
				if said, ok := result.(string); !ok || said == "" || strings.HasPrefix(said, "ERROR") {
					t.Errorf("%s: got %v", tool, result)
				}
			}
			t.Logf("%v", got)
		})
	}
}

// holdStory looks at what a client says it saw. The questions come in any order where they were asked together.
func holdStory(t *testing.T, protocol era, got map[string]any) {
	t.Helper()
	for member, names := range map[string][]string{
		"tools": {"every__echo", "every__simulate-research-query", "sdk__test_simple_text", "gomodern__ask",
			"golegacy__ask", "gopipe__ask"},
		"prompts": {"every__simple-prompt", "sdk__test_simple_prompt", "gomodern__greet", "golegacy__greet",
			"gopipe__greet"},
		"resources": {"test://static-text", "peers://note", "drawbridge+golegacy:peers://note",
			"drawbridge+gopipe:peers://note"},
		"templates": {"demo://resource/dynamic/text/{resourceId}", "test://template/{id}/data"},
	} {
		listed, _ := got[member].([]any)
		for _, name := range names {
			if !slices.Contains(listed, any(name)) {
				t.Errorf("%s: no %s in %v", member, name, listed)
			}
		}
		delete(got, member)
	}
	// mcp-go drops a notification now and then where it begins its stream.
	if seen, _ := got["progress modern"].([]any); len(seen) == 0 || seen[len(seen)-1] != "3/3" {
		t.Errorf("progress modern: %v", seen)
	}
	delete(got, "progress modern")
	for step, want := range map[string]string{
		"elicit legacy": "- Name: Ada", "sample legacy": "words of a model", "roots legacy": "URI: file:///peers",
		"unknown tool": "Unknown tool: nobody__nothing",
	} {
		if said := fmt.Sprint(got[step]); !strings.Contains(said, want) {
			t.Errorf("%s: got %s, want %q in it", step, said, want)
		}
		delete(got, step)
	}
	if diff := cmp.Diff(story(protocol), got,
		cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })); diff != "" {
		t.Error(diff)
	}
}

// story is what every client has to see, but for what holdStory looks at itself.
func story(protocol era) map[string]any {
	asked := []any{"elicitation: Who are you?", "sampling: say something", "roots"}
	s := map[string]any{
		"protocol": string(protocol), "server": "drawbridge",
		"echo": "Echo: hello", "structured": map[string]any{"temperature": 33.0, "conditions": "Cloudy",
			"humidity": 82.0},
		"content": []any{"text", "image", "resource"}, "tool error": true, "prompt": "Greet Ada",
		"complete":                 []any{"Engineering"},
		"read":                     "This is the content of the static text resource.",
		"elicit legacy: questions": []any{"elicitation: Please provide inputs for the following fields:"},
		"sample legacy: questions": []any{"sampling: Resource trigger-sampling-request context: hello"},
		"roots legacy: questions":  []any{},
		"ask modern":               "Ada, of file:///peers, by a-model", "ask modern: questions": asked,
		"ask legacy": "Ada, of file:///peers, by a-model", "ask legacy: questions": asked,
		"progress legacy": []any{"1/4", "2/4", "3/4", "4/4"}, "progress sdk": []any{"0/100", "50/100", "100/100"},
		"log": "info", "subscribe sdk": "test://watched-resource",
		"subscribe legacy":      "drawbridge+golegacy:peers://note",
		"list changed gomodern": true, "list changed golegacy": true, "cancel": "rejected", "cancel legacy": "rejected",
	}
	if protocol == legacy {
		s["elicit sdk"], s["elicit sdk: questions"] = "Elicitation result: action=accept, content=map[username:Ada]",
			[]any{"elicitation: hello"}
	} else {
		s["elicit sdk"], s["elicit sdk: questions"] = "Hello, Ada!", []any{"elicitation: What is your name?"}
	}
	return s
}

// serveStory mounts the servers of the story: a legacy one, one that speaks both generations, and one made with mcp-go
// twice, for each generation alone.
func serveStory(t *testing.T) (url string) {
	t.Helper()
	url = serveHTTP(t, []row{
		{Name: "every", Command: node,
			Args: []string{module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"}},
		{Name: "sdk", Command: conformant},
		{Name: "gomodern", Type: "http", URL: mcpGoHTTP(t, string(modern))},
		{Name: "golegacy", Type: "http", URL: mcpGoHTTP(t, string(legacy))},
		mcpGoRow(t, "gopipe", "stdio"),
	})
	listed(t, &httpDoor{url: url, era: modern}, "every__echo", "sdk__test_simple_text", "gomodern__echo",
		"golegacy__echo", "gopipe__echo")
	return url
}

// playTypeScript plays a story with one version of the SDK and gives what it prints.
func playTypeScript(t *testing.T, version, story, url string) map[string]any {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("clients", "run.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(limit(t, 2*time.Minute), node, path, version, story, url, version)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = os.Environ(), &stdout, &stderr, time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", version, story, err, stdout.Bytes(), stderr.Bytes())
	}
	var said map[string]any
	decode(t, stdout.Bytes(), &said)
	return said
}
