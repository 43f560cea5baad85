package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/recordlog"
	sqlite3 "modernc.org/sqlite/lib"
)

// SchemaVersion is the number of migration steps in stateSchema: the version of the tables that this program writes. The
// program cannot open a store with a higher version.
const SchemaVersion = len(stateSchema)

// ErrInUse is the error of Settle for a store that this process or another process has open.
var ErrInUse = errors.New("the store is in use")

// Snapshot copies the current state of the store to a new file. Other processes may read and write the store
// meanwhile. spools lists directories with audit records that may not be imported into the store yet; Snapshot
// imports these records into the copy. To do so, it first copies the spool files to subdirectories of work. A fault
// with code InvalidInput means that the store is not a file.
func (db *DB) Snapshot(ctx context.Context, path string, spools []string, work string) error {
	const step = "copy"
	if db.file == nil {
		return db.newFault(step, drawbridge.InvalidInput, errors.New("it is not a file"))
	}
	// Copy the spools first: a record that is imported into the store meanwhile is then in both copies.
	for i, dir := range spools {
		to := filepath.Join(work, fmt.Sprint("spool-", i))
		if err := recordlog.CopyFiles(dir, to); err != nil {
			return db.fault(step, err)
		}
	}
	if f := db.checkFile(step); f != nil {
		return f
	}
	if _, err := db.writer.ExecContext(ctx, "VACUUM INTO $1", path); err != nil {
		return db.fault(step, err)
	}
	snapshot, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	for i := range spools {
		if err == nil {
			err = snapshot.importCopies(ctx, filepath.Join(work, fmt.Sprint("spool-", i)))
		}
	}
	return errors.Join(err, snapshot.Close())
}

// importCopies imports the spool files in dir, which are copies, into the store. It removes a file that was imported
// whole and then removed from its original directory (see hasFirstRecord): its records must not be imported again.
func (db *DB) importCopies(ctx context.Context, dir string) error {
	files, err := recordlog.Files(dir)
	if err != nil {
		return db.fault("take in the audit of "+dir, err)
	}
	for _, f := range files {
		known, err := db.hasFirstRecord(ctx, f)
		if err != nil {
			return err
		}
		if known {
			err = os.Remove(f.Path)
		}
		if err != nil {
			return db.fault("take in the audit of "+dir, err)
		}
	}
	return db.NewAuditWriter(dir, AuditOptions{}).RecoverOrphans(ctx)
}

// hasFirstRecord reports whether both are true: the audit contains the first record of a spool file, and the store
// has no import position for that file. That is the case for a file that was imported whole and then removed, because
// the import position is deleted when the file is removed.
func (db *DB) hasFirstRecord(ctx context.Context, f recordlog.File) (bool, error) {
	taken, err := db.importedBytes(ctx, f.Name)
	if err != nil || taken > 0 {
		return false, err
	}
	frames, _, err := f.Frames(0)
	if err != nil || len(frames) == 0 {
		return false, err
	}
	head, err := audit.Summarize(frames[0])
	if err != nil {
		return false, nil // the import reports the error
	}
	// The record may have been completed after the file was copied.
	copied := bytes.TrimSuffix(frames[0], []byte("}"))
	records, err := db.AuditRecordsOfCall(ctx, head.ID)
	for _, r := range records {
		if bytes.HasPrefix(r.Body, copied) {
			return true, nil
		}
	}
	return false, err
}

// Contents is the number of rows of each kind in a store, for people.
type Contents struct {
	Audit      int64 `json:"audit_records"`
	Ledger     int64 `json:"ledger_records"`
	Pins       int64 `json:"pins"`
	Clients    int64 `json:"client_tokens"`
	Grants     int64 `json:"grants"`
	Asks       int64 `json:"pending_approvals"`
	HeldResult int64 `json:"held_results"`
	Vectors    int64 `json:"vectors"`
}

