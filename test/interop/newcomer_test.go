//go:build peers

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNewcomer runs the command that README.md has for a person with a key, an empty home and a clone: the answer uses a
// tool of a server. The model is aimock; npx starts the server that is installed here instead of fetching it.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	command := ""
	for line := range strings.Lines(string(readme)) {
		if strings.HasPrefix(line, "go run ./cmd/drawbridge -p ") {
			command = line
		}
	}
	if command == "" {
		t.Fatal("README.md has no such command")
	}
	bin, home := t.TempDir(), t.TempDir()
	npx := fmt.Sprintf("#!/bin/sh\nshift\nserver=${1%%@*}\nshift\nexec %s %s/$server/dist/index.js \"$@\"\n", node,
		filepath.Dir(filepath.Dir(module(t, "@modelcontextprotocol/server-filesystem"))))
	if err := os.WriteFile(filepath.Join(bin, "npx"), []byte(npx), 0o700); err != nil {
		t.Fatal(err)
	}
	kept, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS").Output()
	if err != nil {
		t.Fatal(err)
	}
	values := strings.Split(string(kept), "\n")
	cmd := exec.CommandContext(limit(t, 3*time.Minute), "sh", "-c", command)
	cmd.Dir, cmd.WaitDelay = filepath.Join("..", ".."), time.Second
	cmd.Env = []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "OPENAI_BASE_URL=" + aimock(t, "terminal.mjs") + "/v1",
		"OPENAI_API_KEY=test", "DRAWBRIDGE_KEYCHAIN=off", "GOCACHE=" + values[0], "GOMODCACHE=" + values[1], "GOPROXY=" + values[2],
		"GOFLAGS=" + values[3]}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if want := "It is one guarded bridge between agents and every tool they may use.\n"; err != nil || string(out) != want {
		t.Fatalf("%s: got %q, %v, want %q\n%s", command, out, err, want, stderr.String())
	}
}
