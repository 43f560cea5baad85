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
	"time"
)

// TestInspectorUsesOwnTools calls Drawbridge's own tools with the Inspector's command line over standard input and output
// and over HTTP: reading, a tool that is not listed, a change of a file, its record and its undo, and a path that needs
// approval.
func TestInspectorUsesOwnTools(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "project")
	for path, text := range map[string]string{
		filepath.Join(project, "notes.txt"): "Buy milk.\n", filepath.Join(home, "mcp.json"): `{"servers":{}}`,
		filepath.Join(home, "outside.txt"): "not here\n",
		filepath.Join(home, "drawbridge", "drawbridge.toml"): "[deck]\nprofile = \"survey\"\nroots = [" +
			string(mustJSON(t, project)) + "]\n[serve]\nclients = {\"*\" = [\"*\", \"fs:write\"]}\n[tools]\nask_timeout = \"10ms\"\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(drawbridge, commandLine(home, args...)...)
		cmd.Dir, cmd.Env = project, homely(home)
		return cmd
	}
	stdio := append([]string{"env", "-C", project, "HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_STATE_HOME=" + home,
		drawbridge}, commandLine(home, "serve")...)
	url := served(t, run("serve", "--http", "127.0.0.1:0"))
	for _, way := range []struct {
		name             string
		options, command []string
	}{
		{"stdio", nil, stdio},
		{"http", []string{"--server-url", url, "--transport", "http"}, nil},
	} {
		t.Run(way.name, func(t *testing.T) {
			var list struct{ Tools []struct{ Name string } }
			decode(t, inspect(t, way.options, way.command, "--method", "tools/list"), &list)
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
			}
			if !slices.Contains(names, "read") || slices.Contains(names, "bash") || !slices.Contains(names, "write") {
				t.Errorf("listed: %v", names)
			}
			call := func(tool, args string) string {
				out, stderr, _ := tryInspector(t, way.options, way.command, "--method", "tools/call", "--tool-name", tool,
					"--tool-args-json", args) // it fails for a result that is an error
				return string(out) + string(stderr)
			}
			if got := call("read", `{"path":`+string(mustJSON(t, filepath.Join(project, "notes.txt")))+`}`); !strings.Contains(got, "Buy milk.") {
				t.Errorf("read: %s", got)
			}
			if got := call("read", `{"path":`+string(mustJSON(t, filepath.Join(home, "outside.txt")))+`}`); strings.Contains(got, "not here") {
				t.Errorf("read of a path outside: %s", got)
			}
			checkWriteAndUndo(t, project, call, run)
		})
	}
}

func checkWriteAndUndo(t *testing.T, project string, call func(tool, args string) string, run func(...string) *exec.Cmd) {
	t.Helper()
	if got := call("write", `{"path":"new.txt","content":"x"}`); !strings.Contains(got, "Saved 1 byte") {
		t.Errorf("write: %s", got)
	}
	var out []byte
	var err error
	// The hub stores its records in batches.
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(string(out), "  write  ") && time.Now().Before(deadline); {
		if out, err = run("audit", "log").CombinedOutput(); err != nil {
			break
		}
	}
	if err != nil || !strings.Contains(string(out), "  write  ") {
		t.Errorf("audit log: %s, %v", out, err)
	}
	if out, err = run("undo", "--yes").CombinedOutput(); err != nil || !strings.Contains(string(out), "Took back run") {
		t.Errorf("undo: %s, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(project, "new.txt")); !os.IsNotExist(err) {
		t.Errorf("the file is there after the undo: %v", err)
	}
}

func mustJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
