package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/recordlog"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// TestSnapshotOfABusyStore copies a store while another process records as fast as it can: each copy has every call that
// was answered before, once, and its chain holds.
func TestSnapshotOfABusyStore(t *testing.T) {
	dir := t.TempDir()
	location, spool := filepath.Join(dir, "store.db"), filepath.Join(dir, "spool")
	db := open(t, location)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = []string{auditName, location, spool}
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(stdout)
	var answered []string
	for round := range 5 {
		for n := 0; n < 1500 && said.Scan(); n++ {
			answered = append(answered, said.Text())
		}
		path, work := filepath.Join(dir, fmt.Sprint("copy-", round)), t.TempDir()
		if err := db.Snapshot(t.Context(), path, []string{spool}, work); err != nil {
			t.Fatal(err)
		}
		_, all := auditOf(t, open(t, path))
		for _, id := range answered {
			if all[id].Outcome != audit.OK {
				t.Fatalf("round %d: call %s was answered, and the copy has %+v", round, id, all[id])
			}
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
}

// TestSnapshotOfASpoolThatIsTakenIn copies the spool before the store takes all of it in, and removes and forgets it.
func TestSnapshotOfASpoolThatIsTakenIn(t *testing.T) {
	dir := t.TempDir()
	db, spool := open(t, filepath.Join(dir, "store.db")), filepath.Join(dir, "spool")
	a := db.NewAuditWriter(spool, store.AuditOptions{})
	record(t, a, "1", "2")
	early := filepath.Join(dir, "early")
	if err := recordlog.CopyFiles(spool, early); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "copy")
	if err := db.Snapshot(t.Context(), path, []string{early}, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if report, _ := auditOf(t, open(t, path)); report.Records != 4 {
		t.Errorf("the copy has %d records, want 4", report.Records)
	}
}

// TestSettle finds out that a store is open, and otherwise brings it into one file.
func TestSettle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	if err := store.Settle(t.Context(), path); err != nil {
		t.Errorf("a missing file: %v", err)
	}
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Settle(t.Context(), path); !errors.Is(err, store.ErrInUse) {
		t.Errorf("an open store: %v, want ErrInUse", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Settle(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if version, err := store.ReadSchemaVersion(t.Context(), path); err != nil || version != store.SchemaVersion {
		t.Errorf("the version is %d, %v", version, err)
	}
	if err := os.WriteFile(path, []byte("not a database, and long enough to have a header of one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.Settle(t.Context(), path); err != nil {
		t.Errorf("a damaged file: %v", err)
	}
}
