//go:build unix && !nomcp

package attack

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/google/go-cmp/cmp"
)

// TestWhatAServerIsGiven has a program look at what it was started with: rows EX-3 to EX-6. It says so on its standard
// error and ends.
func TestWhatAServerIsGiven(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inherited := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CANARY=a secret of the parent's", "LD_PRELOAD_CANARY=x",
		"NODE_OPTIONS=--require ./canary.js",
		"PYTHONSTARTUP=canary.py", "GIT_SSH_COMMAND=canary", "AWS_SECRET_ACCESS_KEY=canary",
	}
	yes := true
	for _, tt := range []struct {
		name, script string
		args         []string
		check        func(t *testing.T, said []string)
	}{
		{"EX-3 arguments pass no shell", `printf '%s\n' "$@" >&2`, []string{"a  b", "$(id)", "`id`", ";id", "*",
			"$CANARY", "-n", "'\""}, func(t *testing.T, said []string) {
			if diff := cmp.Diff([]string{"a  b", "$(id)", "`id`", ";id", "*", "$CANARY", "-n", "'\""},
				said); diff != "" {
				t.Error(diff)
			}
		}},
		{"EX-4 the environment is what was declared, and a base", `env >&2`, nil, func(t *testing.T, said []string) {
			for _, name := range []string{"CANARY", "LD_PRELOAD_CANARY", "NODE_OPTIONS", "PYTHONSTARTUP",
				"GIT_SSH_COMMAND", "AWS_SECRET_ACCESS_KEY"} {
				if slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, name+"=") }) {
					t.Errorf("it has %s: %q", name, said)
				}
			}
			if !slices.Contains(said, "DECLARED=yes") {
				t.Errorf("it has not what was declared: %q", said)
			}
		}},
		{"EX-5 only three descriptors are open",
			`for n in 3 4 5 6 7 8 9; do if { true >&$n; } 2>/dev/null || { true <&$n; } 2>/dev/null; then echo $n >&2; fi; done; echo end >&2`, nil,
			func(t *testing.T, said []string) {
				if diff := cmp.Diff([]string{"end"}, said); diff != "" {
					t.Error(diff)
				}
			}},
		{"EX-6 the directory is the one it was given", `pwd >&2; ls >&2`, nil, func(t *testing.T, said []string) {
			if real, err := filepath.EvalSymlinks(dir); err != nil || len(said) != 2 || said[0] != real &&
				said[0] != dir || said[1] != "a file" {
				t.Errorf("%q, %v", said, err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			row := config.Server{
				ID: "up", Command: "/bin/sh", Args: append([]string{"-c", tt.script, "sh"}, tt.args...), Cwd: dir,
				Env: []config.NameValue{{Name: "DECLARED", Value: "yes"}}, EnvIsolation: &yes,
			}
			h := openWith(t, gateway.Config{Servers: serversOf(row), Environ: inherited})
			eventually(t, "it does not end", func() bool { return h.statusOf("up").Phase == drawbridge.Faulted })
			tt.check(t, h.statusOf("up").Stderr)
		})
	}
}
