//go:build linux && amd64 && cgo

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// runMain makes the test binary run main instead of tests.
const runMain = "DRAWBRIDGE_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	sandbox.RunWorkerWith(newEngine()) // a worker has no variables
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestTheProgramRunsScriptsInWasmtime runs a script with the whole program, and then with compiled code that somebody
// has changed.
func TestTheProgramRunsScriptsInWasmtime(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	drawbridge := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Dir = home
		cmd.Env = []string{runMain + "=1", "HOME=" + home, "DRAWBRIDGE_KEYCHAIN=off", "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	script := filepath.Join(home, "report.py")
	if err := os.WriteFile(script, []byte("print(sum(range(10)))"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := drawbridge("run", script); !strings.Contains(out, "45\n") {
		t.Errorf("run: %s", out)
	}
	compiled, err := filepath.Glob(filepath.Join(home, ".cache/drawbridge/python/*/compiled-wasmtime-*/interpreter.cwasm"))
	if err != nil || len(compiled) != 1 {
		t.Fatalf("the compiled interpreter: %v, %v", compiled, err)
	}
	info, err := os.Stat(compiled[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	f, err := os.OpenFile(compiled[0], os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(make([]byte, 1<<20), info.Size()/2)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if out := drawbridge("run", script); !strings.Contains(out, "45\n") {
		t.Errorf("run with damaged code: %s", out)
	}
	for _, want := range []string{"wasmtime " + engineVersion, "CVE-"} {
		if out := drawbridge("doctor"); !strings.Contains(out, want) {
			t.Errorf("doctor does not print %s:\n%s", want, out)
		}
	}
}
