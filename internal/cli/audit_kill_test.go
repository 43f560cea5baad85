package cli_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
)

// TestSIGKILLLosesNoAnsweredCall kills gateways during calls: each call that a client had an answer to is on
// record, with what came of it.
func TestSIGKILLLosesNoAnsweredCall(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config, store := filepath.Join(dir, "mcp.json"), filepath.Join(dir, "store.db")
	text := fmt.Sprintf(`{"servers":{"every": {"command": %q, "env": {"MCPTEST_SERVER": "everything"}}}}`, self)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Args = append([]string{"drawbridge"}, append(args, "--mcp", config, "--store", store)...)
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir,
			"DRAWBRIDGE_KEYCHAIN=off", "GORACE="+quickExit)
		return cmd
	}
	answered := map[string]bool{}
	for round := range 3 {
		killed(t, command("serve"), round, answered)
	}
	if len(answered) < 30 {
		t.Errorf("only %d calls were answered", len(answered))
	}
	logged, err := command("audit", "log", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var records []audit.Record
	if err := json.Unmarshal(logged, &records); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Kind == audit.Note {
			continue // of a record that a kill cut off, and nobody had an answer to
		}
		if r.Transport != "stdio" || !strings.HasPrefix(r.Caller.Client, "killer 1") {
			t.Errorf("a call of %+v by %q", r.Caller, r.Transport)
		}
		var said struct{ Text string }
		if json.Unmarshal(r.Arguments, &said) == nil && r.Outcome == audit.OK {
			delete(answered, said.Text)
		}
	}
	if len(answered) > 0 {
		t.Errorf("answered, and not on record: %v", answered)
	}
	if out, err := command("audit", "verify").CombinedOutput(); err != nil {
		t.Errorf("audit verify: %v\n%s", err, out)
	}
}

// killed has a gateway answer some calls, kills it, and notes which were answered.
func killed(t *testing.T, cmd *exec.Cmd, round int, answered map[string]bool) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in,
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"killer","version":"1"}}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	said := bufio.NewScanner(out)
	note := func() {
		var answer struct {
			ID     int
			Result *struct{ Content []struct{ Text string } }
		}
		if json.Unmarshal(said.Bytes(), &answer) == nil && answer.Result != nil && len(answer.Result.Content) > 0 {
			answered[answer.Result.Content[0].Text] = true
		}
	}
	for n := range 40 {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"every__echo","arguments":{"text":"%d-%d"}}}`+"\n", n+1, round, n)
	}
	for n := 0; n < 10+10*round && said.Scan(); n++ {
		note()
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for said.Scan() {
		note()
	}
	_ = cmd.Wait() // it was killed
}
