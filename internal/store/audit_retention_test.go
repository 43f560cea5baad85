package store_test

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
)

// TestOldRecordsAreTakenOutInSteps has many records be too many at once, as they are where somebody bounds them for
// the first time: no step of the store may take so long that others wait for it.
func TestOldRecordsAreTakenOutInSteps(t *testing.T) {
	for _, key := range []ed25519.PrivateKey{nil, newKey(t)} {
		location := filepath.Join(t.TempDir(), "store.db")
		open(t, location)
		watch := raw(t, location)
		watch("CREATE TABLE taken_out (upto INTEGER)")
		watch("CREATE TRIGGER watch AFTER DELETE ON audit BEGIN INSERT INTO taken_out SELECT seq FROM cuts; END")
		var o store.AuditOptions
		for round := range 3 {
			if round == 2 {
				o.KeepRecords = 100
			}
			if key != nil {
				o.Key = func(context.Context) (ed25519.PrivateKey, error) { return key, nil }
			}
			a := open(t, location).NewAuditWriter(filepath.Join(t.TempDir(), "spool"), o)
			for i := range 3000 {
				record(t, a, fmt.Sprint(round, "-", i))
			}
			if err := a.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		db, err := sql.Open("sqlite", location)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var steps, most, all int
		if err := db.QueryRowContext(t.Context(),
			"SELECT COUNT(*), MAX(n), SUM(n) FROM (SELECT COUNT(*) AS n FROM taken_out GROUP BY upto)").Scan(&steps,
			&most, &all); err != nil {
			t.Fatal(err)
		}
		want := []int{4, 5000, 17900}
		if key != nil { // from checkpoint to checkpoint
			want = []int{2, 6000, 12000}
		}
		if diff := cmp.Diff(want, []int{steps, most, all}); diff != "" {
			t.Errorf("signed %v: steps, the most of one, all: %s", key != nil, diff)
		}
		if report, err := open(t, location).VerifyAudit(t.Context()); err != nil || report.First != uint64(all)+1 ||
			report.Last != 18000 || report.Loose != (key == nil) {
			t.Errorf("%+v, %v", report, err)
		}
	}
}

func TestOldRecordsAreTakenOut(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		key := newKey(t)
		public := key.Public().(ed25519.PublicKey)
		signed(t, location, key, 150, store.AuditOptions{})
		db := signed(t, location, key, 150, store.AuditOptions{KeepRecords: 250})
		report, _ := auditOf(t, db, public)
		if diff := cmp.Diff(store.AuditReport{Records: 300, First: 301, Last: 600, Signed: 600,
			SignedAt: report.SignedAt, Keys: report.Keys, RemovedAt: report.RemovedAt, RemovedBy: "number"}, report); diff != "" {
			t.Error(diff)
		}
		// Somebody takes out more, up to where nobody has signed.
		raw(t, location)("UPDATE cuts SET seq = 310, hash = (SELECT hash FROM audit WHERE seq = 310)")
		raw(t, location)("DELETE FROM audit WHERE seq <= 310")
		if report, err := db.VerifyAudit(t.Context(), public); err != nil || !report.Loose || report.First != 311 {
			t.Errorf("it begins where nobody has signed: %+v, %v", report, err)
		}
		raw(t, location)("UPDATE cuts SET hash = $1", make([]byte, 32))
		if _, err := db.VerifyAudit(t.Context(), public); err == nil {
			t.Error("the beginning of the chain is another, and nobody noticed")
		}
	})
	t.Run("by age", func(t *testing.T) {
		location := filepath.Join(t.TempDir(), "store.db")
		signed(t, location, newKey(t), 150, store.AuditOptions{})
		raw(t, location)("UPDATE audit SET at = at - 7200000 WHERE seq <= 200")
		raw(t, location)("UPDATE checkpoints SET seq = 200, hash = (SELECT hash FROM audit WHERE seq = 200)")
		db := signed(t, location, newKey(t), 1, store.AuditOptions{KeepFor: time.Hour})
		if records := recordsOf(t, db); len(records) != 102 {
			t.Errorf("%d records are left, want 102", len(records))
		}
		// The clock was set back: what is too old stays behind what is not.
		raw(t, location)("UPDATE audit SET at = at - 7200000 WHERE seq > 201")
		db = signed(t, location, newKey(t), 1, store.AuditOptions{KeepFor: time.Hour})
		if records := recordsOf(t, db); len(records) != 104 {
			t.Errorf("%d records are left, want 104", len(records))
		}
	})
}
