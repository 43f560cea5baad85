package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli"
	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	gateway.RunReaperProcess()
	mcptest.RunIfNamedServer()
	testscript.Main(m, map[string]func(){
		"drawbridge": func() { os.Exit(cli.Main(context.Background(), os.Args[1:], cli.OSProcess())) },
		"interruptible": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // as the program has it
			code := cli.Main(ctx, os.Args[1:], cli.OSProcess())
			stop()
			os.Exit(code)
		},
		"outlive": outlive,
		"storm":   storm,
		"idp":     func() { os.Exit(oauthtest.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// quickExit keeps a program that was built to find races from waiting a second at its end.
const quickExit = "atexit_sleep_ms=0"

// TestScripts runs the program as its user sees it. In a script, SELF is a program that becomes the test server named
// by the variable MCPTEST_SERVER; "exits N COMMAND..." runs a command that must end with that exit code, "letters KEY"
// has a model answer at the URL in LETTERS, "site DIR" serves a directory at the URL in SITE, and "qdrant KEY" a stand-in for
// Qdrant at the address in QDRANT.
func TestScripts(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("..", "..", "testdata", "scripts"),
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(home, ".local", "state"))
			env.Setenv("DRAWBRIDGE_KEYCHAIN", "off") // the machine's own is not ours to try
			env.Setenv("SELF", self)
			if cache, err := os.UserCacheDir(); err == nil {
				env.Setenv("SANDBOX_CACHE", cache) // the interpreter is compiled once for all tests
			}
			env.Setenv("GORACE", quickExit)
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"letters": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Setenv("LETTERS", mcptest.StartLetterModel(t, args[0]).URL)
			},
			"site": func(ts *testscript.TestScript, _ bool, args []string) {
				site := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
				ts.Defer(site.Close)
				ts.Setenv("SITE", site.URL)
			},
			"qdrant": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Setenv("QDRANT", storetest.StartQdrant(t, args[0], nil).Addr)
			},
		},
		RequireUniqueNames: true,
	})
}

// exits runs a command and checks its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if ee, ok := err.(*exec.ExitError); ok {
		got = ee.ExitCode()
	} else if err != nil {
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s", fmt.Sprintf("exit code %d, want %d", got, want))
	}
}
