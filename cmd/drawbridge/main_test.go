package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// runMain makes the test binary run main instead of tests.
const runMain = "DRAWBRIDGE_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestProgramNameDoesNotMatter runs the program under other names: the output and the exit code are the same.
func TestProgramNameDoesNotMatter(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links may need a privilege")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	type result struct {
		Out  string
		Code int
	}
	run := func(name string, args ...string) result {
		path := filepath.Join(t.TempDir(), name)
		if err := os.Symlink(self, path); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path, args...)
		cmd.Dir = home
		cmd.Env = []string{runMain + "=1", "HOME=" + home, "DRAWBRIDGE_KEYCHAIN=off", "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return result{string(out), cmd.ProcessState.ExitCode()}
	}
	for _, args := range [][]string{
		{"--help"}, {"mcp", "list", "--help"}, {"mcp", "list"}, {"--nosuch"}, {"nosuch"}, {"completion", "bash"},
		{"mcp", "add", "one"},
	} {
		want := run("drawbridge", args...)
		for _, name := range []string{"indusr", "indusagir", "db"} {
			if diff := cmp.Diff(want, run(name, args...)); diff != "" {
				t.Errorf("%s %q (-as drawbridge +as %s):\n%s", name, args, name, diff)
			}
		}
	}
}
