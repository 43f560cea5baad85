//go:build peers

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestInspector uses the gateway as a person with the Inspector's command line does: each era over HTTP on one URL, and
// over standard input and output.
func TestInspector(t *testing.T) {
	rows := []row{
		{Name: "sdk", Command: conformant},
		{Name: "every", Command: node,
			Args: []string{module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"}},
	}
	url := serveHTTP(t, rows)
	listed(t, &httpDoor{url: url, era: modern}, "sdk__test_simple_text", "every__echo")
	for _, e := range []string{"legacy", "modern", "auto"} {
		t.Run("http "+e, func(t *testing.T) {
			t.Parallel()
			inspectAll(t, []string{"--server-url", url, "--transport", "http", "--protocol-era", e}, nil)
		})
		t.Run("stdio "+e, func(t *testing.T) {
			t.Parallel()
			// The Inspector starts the gateway anew for each command.
			inspectAll(t, []string{"--protocol-era", e}, warmed(t, rows, "sdk__test_simple_text", "every__echo").Args)
		})
	}
}

// inspectAll runs one command of each kind and looks at what it prints.
func inspectAll(t *testing.T, options, command []string) {
	names := func(method, member string, want ...string) {
		var result map[string][]struct{ Name string }
		decode(t, inspect(t, options, command, "--method", method), &result)
		var got []string
		for _, item := range result[member] {
			got = append(got, item.Name)
		}
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("%s: no %s in %v", method, name, got)
			}
		}
	}
	names("tools/list", "tools", "sdk__test_simple_text", "every__echo", "every__get-sum")
	names("resources/list", "resources", "static-text", "architecture.md")
	names("prompts/list", "prompts", "sdk__test_simple_prompt", "every__simple-prompt")

	says := func(want string, args ...string) {
		var result struct{ Content []struct{ Text string } }
		decode(t, inspect(t, options, command, append([]string{"--method", "tools/call", "--tool-name"}, args...)...),
			&result)
		if len(result.Content) != 1 || !strings.Contains(result.Content[0].Text, want) {
			t.Errorf("%s: got %+v, want %q in it", args[0], result, want)
		}
	}
	says("This is a simple text response", "sdk__test_simple_text")
	says("42", "every__get-sum", "--tool-args-json", `{"a":40,"b":2}`)
}

// inspect runs the Inspector once and gives the result it prints.
func inspect(t *testing.T, options, command []string, args ...string) json.RawMessage {
	t.Helper()
	var printed struct{ Result json.RawMessage }
	decode(t, inspector(t, options, command, args...), &printed)
	return printed.Result
}

// inspector runs the Inspector once and gives what it prints. A target command comes last.
func inspector(t *testing.T, options, command []string, args ...string) []byte {
	t.Helper()
	out, stderr, err := tryInspector(t, options, command, args...)
	if err != nil {
		t.Fatalf("inspector %v: %v\n%s%s", args, err, out, stderr)
	}
	return out
}

// tryInspector is inspector for a command that may fail.
func tryInspector(t *testing.T, options, command []string, args ...string) (out, errors []byte, err error) {
	t.Helper()
	args = append(slices.Concat([]string{module(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js"),
		"--cli", "--format", "json", "-q"}, options), args...)
	if command != nil {
		args = append(append(args, "--"), command...)
	}
	home := t.TempDir()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(limit(t, 5*time.Minute), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "MCP_CATALOG_PATH="+filepath.Join(home, "catalog.json"))
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, time.Second
	err = cmd.Run()
	return stdout.Bytes(), stderr.Bytes(), err
}
