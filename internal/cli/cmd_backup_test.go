//go:build unix

package cli_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/backup"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestBackupOfARunningHub backs a store up between calls: each call that was answered before is in the backup once, and
// the restored audit is unbroken. A restore is refused until the hub ends.
func TestBackupOfARunningHub(t *testing.T) {
	d, other := newDesk(t), newDesk(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"servers": {"every": {"command": %q, "env": {%q: "everything"}}}}`, self,
		mcptest.ServerVariable)
	d.write(".config/drawbridge/mcp.json", config)
	other.write(".config/drawbridge/mcp.json", config)
	client := d.talk()
	const rounds, calls = 4, 5
	for round := range rounds {
		for n := range calls {
			client.ask(10+round*calls+n, "tools/call",
				fmt.Sprintf(`{"name":"every__echo","arguments":{"text":"%d-%d"}}`, round, n))
		}
		path := filepath.Join(d.home, fmt.Sprintf("%d.backup", round))
		d.run(0, "backup", path)
		other.run(0, "restore", "--force", path)
		if out, _ := other.run(0, "audit", "verify"); !strings.Contains(out, "unbroken") {
			t.Errorf("round %d: %s", round, out)
		}
		if n := countCalls(t, other); n != (round+1)*calls {
			t.Errorf("round %d: the backup has %d calls, want %d", round, n, (round+1)*calls)
		}
		other.run(0, "ledger", "verify")
	}
	_, said := d.run(1, "restore", "--force", filepath.Join(d.home, "0.backup"))
	if want := fmt.Sprintf("the hub, process %d, uses the store (close the clients that it serves (drawbridge ps), "+
		"or kill %[1]d; then restore)", os.Getpid()); !strings.Contains(said, want) {
		t.Errorf("a restore beside the hub: %s", said)
	}
}

func countCalls(t *testing.T, d *desk) (calls int) {
	t.Helper()
	out, _ := d.run(0, "audit", "log", "--json")
	var records []audit.Record
	if err := json.Unmarshal([]byte(out), &records); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Kind == audit.Call {
			calls++
		}
	}
	return calls
}

// TestRestoreRefuses a store that is open, and an archive of a newer schema.
func TestRestoreRefuses(t *testing.T) {
	d := newDesk(t)
	path := filepath.Join(d.home, "store.db")
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.run(0, "--store", path, "backup", filepath.Join(d.home, "b"))
	if _, said := d.run(1, "--store", path, "restore", "--force", filepath.Join(d.home, "b")); !strings.Contains(said,
		"another process has the store open (end the programs that use it; then restore)") {
		t.Error(said)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	d.run(0, "--store", path, "restore", "--force", filepath.Join(d.home, "b"))

	newer := filepath.Join(d.home, "newer")
	if _, err := backup.Write(newer, writeStorePart(t), backup.Manifest{Program: "v9", Schema: 70},
		backup.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, said := d.run(2, "--store", path, "restore", "--force", newer); !strings.Contains(said,
		"a newer Drawbridge (v9) wrote it: its schema is 70, and this one knows ") ||
		!strings.Contains(said, "(update Drawbridge, then restore)") {
		t.Error(said)
	}

	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Exec("UPDATE schema_version SET version = 70"); err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	const refusal = "a newer Drawbridge wrote it: its schema is 70, and this one knows "
	for _, args := range [][]string{{"backup", filepath.Join(d.home, "c")}, {"tools", "list"}} {
		if _, said := d.run(2, append([]string{"--store", path}, args...)...); !strings.Contains(said, refusal) ||
			!strings.Contains(said, "update Drawbridge") {
			t.Errorf("%v: %s", args, said)
		}
	}
	// the way back
	out, _ := d.run(0, "--store", path, "restore", "--force", filepath.Join(d.home, "b"))
	if !strings.Contains(out, "are valid again") {
		t.Error(out)
	}
	d.run(0, "--store", path, "audit", "verify")
}

// writeStorePart returns a directory with a file in the place of the store.
func writeStorePart(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "store.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestSIGKILLDuringARestore kills restores at random moments: afterwards the store is the old one or the restored one,
// and its audit is unbroken.
func TestSIGKILLDuringARestore(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "state", "store.db")
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Args = append([]string{"drawbridge", "--store", path}, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir,
			"DRAWBRIDGE_KEYCHAIN=off", "GORACE="+quickExit)
		return cmd
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := command(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	must("tools", "list")
	must("client", "add", "first", "--scope", "mcp:*")
	must("backup", "b")
	must("client", "add", "second", "--scope", "mcp:*")
	begun := time.Now()
	must("restore", "--force", "b")
	took := time.Since(begun)
	for round := range 12 {
		must("client", "add", fmt.Sprint("round-", round), "--scope", "mcp:*")
		before := must("client", "list")
		cmd := command("restore", "--force", "b")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(rand.N(took), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		after := must("client", "list")
		isRestored := strings.Contains(after, "first") && !strings.Contains(after, "round-")
		if after != before && !isRestored {
			t.Errorf("round %d: neither the old nor the new state:\n%s", round, after)
		}
		if out := must("audit", "verify"); !strings.Contains(out, "unbroken") {
			t.Errorf("round %d: %s", round, out)
		}
		must("doctor")
	}
}
