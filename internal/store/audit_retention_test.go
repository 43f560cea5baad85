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
		watch("CREATE TRIGGER watch AFTER DELETE ON audit_blocks BEGIN INSERT INTO taken_out SELECT seq FROM cuts; END")
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
			"SELECT COUNT(*), MAX(n), MAX(upto) FROM (SELECT upto, upto - LAG(upto, 1, 0) OVER (ORDER BY upto) AS n "+
				"FROM (SELECT DISTINCT upto FROM taken_out))").Scan(&steps, &most, &all); err != nil {
			t.Fatal(err)
		}
		// A step ends with a block, and with a checkpoint if there are any.
		left := 18000 - all
		if steps < 2 || steps > 4 || most > 6000 || left < 100 || key == nil && left >= 100+512 {
			t.Errorf("signed %v: %d steps, %d records in one, %d left", key != nil, steps, most, left)
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
		if diff := cmp.Diff(store.AuditReport{ChainReport: store.ChainReport{Stream: "audit", Records: 300, First: 301,
			Last: 600, Signed: 600, SignedAt: report.SignedAt, RemovedAt: report.RemovedAt, RemovedBy: "number"},
			Keys: report.Keys}, report); diff != "" {
			t.Error(diff)
		}
		// Somebody takes out more, up to where nobody has signed.
		signed(t, location, newKey(t), 1, store.AuditOptions{})
		raw(t, location)("UPDATE cuts SET seq = 600, hash = (SELECT hash FROM audit_blocks WHERE last = 600)")
		raw(t, location)("DELETE FROM audit_blocks WHERE last <= 600")
		raw(t, location)("DELETE FROM checkpoints")
		if report, err := db.VerifyAudit(t.Context(), public); err != nil || !report.Loose || report.First != 601 {
			t.Errorf("it begins where nobody has signed: %+v, %v", report, err)
		}
		raw(t, location)("UPDATE cuts SET hash = $1", make([]byte, 32))
		if _, err := db.VerifyAudit(t.Context(), public); err == nil {
			t.Error("the beginning of the chain is another, and nobody noticed")
		}
	})
	t.Run("by age", func(t *testing.T) {
		location := filepath.Join(t.TempDir(), "store.db")
		for range 2 {
			signed(t, location, newKey(t), 150, store.AuditOptions{})
		}
		raw(t, location)("UPDATE audit_blocks SET at = at - 7200000 WHERE last <= 300")
		db := signed(t, location, newKey(t), 1, store.AuditOptions{KeepFor: time.Hour})
		if records := recordsOf(t, db); len(records) != 302 {
			t.Errorf("%d records are left, want 302", len(records))
		}
		if report, err := db.VerifyAudit(t.Context()); err != nil || report.RemovedBy != "age" {
			t.Errorf("%+v, %v", report, err)
		}
		// The clock was set back: what is too old stays behind what is not.
		raw(t, location)("UPDATE audit_blocks SET at = at - 7200000 WHERE first > 600")
		db = signed(t, location, newKey(t), 1, store.AuditOptions{KeepFor: time.Hour})
		if records := recordsOf(t, db); len(records) != 304 {
			t.Errorf("%d records are left, want 304", len(records))
		}
	})
}

// TestOldRecordsAreTakenOutByBytes bounds the size: the oldest blocks go, and the newest stays although it is too
// large.
func TestOldRecordsAreTakenOutByBytes(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		key := newKey(t)
		for range 4 {
			signed(t, location, key, 150, store.AuditOptions{})
		}
		var most, all int64
		read(t, location)("SELECT CAST(SUM(size) AS BIGINT), MAX(size) FROM audit_blocks", &all, &most)
		db := signed(t, location, key, 150, store.AuditOptions{KeepBytes: 3 * most})
		report, err := db.VerifyAudit(t.Context())
		if err != nil || report.First != 601 || report.Last != 1500 || report.RemovedBy != "bytes" || report.Loose {
			t.Errorf("%+v, %v", report, err)
		}
		db = signed(t, location, key, 150, store.AuditOptions{KeepBytes: 1})
		if report, err := db.VerifyAudit(t.Context()); err != nil || report.First != 1501 || report.Records != 300 {
			t.Errorf("%+v, %v", report, err)
		}
		var left int64
		read(t, location)("SELECT CAST(SUM(size) AS BIGINT), MAX(size) FROM audit_blocks", &left, &most)
		var counted int64
		read(t, location)("SELECT h.bytes - c.bytes FROM heads AS h JOIN cuts AS c ON h.stream = c.stream", &counted)
		if counted != left {
			t.Errorf("%d bytes are counted, and %d are there", counted, left)
		}
	})
}