// Contents returns the number of rows of each kind in the store.
func (db *DB) Contents(ctx context.Context) (c Contents, err error) {
	err = db.reader.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM audit) +
		(SELECT CAST(COALESCE(SUM(last - first + 1), 0) AS BIGINT) FROM audit_blocks), (SELECT COUNT(*) FROM ledger),
		(SELECT COUNT(*) FROM pins), (SELECT COUNT(*) FROM clients), (SELECT COUNT(*) FROM grants),
		(SELECT COUNT(*) FROM asks), (SELECT COUNT(*) FROM held_results), (SELECT COUNT(*) FROM vectors)`).
		Scan(&c.Audit, &c.Ledger, &c.Pins, &c.Clients, &c.Grants, &c.Asks, &c.HeldResult, &c.Vectors)
	if err != nil {
		return c, db.fault("count the records", err)
	}
	return c, nil
}

// EndPassing is called for a restored copy of a store. It deletes the data that may have expired since the copy was
// made: approval requests, runs of scripts, and grants that end at some time. Grants without an end remain. EndPassing returns the
// numbers of deleted approval requests and grants.
func (db *DB) EndPassing(ctx context.Context) (asks, grants int64, err error) {
	err = db.inTransaction(ctx, "end what may be over", func(tx *sql.Tx) error {
		for statement, n := range map[string]*int64{
			"DELETE FROM asks WHERE ends <> 0": &asks, "DELETE FROM grants WHERE ends <> 0": &grants,
		} {
			did, err := tx.ExecContext(ctx, statement)
			if err != nil {
				return err
			}
			if *n, err = did.RowsAffected(); err != nil {
				return err
			}
		}
		for _, statement := range []string{"DELETE FROM script_runs", "DELETE FROM script_run_entries"} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	return asks, grants, err
}

// ReadSchemaVersion returns the version of the tables in a SQLite file (see SchemaVersion), without changing the
// file. It returns an error if the file is not a store.
func ReadSchemaVersion(ctx context.Context, path string) (version int, err error) {
	pool, err := openSQLitePool(dataSource(path, Options{BusyTimeout: defaultBusyTimeout}, "_query_only", "1"), 1)
	if err != nil {
		return 0, err
	}
	db := &DB{name: path, dialect: sqliteDialect(), versionTable: stateVersions}
	version, err = db.schemaVersion(ctx, pool)
	if err = errors.Join(err, pool.Close()); err != nil {
		return 0, db.fault("read its version", err)
	}
	return version, nil
}

// Settle merges SQLite's log, which is a separate file, into the store's file, so that the store's file can be moved
// alone. It returns ErrInUse if any process has the store open. If the file is missing or damaged, Settle leaves it
// unchanged and returns nil.
func Settle(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	pool, err := openSQLitePool(dataSource(path, Options{}), 1)
	if err != nil {
		return err
	}
	// SQLite changes to this mode only if no other connection has the file open.
	_, err = pool.ExecContext(ctx, "PRAGMA journal_mode = DELETE")
	code := sqliteCode(err)
	if closed := pool.Close(); err == nil {
		return closed
	}
	switch code {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return ErrInUse
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return nil
	}
	return (&DB{name: path, dialect: sqliteDialect()}).fault("end its log", err)
}

// CarryEnds is called for a store that was restored from a backup. from is the SQLite file of the store before the
// restore, which no process may have open. CarryEnds repeats in the restored store what ended after the backup. It
// deletes the grants that are missing in the file from, and the clients that are missing or expired there. It also
// takes over the accounts (quotas and trust) from that file, and its highest clock time if that is later. CarryEnds
// returns false if from belongs to another store, has another schema version, or cannot be read.
func (db *DB) CarryEnds(ctx context.Context, from string) (bool, error) {
	if version, err := ReadSchemaVersion(ctx, from); err != nil || version != len(stateSchema) {
		return false, nil
	}
	conn, err := db.writer.Conn(ctx)
	if err != nil {
		return false, db.fault("read what the store before had ended", err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "ATTACH DATABASE $1 AS earlier", from); err != nil {
		return false, ctx.Err() // ignore the error: the reason for a restore is often that the earlier store is damaged
	}
	same, err := carryEnds(ctx, conn)
	if _, detached := conn.ExecContext(ctx, "DETACH DATABASE earlier"); detached != nil {
		return false, db.fault("close the store before", detached)
	}
	return same && err == nil, ctx.Err()
}

// carryEnds implements CarryEnds on a connection to which the file of the store before the restore is attached as
// "earlier".
func carryEnds(ctx context.Context, conn *sql.Conn) (same bool, err error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // has no effect after a commit
	const compare = `SELECT EXISTS (SELECT 1 FROM main.blobs AS a JOIN earlier.blobs AS b ON a.value = b.value
		WHERE a.name = 'store-identity' AND b.name = 'store-identity')`
	if err := tx.QueryRowContext(ctx, compare).Scan(&same); err != nil || !same {
		return false, err
	}
	for _, statement := range []string{
		"DELETE FROM main.grants WHERE id NOT IN (SELECT id FROM earlier.grants)",
		"DELETE FROM main.clients WHERE token NOT IN (SELECT token FROM earlier.clients WHERE ended = 0)",
		"INSERT OR REPLACE INTO main.accounts (kind, name, body) SELECT kind, name, body FROM earlier.accounts",
		"UPDATE main.store_clock SET highest = MAX(highest, (SELECT MAX(highest) FROM earlier.store_clock))",
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return false, err
		}
	}
	return true, tx.Commit()
}
